//! Named steps at which a test can kill this process (builds with debug assertions only).

/// Ends this process by SIGKILL when the test's variable names this step: `NAME`, or `NAME:3` for the
/// third time it is passed.
#[cfg(debug_assertions)]
#[allow(clippy::disallowed_methods)] // a test's switch is no setting
pub fn here(name: &str) {
    use std::sync::atomic::{AtomicU32, Ordering};
    static PASSED: AtomicU32 = AtomicU32::new(0);
    let Some(wanted) = std::env::var_os("BOB_FORGE_TEST_KILL_AT") else { return };
    let wanted = wanted.to_string_lossy();
    let (step, nth) = wanted.split_once(':').unwrap_or((&wanted, "1"));
    if step == name && (PASSED.fetch_add(1, Ordering::SeqCst) + 1).to_string() == nth {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
}

/// Nothing, in what is shipped.
#[cfg(not(debug_assertions))]
pub fn here(_name: &str) {}
