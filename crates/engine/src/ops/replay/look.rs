//! What the forge shows, read from its list endpoints: a search may not know yet what exists (#1750).

use serde_json::Value;

use super::gh::{Answer, Gh};
use crate::decide::replay::{Shown, Skew};
use crate::decide::repo::Repo;
use crate::decide::signal::Signal;

/// Pages of one hundred; nobody makes more in the time that is asked about.
const PAGES_MAX: u32 = 30;
/// How many numbers past the highest known one are asked for: a list may lag behind.
const PROBES_MAX: u64 = 20;

/// What is asked of the forge in one replay.
#[derive(Debug)]
pub(super) struct Look {
    repo: Repo,
    pub(super) skew: Skew,
    login: Option<Option<String>>,
}

/// A read that did not give an answer to go by.
#[derive(Clone, Debug)]
pub(super) struct NoAnswer {
    pub(super) signal: Signal,
    pub(super) why: String,
}

/// An issue's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IssueState {
    pub(super) is_open: bool,
}

impl Look {
    pub(super) fn new(repo: &Repo) -> Look {
        Look { repo: repo.clone(), skew: Skew::default(), login: None }
    }

    /// This account's name; `None` where the forge does not tell it to such a token.
    pub(super) fn login(&mut self, gh: &Gh) -> Result<Option<String>, NoAnswer> {
        if let Some(known) = &self.login {
            return Ok(known.clone());
        }
        let login = match self.get(gh, "user") {
            Ok(user) => user["login"].as_str().map(str::to_string),
            Err(NoAnswer { signal: Signal::Auth | Signal::NotFound | Signal::Other, .. }) => None,
            Err(e) => return Err(e),
        };
        self.login = Some(login.clone());
        Ok(login)
    }

    /// The comments of an issue that were made or changed since `since_s` of the forge's clock.
    pub(super) fn comments(&mut self, gh: &Gh, number: u64, since_s: u64) -> Result<Vec<Shown>, NoAnswer> {
        let mut shown = Vec::new();
        for page in 1..=PAGES_MAX {
            let since = utc(since_s);
            let path = self.path(&format!("issues/{number}/comments?per_page=100&page={page}&since={since}"));
            let rows = self.list(gh, &path)?;
            shown.extend(rows.iter().filter_map(as_shown));
            if rows.len() < 100 {
                return Ok(shown);
            }
        }
        Err(too_much("comments"))
    }

    /// The issues made since `since_s` of the forge's clock, pull requests left out.
    pub(super) fn issues(&mut self, gh: &Gh, since_s: u64) -> Result<Vec<Shown>, NoAnswer> {
        let (mut shown, mut highest) = (Vec::new(), 0);
        for page in 1..=PAGES_MAX {
            let query = "issues?state=all&sort=created&direction=desc&per_page=100";
            let rows = self.list(gh, &self.path(&format!("{query}&page={page}")))?;
            highest = rows.iter().filter_map(|row| row["number"].as_u64()).max().unwrap_or(0).max(highest);
            let is_past = |row: &Value| as_shown(row).is_some_and(|one| one.at_s < since_s);
            let done = rows.len() < 100 || rows.iter().any(is_past);
            shown.extend(rows.iter().filter(|row| row.get("pull_request").is_none()).filter_map(as_shown));
            if done {
                self.probe(gh, highest, &mut shown)?;
                return Ok(shown);
            }
        }
        Err(too_much("issues"))
    }

    /// Asks for the numbers after the highest one that the list showed.
    fn probe(&mut self, gh: &Gh, highest: u64, shown: &mut Vec<Shown>) -> Result<(), NoAnswer> {
        for number in highest + 1..=highest + PROBES_MAX {
            match self.get(gh, &self.path(&format!("issues/{number}"))) {
                Ok(row) if row.get("pull_request").is_none() => shown.extend(as_shown(&row)),
                Ok(_) => {}
                Err(NoAnswer { signal: Signal::NotFound, .. }) => return Ok(()),
                // A number whose issue was deleted has an answer of its own (410).
                Err(NoAnswer { signal: Signal::Other, .. }) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Whether the repository can be seen at all.
    pub(super) fn repository(&mut self, gh: &Gh) -> Result<(), NoAnswer> {
        let path = format!("repos/{}/{}", self.repo.owner, self.repo.name);
        self.get(gh, &path).map(drop)
    }

    /// Whether an issue is open.
    pub(super) fn state(&mut self, gh: &Gh, number: u64) -> Result<IssueState, NoAnswer> {
        let issue = self.get(gh, &self.path(&format!("issues/{number}")))?;
        match issue["state"].as_str() {
            Some(state) => Ok(IssueState { is_open: state.eq_ignore_ascii_case("open") }),
            None => Err(NoAnswer { signal: Signal::Server, why: "the forge named no state".into() }),
        }
    }

    fn path(&self, tail: &str) -> String {
        format!("repos/{}/{}/{tail}", self.repo.owner, self.repo.name)
    }

    fn list(&mut self, gh: &Gh, path: &str) -> Result<Vec<Value>, NoAnswer> {
        match self.get(gh, path)? {
            Value::Array(rows) => Ok(rows),
            _ => Err(NoAnswer { signal: Signal::Server, why: "the forge gave no list".into() }),
        }
    }

    /// One `gh api` read, its headers with it: the forge's clock is in them.
    fn get(&mut self, gh: &Gh, path: &str) -> Result<Value, NoAnswer> {
        let host = self.repo.host.clone();
        let argv = ["api".into(), "-i".into(), "--hostname".into(), host, path.to_string()];
        let answer = gh.run(&argv, None, false, None);
        let (head, body) = split(&answer.stdout);
        if let Some(date_s) = head.and_then(date) {
            self.skew = self.skew.learn(answer.started_ms, answer.ended_ms, date_s);
        }
        let signal = status(head).filter(|_| answer.signal == Signal::Other).unwrap_or(answer.signal);
        if signal != Signal::Ok {
            return Err(NoAnswer { signal, why: answer.why });
        }
        // A page of a proxy's, or a cut answer.
        serde_json::from_slice(body).map_err(|_| NoAnswer { signal: Signal::Net, why: unreadable(&answer) })
    }
}

fn unreadable(answer: &Answer) -> String {
    format!("an answer that is no JSON ({} bytes)", answer.stdout.len())
}

fn too_much(what: &str) -> NoAnswer {
    NoAnswer { signal: Signal::Other, why: format!("too many {what} to look through") }
}

/// An issue that is gone answers 410 as well as 404.
fn status(head: Option<&str>) -> Option<Signal> {
    let code = head?.split_ascii_whitespace().nth(1)?;
    (code == "410").then_some(Signal::NotFound)
}

/// Headers and body of what `gh api -i` prints; without headers it is all body.
fn split(stdout: &[u8]) -> (Option<&str>, &[u8]) {
    if !stdout.starts_with(b"HTTP/") {
        return (None, stdout);
    }
    let end = stdout.windows(4).position(|w| w == b"\r\n\r\n").map(|at| (at, at + 4));
    let end = end.or_else(|| stdout.windows(2).position(|w| w == b"\n\n").map(|at| (at, at + 2)));
    match end {
        Some((head, body)) => (std::str::from_utf8(&stdout[..head]).ok(), &stdout[body..]),
        None => (None, stdout),
    }
}

fn date(head: &str) -> Option<u64> {
    let line =
        head.lines().find(|line| line.get(..5).is_some_and(|name| name.eq_ignore_ascii_case("date:")))?;
    http_date(line[5..].trim())
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`.
fn http_date(text: &str) -> Option<u64> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let parts: Vec<&str> = text.split_ascii_whitespace().collect();
    let [_, day, month, year, clock, _] = parts[..] else { return None };
    let month = MONTHS.find(month)? as u64 / 3 + 1;
    epoch_s(year.parse().ok()?, month, day.parse().ok()?, clock)
}

/// `2026-01-02T03:04:05Z`.
fn iso_date(text: &str) -> Option<u64> {
    let (day, clock) = text.strip_suffix('Z')?.split_once('T')?;
    let parts: Vec<u64> = day.split('-').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [year, month, day] = parts[..] else { return None };
    epoch_s(year, month, day, clock)
}

fn epoch_s(year: u64, month: u64, day: u64, clock: &str) -> Option<u64> {
    let parts: Vec<u64> = clock
        .split(':')
        .map(|part| part.split('.').next().unwrap_or_default().parse().ok())
        .collect::<Option<_>>()?;
    let [hour, minute, second] = parts[..] else { return None };
    Some(days(year, month, day)? * 86_400 + hour * 3_600 + minute * 60 + second)
}

/// Days since 1970 of a date in the Gregorian calendar.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    if !(1970..10_000).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // A year that begins in March has its leap day at its end.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, of_era) = (y / 400, y % 400);
    let of_year = (153 * m + 2) / 5 + day - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

/// Epoch seconds as `2026-01-02T03:04:05Z`.
fn utc(at_s: u64) -> String {
    let (day, rest) = (at_s / 86_400 + 719_468, at_s % 86_400);
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let m = (5 * of_year + 2) / 153;
    let (day, month) = (of_year - (153 * m + 2) / 5 + 1, if m < 10 { m + 3 } else { m - 9 });
    let year = year + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3_600, rest / 60 % 60, rest % 60)
}

fn as_shown(row: &Value) -> Option<Shown> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    Some(Shown {
        url: row["html_url"].as_str()?.to_string(),
        by: text(&row["user"]["login"]),
        at_s: iso_date(row["created_at"].as_str()?)?,
        title: text(&row["title"]),
        body: text(&row["body"]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_and_written_back() {
        assert_eq!(http_date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(iso_date("2026-11-29T19:10:07Z"), iso_date("2026-11-29T19:10:07.123Z"));
        for at_s in [0, 951_782_400, 951_868_799, 1_790_000_000, 4_102_444_799, 68_169_600] {
            assert_eq!(iso_date(&utc(at_s)), Some(at_s), "{}", utc(at_s));
        }
        assert_eq!(utc(784_111_777), "1994-11-06T08:49:37Z");
        for odd in ["", "2026-11-29", "2026-13-01T00:00:00Z", "x-y-zT1:2:3Z", "2026-11-29T19:10Z"] {
            assert_eq!(iso_date(odd), None, "{odd}");
        }
    }

    #[test]
    fn headers_are_told_from_the_body() {
        let (head, body) = split(b"HTTP/2.0 200 OK\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nX: y\r\n\r\n[1]");
        assert_eq!((head.and_then(date), body), (Some(784_111_777), &b"[1]"[..]));
        assert_eq!(split(b"[1]"), (None, &b"[1]"[..]));
        assert_eq!(status(Some("HTTP/1.1 410 Gone")), Some(Signal::NotFound));
    }
}
