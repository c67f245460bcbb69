//! Named steps at which a test can kill this process, fail it, or hold one of its threads (the feature
//! `control`; nothing of it is shipped).
//!
//! | variable | what it does |
//! | --- | --- |
//! | `BOB_FORGE_TEST_KILL_AT=NAME[:N]` | SIGKILL when the step of this name is passed (the N-th time) |
//! | `BOB_FORGE_TEST_BREAK=N:kill`, `N:28` | SIGKILL at the N-th step of all, or that step fails with this error number |
//! | `BOB_FORGE_TEST_STEPS=FILE` | a line for each step: its name, and `!` where it cannot fail |
//!
//! A thread may carry a hook instead, which is called at each step and may hold it there: so a test runs
//! two use cases in every order of their steps.

use std::io;

/// A step that may fail in the way the system's own call behind it may.
///
/// # Errors
/// What a test asked for; never in what is shipped.
#[inline]
pub fn step(name: &str) -> io::Result<()> {
    on::pass(name, true)
}

/// A step at which nothing can fail.
#[inline]
pub fn here(name: &str) {
    let _ = on::pass(name, false);
}

/// A wait for another process or thread, which a hook makes one for its turn.
#[allow(clippy::disallowed_methods)] // the one wait of the stores, for a lock
pub fn wait(time: std::time::Duration) {
    if !on::waits_for_its_turn() {
        std::thread::sleep(time);
    }
}

#[cfg(feature = "control")]
pub use on::hooked;

#[cfg(feature = "control")]
mod on {
    use std::cell::RefCell;
    use std::io::{self, Write};
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

    /// What a hook is told: the step's name; `None` while its thread waits for others.
    type Hook = Box<dyn Fn(Option<&str>)>;

    thread_local! {
        static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
    }

    /// Runs `work` with `hook` called at each step of this thread.
    pub fn hooked<T>(hook: impl Fn(Option<&str>) + 'static, work: impl FnOnce() -> T) -> T {
        HOOK.set(Some(Box::new(hook)));
        let done = work();
        HOOK.set(None);
        done
    }

    fn call_hook(name: Option<&str>) -> bool {
        HOOK.with_borrow(|hook| hook.as_ref().map(|hook| hook(name)).is_some())
    }

    pub fn waits_for_its_turn() -> bool {
        call_hook(None)
    }

    struct Wanted {
        kill_at: Option<(String, u32)>,
        broken: Option<(u32, Option<i32>)>,
        steps: Option<std::ffi::OsString>,
    }

    #[allow(clippy::disallowed_methods)] // a test's switches are no settings
    fn wanted() -> &'static Wanted {
        static WANTED: OnceLock<Wanted> = OnceLock::new();
        WANTED.get_or_init(|| {
            let text = |name| std::env::var(name).ok();
            let kill_at = text("BOB_FORGE_TEST_KILL_AT").map(|wanted| {
                let (step, nth) = wanted.split_once(':').unwrap_or((&wanted, "1"));
                (step.to_string(), nth.parse().unwrap_or(1))
            });
            let broken = text("BOB_FORGE_TEST_BREAK")
                .and_then(|wanted| wanted.split_once(':').map(|(n, how)| (n.parse().ok(), how.parse().ok())))
                .and_then(|(n, how)| Some((n?, how)));
            Wanted { kill_at, broken, steps: std::env::var_os("BOB_FORGE_TEST_STEPS") }
        })
    }

    #[allow(clippy::disallowed_methods)] // a test's file is none of ours
    pub fn pass(name: &str, may_fail: bool) -> io::Result<()> {
        static OF_THE_NAME: AtomicU32 = AtomicU32::new(0);
        static OF_ALL: AtomicU32 = AtomicU32::new(0);
        if call_hook(Some(name)) {
            return Ok(());
        }
        let Wanted { kill_at, broken, steps } = wanted();
        if kill_at
            .as_ref()
            .is_some_and(|(step, nth)| step == name && OF_THE_NAME.fetch_add(1, SeqCst) + 1 == *nth)
        {
            kill();
        }
        if let Some(file) = steps {
            let mark = if may_fail { "" } else { "!" };
            let file = std::fs::File::options().append(true).create(true).open(file);
            let _ = file.and_then(|mut file| writeln!(file, "{name}{mark}"));
        }
        match broken {
            Some((n, how)) if OF_ALL.fetch_add(1, SeqCst) + 1 == *n => match how {
                None => kill(),
                Some(number) if may_fail => return Err(io::Error::from_raw_os_error(*number)),
                Some(_) => {}
            },
            _ => {}
        }
        Ok(())
    }

    fn kill() {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
}

#[cfg(not(feature = "control"))]
mod on {
    #[inline]
    pub const fn pass(_name: &str, _may_fail: bool) -> std::io::Result<()> {
        Ok(())
    }

    #[inline]
    pub const fn waits_for_its_turn() -> bool {
        false
    }
}
