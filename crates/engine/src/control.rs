//! Guards that a reliability test can switch off, to show that it fails without them: a test that stays green
//! without its guard proves nothing.
//!
//! The switch exists in builds for tests only (the feature `control`, which no shipped build has; a test looks
//! for its variable's name in the shipped programs).

/// One guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// Every kernel lock: without it, whoever asks holds it.
    Lock,
    /// The end of every wait for a lock.
    LockBound,
    /// Writing aside and renaming: without it a file is edited in place.
    Aside,
    /// The identity of the log that a stored verdict was derived from.
    VerdictIdentity,
    /// The seal around a cached answer.
    CacheSeal,
    /// Every sync of the queue's files and folders.
    Sync,
    /// The line in the replay log before a delivery is sent.
    Attempt,
    /// The seal under a queued entry.
    EntrySeal,
    /// That the highest number stays on the disk when its entry goes.
    Number,
    /// That a stored verdict of another time is none.
    Clock,
    /// That a log line holds nothing but words of ours.
    Vocabulary,
    /// That a lease is taken over by unlinking the token that was seen.
    Token,
    /// That a lease is committed by renaming its own token.
    Fence,
    /// That the bytes which were checked are the bytes which are sent.
    Checked,
    /// That only a plain file of ours is opened, and none that is waited for.
    Plain,
    /// That a line of ours to a stream which takes none is no defect.
    Unheard,
    /// That a process's number alone says nothing about who it is.
    Start,
}

#[cfg(feature = "control")]
impl Guard {
    fn name(self) -> &'static str {
        match self {
            Guard::Lock => "lock",
            Guard::LockBound => "lock-bound",
            Guard::Aside => "aside",
            Guard::VerdictIdentity => "verdict-identity",
            Guard::CacheSeal => "cache-seal",
            Guard::Sync => "sync",
            Guard::Attempt => "attempt",
            Guard::EntrySeal => "entry-seal",
            Guard::Number => "number",
            Guard::Clock => "clock",
            Guard::Vocabulary => "vocabulary",
            Guard::Token => "token",
            Guard::Fence => "fence",
            Guard::Checked => "checked",
            Guard::Plain => "plain",
            Guard::Unheard => "unheard",
            Guard::Start => "start",
        }
    }

    /// Whether `FORGE_CONTROL` (names separated by commas) switches it off.
    #[allow(clippy::disallowed_methods)] // a test's switch is no setting
    pub fn is_off(self) -> bool {
        let off = std::env::var_os("FORGE_CONTROL");
        off.is_some_and(|off| off.to_string_lossy().split(',').any(|name| name == self.name()))
    }
}

#[cfg(not(feature = "control"))]
impl Guard {
    /// Never, in what is shipped.
    pub const fn is_off(self) -> bool {
        false
    }
}
