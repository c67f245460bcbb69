//! What replay does with one step of one entry: from its history, the clock and what the forge shows.
//!
//! Two mistakes are possible, and both are worse than waiting: a write that landed is sent again, or a
//! write that did not is taken for landed because something else looks like it. Therefore
//! - content is compared only for a step that may have got through;
//! - a match must be this account's, must not be older than the first attempt nor much younger than
//!   the last, and must be claimed by no other entry;
//! - after a lost answer nothing is decided until the forge has had time to finish (`RELIABILITY` D9).

use super::entry::{Reach, Status};
use super::journal::{History, Open};
use super::queued::Step;
use super::signal::Signal;

/// How long after its last attempt the forge may still show a write as new.
pub const LATE_MS: u64 = 120_000;

/// A clock that is further back than this was set; what it says about waiting is worth nothing.
const CLOCK_SET_MS: u64 = 3_600_000;

/// What to do with a step next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// It has landed: its URL, where it has one.
    Done(String),
    /// Not before so many milliseconds have passed.
    Wait(u64),
    /// Look at the forge first.
    Look,
    /// Send it.
    Send,
}

/// The next thing to do for a step, before anything was asked of the forge in this replay.
pub fn next(step: Step, history: &History, settle_ms: u64, now_ms: u64) -> Next {
    if let Some(result) = &history.done {
        return Next::Done(result.clone());
    }
    if let Some(open) = history.open {
        let left_ms = settle_left_ms(open, settle_ms, now_ms);
        if left_ms > 0 {
            return Next::Wait(left_ms);
        }
    }
    match (step, history.open) {
        // Closing what is closed drops the reason and says nothing: the state is always looked at.
        (Step::State, _) => Next::Look,
        // Setting a label, a title or a body lands the same final state twice.
        (Step::Edit | Step::Extras, _) | (_, None) => Next::Send,
        (Step::Create | Step::Comment, Some(_)) => Next::Look,
    }
}

fn settle_left_ms(open: Open, settle_ms: u64, now_ms: u64) -> u64 {
    if !open.is_lost || open.last_ms > now_ms.saturating_add(CLOCK_SET_MS) {
        return 0;
    }
    open.last_ms.saturating_add(settle_ms).saturating_sub(now_ms).min(settle_ms)
}

/// One comment or issue that the forge shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// Its URL.
    pub url: String,
    /// The account that made it.
    pub by: String,
    /// When, by the forge's clock, in whole epoch seconds.
    pub at_s: u64,
    /// Its title, for an issue.
    pub title: String,
    /// Its body.
    pub body: String,
}

/// What a write of ours would look like there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// This account; `None` where the forge does not tell (an app's token).
    pub by: Option<&'a str>,
    /// The title, for an issue.
    pub title: &'a str,
    /// The body.
    pub body: &'a str,
    /// The time in which it was made, in the forge's epoch seconds, both ends included.
    pub between_s: (u64, u64),
    /// What other entries have laid claim to.
    pub claimed: &'a [&'a str],
}

/// The write among what the forge shows: the oldest that fits.
pub fn find<'s>(wanted: &Wanted, shown: &'s [Shown]) -> Option<&'s Shown> {
    let (title, body) = (wanted.title.trim(), normal(wanted.body));
    let fits = |one: &&Shown| {
        wanted.by.is_none_or(|login| login.eq_ignore_ascii_case(&one.by))
            && (wanted.between_s.0..=wanted.between_s.1).contains(&one.at_s)
            && one.title.trim() == title
            && normal(&one.body) == body
            && !wanted.claimed.contains(&one.url.as_str())
    };
    shown.iter().filter(fits).min_by_key(|one| one.at_s)
}

/// A text as the forge gives it back: line ends of one kind, no white space at its end. gh and the
/// forge both change these, and nothing else.
pub fn normal(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n").trim_end().to_string()
}

/// How far the forge's clock is ahead of ours, from answers that were asked and dated at known times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skew {
    low_ms: i64,
    high_ms: i64,
}

impl Default for Skew {
    /// Nothing is known: clocks that somebody keeps are within a minute of each other.
    fn default() -> Skew {
        Skew { low_ms: -60_000, high_ms: 60_000 }
    }
}

impl Skew {
    /// Learns from one answer: its `Date` (whole seconds, cut off) lies between sending and receiving.
    pub fn learn(self, asked_ms: u64, answered_ms: u64, date_s: u64) -> Skew {
        let date_ms = i64::try_from(date_s.saturating_mul(1_000)).unwrap_or(i64::MAX);
        let ms = |at: u64| i64::try_from(at).unwrap_or(i64::MAX);
        let (low, high) = (date_ms - ms(answered_ms), date_ms + 999 - ms(asked_ms));
        let both = Skew { low_ms: self.low_ms.max(low), high_ms: self.high_ms.min(high) };
        // A clock that was set meanwhile: the newest answer is right.
        if both.low_ms <= both.high_ms { both } else { Skew { low_ms: low, high_ms: high } }
    }

    /// How far the forge may be behind us. Clocks that may agree are taken to agree to a tenth of a
    /// second, as clocks that are kept do: otherwise an equal write of a second ago would be ours.
    fn behind_ms(self) -> i64 {
        if self.low_ms <= 0 && self.high_ms >= 0 { self.low_ms.max(-100) } else { self.low_ms }
    }

    fn ahead_ms(self) -> i64 {
        self.high_ms
    }
}

/// The forge's seconds in which a write that may have landed can have been made.
pub fn window_s(open: Open, skew: Skew) -> (u64, u64) {
    let shift = |at_ms: u64, by_ms: i64| at_ms.saturating_add_signed(by_ms) / 1_000;
    let last_ms = open.last_ms.max(open.first_ms).saturating_add(LATE_MS);
    (shift(open.first_ms, skew.behind_ms()), shift(last_ms, skew.ahead_ms()))
}

/// What a failed step means for its entry and for the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// The forge cannot take it now: everything waits.
    Stop,
    /// Only whether the forge answers at all tells: ask it (`gh api rate_limit`), then
    /// [`after_auth`].
    Ask,
    /// It may have landed in spite of its failure: look, then [`after_looking`].
    Look,
    /// It uses up an attempt; later entries of the same issue wait.
    Again,
    /// The entry is set aside.
    SetAside(Status),
}

/// What follows from a delivery that failed with `signal`. `attempts` are those used up, this one
/// not counted, of `attempts_max`.
pub fn after(step: Step, signal: Signal, reach: Reach, attempts: u32, attempts_max: u32) -> After {
    match signal {
        Signal::Net | Signal::Server | Signal::RateLimit => After::Stop,
        Signal::Auth => After::Ask,
        Signal::Ok | Signal::NotFound | Signal::Other if reach != Reach::Nothing && is_looked_for(step) => {
            After::Look
        }
        Signal::NotFound if step != Step::Create => After::SetAside(Status::Skipped),
        Signal::Ok | Signal::NotFound | Signal::Other => again(attempts, attempts_max),
    }
}

/// After [`After::Ask`]: whether the forge answered.
pub fn after_auth(forge_answers: bool, attempts: u32, attempts_max: u32) -> After {
    if forge_answers { again(attempts, attempts_max) } else { After::Stop }
}

/// After [`After::Look`] found nothing.
pub fn after_looking(step: Step, signal: Signal, attempts: u32, attempts_max: u32) -> After {
    after(step, signal, Reach::Nothing, attempts, attempts_max)
}

fn is_looked_for(step: Step) -> bool {
    matches!(step, Step::Create | Step::Comment)
}

fn again(attempts: u32, attempts_max: u32) -> After {
    if attempts + 1 >= attempts_max { After::SetAside(Status::Failed) } else { After::Again }
}

#[cfg(test)]
#[path = "replay_tests.rs"]
mod tests;
