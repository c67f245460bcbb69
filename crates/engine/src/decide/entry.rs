//! One queued write: what its file holds, and how it may change (#1750).

use serde::{Deserialize, Serialize};

use super::write::WriteKind;

/// The schema every entry names.
pub const SCHEMA: &str = "bob-forge-queue/1";

/// The highest number an entry can have: its files have six digits.
pub const SEQ_MAX: u32 = 999_999;

/// What became of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It waits for the forge.
    Pending,
    /// It landed.
    Delivered,
    /// It was left out on purpose: its target is gone, what it depends on never landed, or it would
    /// wipe an issue's body.
    Skipped,
    /// The forge refused it, as often as it may.
    Failed,
    /// It did not pass the checks before a delivery and was never sent (#3635).
    Refused,
    /// A person set it aside.
    Dropped,
}

impl Status {
    /// Every status.
    pub const ALL: [Status; 6] = [
        Status::Pending,
        Status::Delivered,
        Status::Skipped,
        Status::Failed,
        Status::Refused,
        Status::Dropped,
    ];

    /// The name that entries and messages use.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Pending => "pending",
            Status::Delivered => "delivered",
            Status::Skipped => "skipped",
            Status::Failed => "failed",
            Status::Refused => "refused",
            Status::Dropped => "dropped",
        }
    }

    /// Whether it will not arrive on its own and nobody has said that it need not.
    pub fn needs_a_person(self) -> bool {
        matches!(self, Status::Skipped | Status::Failed | Status::Refused)
    }
}

/// How far an attempt can have got, as far as its end tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reach {
    /// Not to the forge, or the forge refused it: nothing was written.
    Nothing,
    /// The forge answered, and may have written (a part of) it.
    Perhaps,
    /// The connection was lost, timed out or was cut: the forge may still be writing it.
    Unknown,
}

impl Reach {
    /// The name the log uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Reach::Nothing => "nothing",
            Reach::Perhaps => "perhaps",
            Reach::Unknown => "unknown",
        }
    }

    /// The reach with this name.
    pub fn parse(name: &str) -> Option<Reach> {
        [Reach::Nothing, Reach::Perhaps, Reach::Unknown].into_iter().find(|reach| reach.as_str() == name)
    }
}

/// The live call that failed and led to the entry: its first attempt, where it may have got through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Live {
    /// When it started, in milliseconds since the epoch.
    pub started_ms: u64,
    /// When it ended, in milliseconds since the epoch.
    pub ended_ms: u64,
    /// How far it can have got.
    pub reach: Reach,
}

/// One queued write, as its `NNNNNN.json` holds it. Times are epoch seconds where nothing else is said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// [`SCHEMA`].
    pub schema: String,
    /// Its number: the order of delivery.
    pub seq: u32,
    /// `q000003`.
    pub id: String,
    /// Which of the five.
    pub kind: WriteKind,
    /// `host/owner/name`.
    pub repo: String,
    /// The issue: its number or a handle; `None` for a create.
    pub target: Option<String>,
    /// `BOB-Q3`, for a create.
    pub handle: Option<String>,
    /// A digest of what is written: equal writes have equal keys.
    #[serde(default)]
    pub key: String,
    /// The command to run, without `gh`; its body is read from `body_file`.
    pub argv: Vec<String>,
    /// The body, in the entry's own folder.
    pub body_file: Option<String>,
    /// When it was queued.
    #[serde(default)]
    pub enqueued_at: u64,
    /// What became of it.
    pub status: Status,
    /// Why, in words.
    pub reason: Option<String>,
    /// Deliveries that used up an attempt.
    #[serde(default)]
    pub attempts: u32,
    /// When it was first attempted.
    pub first_attempt_at: Option<u64>,
    /// When it was last attempted.
    pub last_attempt_at: Option<u64>,
    /// The URL it has on the forge.
    pub result: Option<String>,
    /// Why the live call did not deliver it.
    pub signal: Option<String>,
    /// The live call.
    pub live: Option<Live>,
    /// Whose write it is.
    #[serde(default)]
    pub caller: String,
    /// The session it came from.
    #[serde(default)]
    pub session: String,
    /// The machine's signature under all of this, its body and its project.
    #[serde(default)]
    pub seal: String,
}

/// `q000003`.
pub fn id(seq: u32) -> String {
    format!("q{seq:06}")
}

/// `BOB-Q3`.
pub fn handle(seq: u32) -> String {
    format!("BOB-Q{seq}")
}

/// The number behind `3`, `#3`, `q000003`.
pub fn parse_id(text: &str) -> Option<u32> {
    let digits = text.strip_prefix(['#', 'q']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok().filter(|seq| (1..=SEQ_MAX).contains(seq))
}

/// The number behind `BOB-Q3`, exactly.
pub fn parse_handle(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("BOB-Q")?;
    if digits.starts_with('0') || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok().filter(|seq| (1..=SEQ_MAX).contains(seq))
}

/// The issue number at the end of an issue's URL.
pub fn number_in_url(url: &str) -> Option<u64> {
    let (_, tail) = url.trim().rsplit_once("/issues/").or_else(|| url.trim().rsplit_once("/pull/"))?;
    let digits = tail.split(['#', '?', '/']).next()?;
    digits.parse().ok().filter(|number| *number > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_handles_are_read_as_people_write_them() {
        for text in ["3", "#3", "q000003", "000003"] {
            assert_eq!(parse_id(text), Some(3), "{text}");
        }
        for text in ["", "0", "-3", "q", "x3", "1000000", "3 ", "99999999999"] {
            assert_eq!(parse_id(text), None, "{text}");
        }
        assert_eq!(
            (parse_handle("BOB-Q12"), id(12), handle(12)),
            (Some(12), "q000012".into(), "BOB-Q12".into())
        );
        for text in ["BOB-Q", "BOB-Q0", "BOB-Q01", "bob-q1", "BOB-Q1x", " BOB-Q1", "BOB-Q1000000"] {
            assert_eq!(parse_handle(text), None, "{text}");
        }
        assert_eq!(number_in_url("https://github.com/acme/widget/issues/42#issuecomment-7\n"), Some(42));
        assert_eq!(number_in_url("https://github.com/acme/widget"), None);
    }
}
