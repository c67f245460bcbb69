//! The clock, read here and passed on.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Seconds since the epoch; 0 for a clock set before it.
pub fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Nanoseconds since the epoch; 0 for a clock set before it. For telling which of two calls started
/// first, also within one second.
pub fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// Milliseconds since the epoch; 0 for a clock set before it.
pub fn now_ms() -> u64 {
    now_ns() / 1_000_000
}

/// Waits, but not past a signal that asks this process to end.
pub fn pause_ms(ms: u64) {
    const STEP_MS: u64 = 50;
    let stopwatch = Stopwatch::start();
    while super::signals::received().is_none() {
        match ms.saturating_sub(stopwatch.ms()) {
            0 => return,
            left => std::thread::sleep(std::time::Duration::from_millis(left.min(STEP_MS))),
        }
    }
}

/// Measures one call on the monotonic clock, so that a clock set meanwhile does not show.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts measuring.
    pub fn start() -> Stopwatch {
        Stopwatch(Instant::now())
    }

    /// Milliseconds since the start.
    pub fn ms(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
