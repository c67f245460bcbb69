//! `forge queue`.

use std::fmt::Write as _;

use engine::decide::entry::{Entry, Status};
use engine::ops::Context;
use engine::ops::queue::{
    self, Cleared, Dropped, Overview, View, dropped_json, entry_json, exit_code, overview, status_json,
    summary,
};
use engine::ops::replay::{self, Outcome, Report};
use serde_json::{Value, json};

use super::args::{Queue, QueueList, QueueOne, QueueReplay, QueueVerb};
use super::printable::{json as printable_json, line, text};
use super::{Ended, Output, render};

/// Runs one verb; without one it is `status`.
pub fn run(context: &Context, noun: Queue, output: &mut Output) -> Ended {
    let ended = verb(context, noun, output);
    if output.stdout.starts_with(['{', '[']) {
        output.stdout = printable_json(&output.stdout);
    }
    ended
}

fn verb(context: &Context, noun: Queue, output: &mut Output) -> Ended {
    match noun.verb {
        None => status(context, noun.status.json, output),
        Some(QueueVerb::Status(args)) => status(context, args.json, output),
        Some(QueueVerb::List(args)) => list(context, &args, output),
        Some(QueueVerb::Show(args)) => show(context, &args, output),
        Some(QueueVerb::Drop(args)) => drop(context, &args, output),
        Some(QueueVerb::Clear(args)) => clear(context, args.json, output),
        Some(QueueVerb::Replay(args)) => replay(context, &args, output),
    }
}

fn status(context: &Context, as_json: bool, output: &mut Output) -> Ended {
    output.stderr.push_str(&render::ignored_settings(&context.settings));
    let (view, now_s) = (queue::view(context)?, context.clock.now_s());
    output.stdout = match as_json {
        true => format!("{}\n", status_json(&view, now_s)),
        false => status_text(&overview(&view, now_s)),
    };
    Ok(exit_code(&view))
}

fn status_text(seen: &Overview) -> String {
    let mut out = match seen.depth {
        0 => "forge queue: nothing pending\n".to_string(),
        depth => {
            let kinds: Vec<_> = seen.pending.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
            let age = seen.oldest_age_s.map_or("unknown".into(), age);
            format!("forge queue: {depth} pending ({}), oldest {age}\n", kinds.join(", "))
        }
    };
    if !seen.unresolved.is_empty() {
        let _ = writeln!(out, "unresolved handles: {}", seen.unresolved.join(", "));
    }
    if !seen.problems.is_empty() {
        let _ = writeln!(out, "set aside, will not arrive on their own: {}", seen.problems.len());
    }
    for problem in &seen.problems {
        let (what, reason) = (line(&problem.what), line(&problem.reason));
        let _ = writeln!(out, "  {} {:<8} {what} — {reason}", problem.id, problem.status);
    }
    if let Some(dropped) = seen.set_aside.get(Status::Dropped.as_str()) {
        let _ = writeln!(out, "dropped by hand: {dropped}");
    }
    for seq in &seen.incomplete {
        let id = engine::decide::entry::id(*seq);
        let _ = writeln!(out, "incomplete: {id} was cut short while it was queued and was never confirmed");
    }
    if let Some(last) = &seen.last_replay {
        let reason =
            if last.reason.is_empty() { String::new() } else { format!(" — {}", line(&last.reason)) };
        let _ = writeln!(out, "last replay: {} {}{reason}", last.id, last.outcome);
    }
    for note in &seen.notes {
        let _ = writeln!(out, "note: {}", line(note));
    }
    out
}

fn age(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

fn list(context: &Context, args: &QueueList, output: &mut Output) -> Ended {
    let view = queue::view(context)?;
    let wanted = |entry: &&Entry| args.all || entry.status == Status::Pending;
    let entries: Vec<&Entry> =
        view.loaded.found.iter().filter_map(|found| found.entry()).filter(wanted).collect();
    if args.json {
        let entries: Vec<Value> = entries.iter().map(|entry| entry_json(entry)).collect();
        output.stdout = format!("{}\n", Value::from(entries));
        return Ok(0);
    }
    output.stdout = entries.iter().map(|entry| row(entry, context.clock.now_s())).collect();
    if args.all {
        output.stdout.extend(unreadable(&view));
    }
    if output.stdout.is_empty() {
        output.stdout = "forge queue: nothing pending\n".into();
    }
    Ok(0)
}

fn row(entry: &Entry, now_s: u64) -> String {
    let waited = age(now_s.saturating_sub(entry.enqueued_at));
    let reason = entry.reason.as_ref().map_or(String::new(), |reason| format!(" — {}", line(reason)));
    let handle = entry.handle.as_ref().map_or(String::new(), |handle| format!(" ({})", line(handle)));
    let (id, status, what) = (line(&entry.id), entry.status.as_str(), line(&summary(entry)));
    format!("  {id}  {status:<9}  {waited:>8}  {what}{handle}{reason}\n")
}

fn unreadable(view: &View) -> Vec<String> {
    let row = |(seq, why): (u32, &str)| {
        format!("  {}  refused    its file {}\n", engine::decide::entry::id(seq), line(why))
    };
    view.unreadable().map(row).collect()
}

fn show(context: &Context, args: &QueueOne, output: &mut Output) -> Ended {
    let shown = queue::show(context, &args.id)?;
    let body = shown.body.as_ref().ok().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    if args.json {
        let mut document = entry_json(&shown.entry);
        document["body"] = json!(body);
        document["sealed"] = json!(shown.is_sealed);
        output.stdout = format!("{document}\n");
        return Ok(0);
    }
    let entry = &shown.entry;
    let mut out = String::new();
    let mut field = |name: &str, value: &str| {
        let _ = writeln!(out, "{name:<12} {}", line(value));
    };
    field("entry", &entry.id);
    field("what", &summary(entry));
    field("repo", &entry.repo);
    field("status", entry.status.as_str());
    for (name, value) in [("reason", &entry.reason), ("handle", &entry.handle), ("result", &entry.result)] {
        if let Some(value) = value {
            field(name, value);
        }
    }
    field("attempts", &entry.attempts.to_string());
    field("waited", &age(context.clock.now_s().saturating_sub(entry.enqueued_at)));
    field("caller", &entry.caller);
    field("command", &format!("gh {}", entry.argv.join(" ")));
    field("sealed", if shown.is_sealed { "yes" } else { "no: not by this machine for this folder" });
    match (&body, &shown.body) {
        (Some(body), _) => {
            let _ = writeln!(out, "body ({} bytes):\n{}", body.len(), text(body));
        }
        (None, Err(why)) if entry.body_file.is_some() && entry.status != Status::Delivered => {
            let _ = writeln!(out, "body         {}", line(why));
        }
        _ => {}
    }
    output.stdout = out;
    Ok(0)
}

fn drop(context: &Context, args: &QueueOne, output: &mut Output) -> Ended {
    let dropped = queue::drop(context, &args.id)?;
    output.stdout = match args.json {
        true => format!("{}\n", dropped_json(&dropped)),
        false => dropped_text(&dropped),
    };
    Ok(0)
}

fn dropped_text(Dropped { entry, dependents }: &Dropped) -> String {
    // The reason tells of an attempt that may have got through: then nobody can say that it is not there.
    let reason = entry.reason.as_deref().unwrap_or_default();
    let what_then = reason.split_once("; ").map_or("it is not delivered", |(_, doubt)| doubt);
    let (id, what) = (&entry.id, line(&summary(entry)));
    let mut out = format!("forge queue: {id} dropped ({what}); {}\n", line(what_then));
    if let Some(handle) = entry.handle.as_ref().filter(|_| !dependents.is_empty()) {
        let (ids, handle) = (dependents.join(", "), line(handle));
        let _ = writeln!(out, "waiting for {handle}, and not delivered either (replay skips them): {ids}");
    }
    out
}

fn clear(context: &Context, as_json: bool, output: &mut Output) -> Ended {
    let Cleared { removed, undelivered, uncertain } = queue::clear(context)?;
    if as_json {
        let schema = "bob-forge-queue-clear/1";
        let document = json!({
            "schema": schema, "removed": removed, "undelivered": undelivered, "uncertain": uncertain,
        });
        output.stdout = format!("{document}\n");
        return Ok(0);
    }
    let entries = if removed == 1 { "1 entry".into() } else { format!("{removed} entries") };
    let lost = match undelivered.len() - uncertain.len() {
        0 => String::new(),
        1 => "; 1 write was not delivered and will not be".into(),
        n => format!("; {n} writes were not delivered and will not be"),
    };
    let doubt = match uncertain.is_empty() {
        true => String::new(),
        false => format!(
            "; an attempt to send these, or a part of them, may have got through: {}",
            uncertain.join(", ")
        ),
    };
    output.stdout = format!("forge queue: {entries} removed{lost}{doubt}\n");
    Ok(0)
}

fn replay(context: &Context, args: &QueueReplay, output: &mut Output) -> Ended {
    let options = replay::Options {
        apply: args.apply,
        marked_only: args.marked_only,
        batch: args.batch.unwrap_or(0),
        accept: args.accept.iter().filter_map(|id| engine::decide::entry::parse_id(id)).collect(),
        is_automatic: args.marked_only,
    };
    let report = match replay::replay(context, &options) {
        Ok(report) => report,
        // Not an error of the command: what waits goes on waiting, and that is exit 3.
        Err(e) if e.kind() == engine::error::Kind::Busy => {
            output.stderr.push_str(&render::error(&e));
            return Ok(3);
        }
        Err(e) => return Err(e),
    };
    output.stdout = if args.json { format!("{}\n", report.to_json()) } else { report_text(&report) };
    Ok(report.exit_code())
}

fn report_text(report: &Report) -> String {
    let mut out = String::new();
    for row in &report.rows {
        let _ = writeln!(out, "  #{} {:<15} {}", row.seq, row.outcome.as_str(), line(&row.text));
    }
    if !out.is_empty() {
        out.push('\n');
    }
    let count = |outcome| report.count(outcome);
    if report.applied {
        let _ = writeln!(
            out,
            "Replayed: {} delivered, {} skipped, {} failed, {} refused, {} still pending.",
            count(Outcome::Delivered),
            count(Outcome::Skipped),
            count(Outcome::Failed),
            count(Outcome::Refused),
            report.pending
        );
    } else {
        let _ = writeln!(
            out,
            "Dry run: {} would be delivered, {} skipped, {} refused. Deliver with: forge-queue replay --apply",
            count(Outcome::Would),
            count(Outcome::Skipped),
            count(Outcome::Refused)
        );
    }
    if let Some(why) = &report.stopped {
        let _ = writeln!(out, "Stopped: {}.", line(why));
    }
    if let Some(note) = &report.note {
        let _ = writeln!(out, "note: {}", line(note));
    }
    match count(Outcome::Refused) {
        0 => {}
        1 => out.push_str("1 entry was refused and NOT sent — inspect with: forge-queue show <seq>\n"),
        n => {
            let _ =
                writeln!(out, "{n} entries were refused and NOT sent — inspect with: forge-queue show <seq>");
        }
    }
    out
}
