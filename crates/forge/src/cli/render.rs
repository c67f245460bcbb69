//! Values as lines of text.

use engine::decide::quota::{self, Report};
use engine::decide::signal::Signal;
use engine::decide::verdict::{Observation, Reason, Sample, State, Verdict};
use engine::error::Error;
use engine::ops::cache::Reads;
use engine::ops::health::{Evidence, Source, Status};
use engine::process::kernel;
use engine::settings::Settings;

/// An error as one line: what, why, and what to do about it.
pub fn error(e: &Error) -> String {
    format!("forge: {}\n", one_line(&e.explained()))
}

/// Whether a character could end a line, move a terminal's cursor or turn the text around.
pub fn is_hidden(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A text that was not written by us, as a line can show it.
pub fn one_line(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match is_hidden(c) {
            true => shown.extend(c.escape_unicode()),
            false => shown.push(c),
        }
    }
    shown
}

/// A usage error as one line; without any command, the whole help is the better answer.
pub fn usage(e: &clap::Error) -> String {
    let text = e.render().to_string();
    if e.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return text;
    }
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines.collect::<Vec<_>>().join("; ").replace(":; ", ": ");
    let line = line.replace("invalid digit found in string", "it is no whole number");
    let line = line.replace("For more information, try '--help'.", "--help explains it");
    format!("forge: {}\n", line.strip_prefix("error: ").unwrap_or(&line))
}

/// One line for every variable that did not parse.
pub fn ignored_settings(settings: &Settings) -> String {
    let line = |(name, value): &(&str, String)| {
        format!("forge: {name}={value:?} is not a whole number; its default is used\n")
    };
    settings.ignored.iter().map(line).collect()
}

/// The verdict in one line: what was seen, where, and what it means.
pub fn health(status: &Status) -> String {
    let Verdict { state, reason, .. } = status.verdict;
    let source = match status.source {
        Source::Cache => format!("cache ({}s old)", status.age_s),
        other => other.as_str().into(),
    };
    let (state, reason) = (state.as_str(), reason.as_str());
    let (seen, advice) = (seen(status), advice(status));
    let advice = if advice.is_empty() { String::new() } else { format!(" — {advice}") };
    format!("forge: {state} ({reason}) — {seen}, source: {source}{advice}\n")
        + &status.cache.as_ref().map(reads).unwrap_or_default()
        + &status.quota.as_ref().map(quota).unwrap_or_default()
}

/// The quota under the verdict; each line holds names that others chose.
pub fn quota(report: &Report) -> String {
    let lines = quota::lines(report, &kernel::local_time);
    lines.iter().map(|line| plain(line) + "\n").collect()
}

/// A line in which nothing can move a terminal's cursor or turn its text around.
pub fn plain(line: &str) -> String {
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    line.chars().map(|c| if hidden(c) { '?' } else { c }).collect()
}

/// What runs have acted on lately that the forge did not answer; nothing when there is none of it.
fn reads(reads: &Reads) -> String {
    let Reads { served, stale, window, .. } = reads;
    let last = match (reads.last_answer_age_s, &reads.last_command, reads.last_signal) {
        (Some(age_s), Some(command), Some(signal)) => {
            let command = one_line(command);
            format!(" (last: {command}, {age_s}s old, the live call failed: {signal})")
        }
        _ => String::new(),
    };
    let past = match stale {
        0 => String::new(),
        _ => format!("; {stale} failed although an answer is stored, because it is past its bound"),
    };
    match served + stale {
        0 => String::new(),
        _ => format!(
            "cache: {served} read(s) in the last {window}s were answered from the cache{last}{past}\n"
        ),
    }
}

fn seen(status: &Status) -> String {
    let Sample { total, answered, failures, notfound, window_s, .. } = status.verdict.sample;
    if total == 0 {
        return format!("no call in the last {window_s}s says anything about the forge");
    }
    let failed = match failures {
        0 => String::new(),
        _ => format!(", {failures} failed ({})", causes(&status.verdict)),
    };
    let found_nothing =
        if notfound > 0 { format!(", {notfound} of them \"not found\"") } else { String::new() };
    format!("{answered}/{total} recent calls ok{found_nothing}{failed}")
}

fn causes(verdict: &Verdict) -> String {
    let named = |(signal, times): (Signal, u64)| format!("{} {times}", signal.as_str());
    verdict.causes().into_iter().map(named).collect::<Vec<_>>().join(", ")
}

fn advice(status: &Status) -> &'static str {
    match (status.verdict.state, status.verdict.reason) {
        (State::Operational, _) => "",
        (_, Reason::RateLimited) => {
            "the forge is up but the quota ran out: an empty result may be an unread one; wait for the reset"
        }
        (_, Reason::AuthFailures) => {
            "the forge refused these credentials: an empty result may be an unread one; run `gh auth status`"
        }
        (State::Degraded, _) => {
            "an empty result may be an unread one: run the call again before you believe it"
        }
        (State::Unreachable, Reason::NetworkFailures) => {
            "nothing can be read or written: check the network, then run the call again"
        }
        (State::Unreachable, _) => {
            "nothing can be read or written: wait, run the call again, and believe no empty result until then"
        }
        (State::Unknown, Reason::NoGh) => {
            "and there is no real gh to ask with: install GitHub's gh, or put it on PATH behind the shim"
        }
        (State::Unknown, _) if status.source == Source::Observations => {
            "run `bob forge health` without --no-probe to ask the forge"
        }
        (State::Unknown, _) => "nor does a probe: run `gh api rate_limit` to see why",
    }
}

/// What `record` wrote.
pub fn recorded(o: &Observation) -> String {
    let subcommand = one_line(&o.subcommand);
    format!("recorded: {} (exit {}, {} ms, {subcommand})\n", o.signal.as_str(), o.exit, o.ms)
}

/// The evidence, oldest first, one call a line.
pub fn observations(evidence: &Evidence, now_s: u64) -> String {
    let mut text: String = evidence.rows.iter().map(|row| observation(row, now_s)).collect();
    if evidence.rows.is_empty() {
        text = format!("no call in the last {}s\n", evidence.window_s);
    }
    if evidence.bad_lines > 0 {
        text += &format!("{} line(s) of the log do not parse and were skipped\n", evidence.bad_lines);
    }
    text
}

fn observation(o: &Observation, now_s: u64) -> String {
    let Observation { exit, ms, cost, .. } = o;
    let [subcommand, quota, caller, session] =
        [&o.subcommand, &o.quota, &o.caller, &o.session].map(|text| one_line(text));
    let (age_s, signal) = (now_s.saturating_sub(o.at), o.signal.as_str());
    let note = if o.signal == Signal::Other { "  (no evidence)" } else { "" };
    format!(
        "{age_s:>4}s ago  {signal:<9}  exit {exit:<3}  {ms:>6} ms  {subcommand}  {quota} {cost}  {caller}  \
         {session}{note}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::decide::verdict::classify;

    fn line(words: &str, source: Source) -> String {
        let dash = || "-".to_string();
        let seen = |word| Observation {
            at: 1_000,
            exit: 1,
            ms: 1,
            signal: Signal::parse(word).unwrap(),
            subcommand: dash(),
            quota: dash(),
            cost: 0,
            caller: dash(),
            session: dash(),
        };
        let rows: Vec<_> = words.split_whitespace().map(seen).collect();
        let verdict = classify(&rows, 1_000, 300);
        health(&Status {
            verdict,
            source,
            checked_at: 1_000,
            age_s: 12,
            cache: None,
            quota: None,
            trouble: None,
        })
    }

    #[test]
    fn every_state_says_what_was_seen_and_what_it_means_in_one_line() {
        let ten = "ok ".repeat(10);
        let expected =
            "forge: operational (recent-calls-succeeded) — 10/10 recent calls ok, source: observations\n";
        assert_eq!(line(&ten, Source::Observations), expected);
        let table = [
            (
                "ok notfound",
                Source::Cache,
                "2/2 recent calls ok, 1 of them \"not found\", source: cache (12s old)\n",
            ),
            (
                "ok ok server net net",
                Source::Observations,
                "2/5 recent calls ok, 3 failed (net 2, server 1), source: observations — an empty",
            ),
            (
                "ratelimit",
                Source::Probe,
                "forge: degraded (rate-limited) — 0/1 recent calls ok, 1 failed (ratelimit 1), source: probe — the forge is up",
            ),
            ("auth", Source::Probe, "run `gh auth status`\n"),
            (
                "net",
                Source::Probe,
                "forge: unreachable (network-failures) — 0/1 recent calls ok, 1 failed (net 1), source: probe — nothing can be read",
            ),
            ("server", Source::Probe, "forge: unreachable (all-calls-failing) — "),
            (
                "other",
                Source::Observations,
                "forge: unknown (no-evidence) — no call in the last 300s says anything about the forge, source: observations — run `bob forge health` without --no-probe",
            ),
            ("", Source::Probe, "nor does a probe"),
        ];
        for (words, source, part) in table {
            let line = line(words, source);
            assert!(line.contains(part), "{words}: {line}");
            assert_eq!(line.matches('\n').count(), 1, "{line}");
        }
    }

    #[test]
    fn reads_from_the_cache_have_a_line_of_their_own_and_none_has_none() {
        assert_eq!(reads(&Reads { window: 3_600, ..Reads::default() }), "");
        let mut some = Reads {
            served: 2,
            stale: 0,
            last_served_at: Some(1_000),
            last_answer_age_s: Some(45),
            last_signal: Some("server"),
            last_command: Some("issue list".into()),
            window: 3_600,
        };
        let line = "cache: 2 read(s) in the last 3600s were answered from the cache (last: issue list, 45s old, \
                    the live call failed: server)";
        assert_eq!(reads(&some), format!("{line}\n"));
        some.stale = 1;
        let past = "; 1 failed although an answer is stored, because it is past its bound";
        assert_eq!(reads(&some), format!("{line}{past}\n"));
    }
}
