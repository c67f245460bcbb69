//! Every variable the engine reads: one documented constant, its default and its parser each.
//!
//! A number that does not parse falls back to its default; [`Settings::ignored`] names it, and
//! `forge … status` says so (never the shim).

use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub mod budget;
pub mod queue;

use budget::Budget;
use queue::Queue;

/// `BOB_HOME`: where BoB is installed. Default `~/.claude`.
pub const BOB_HOME: &str = "BOB_HOME";
/// `BOB_FORGE_STATE`: the machine-wide state folder. Default `$BOB_HOME/forge` (#1748).
pub const STATE: &str = "BOB_FORGE_STATE";
/// `BOB_FORGE_TTL`: seconds a cached verdict is reused. Default 60 (#1748).
pub const TTL: &str = "BOB_FORGE_TTL";
/// `BOB_FORGE_WINDOW`: seconds back that an observation is evidence. Default 300 (#1748).
pub const WINDOW: &str = "BOB_FORGE_WINDOW";
/// `BOB_FORGE_PROBE_TIMEOUT`: seconds after which a hanging probe is ended and is `net`. Default 10.
pub const PROBE_TIMEOUT: &str = "BOB_FORGE_PROBE_TIMEOUT";
/// `BOB_FORGE_CALLER`: the kind of caller (`groom`, `brief`, `tick`), appended to the folder's name.
pub const CALLER: &str = "BOB_FORGE_CALLER";
/// `BOB_FORGE_DEPTH`: how many shims are above this one; set by the shim, cuts a loop on PATH.
pub const DEPTH: &str = "BOB_FORGE_DEPTH";
/// `BOB_FORGE_MEASURE`: where the calls of a measured command are noted; set by `forge budget measure`.
pub const MEASURE: &str = "BOB_FORGE_MEASURE";
/// `BOB_FORGE_BATCH`: 0 reads one issue per call where a batch would be used. Default 1.
pub const BATCH: &str = "BOB_FORGE_BATCH";
/// `CLAUDE_CODE_SESSION_ID`: the session a call belongs to; its first eight characters are recorded.
pub const SESSION: &str = "CLAUDE_CODE_SESSION_ID";
/// `HOME`: where `BOB_HOME` lies by default.
pub const HOME: &str = "HOME";
/// `PATH`: where the real gh is looked for.
pub const PATH: &str = "PATH";
/// `GH_HOST`: gh's own default host.
pub const GH_HOST: &str = "GH_HOST";
/// `GH_REPO`: gh's own default repository.
pub const GH_REPO: &str = "GH_REPO";
/// `GH_CONFIG_DIR`: where gh keeps `hosts.yml`. Default `$XDG_CONFIG_HOME/gh`, else `~/.config/gh`.
pub const GH_CONFIG_DIR: &str = "GH_CONFIG_DIR";
/// `XDG_CONFIG_HOME`: where gh and git look for their files. Default `~/.config`.
pub const XDG_CONFIG_HOME: &str = "XDG_CONFIG_HOME";
/// `GIT_DIR`: git's own choice of a checkout's git folder.
pub const GIT_DIR: &str = "GIT_DIR";
/// `GIT_CONFIG_GLOBAL`: git's own: the one file that stands for the user's two.
pub const GIT_CONFIG_GLOBAL: &str = "GIT_CONFIG_GLOBAL";
/// `GIT_CONFIG_NOSYSTEM`: git's own: leaves `/etc/gitconfig` out.
pub const GIT_CONFIG_NOSYSTEM: &str = "GIT_CONFIG_NOSYSTEM";

/// `BOB_FORGE_CACHE`: 0 turns the read cache off: nothing is stored, nothing is served (#1749).
pub const CACHE: &str = "BOB_FORGE_CACHE";
/// `BOB_FORGE_CACHE_MAX_AGE`: seconds after which a stored answer is not served any more. Default
/// 86400 (#1749).
pub const CACHE_MAX_AGE: &str = "BOB_FORGE_CACHE_MAX_AGE";
/// `GH_TOKEN` and its siblings: as whom gh asks. Only a fingerprint of one is ever written down.
pub const GH_TOKEN: &str = "GH_TOKEN";
/// `GITHUB_TOKEN`: see [`GH_TOKEN`].
pub const GITHUB_TOKEN: &str = "GITHUB_TOKEN";
/// `GH_ENTERPRISE_TOKEN`: see [`GH_TOKEN`], for other hosts than github.com and its subdomains.
pub const GH_ENTERPRISE_TOKEN: &str = "GH_ENTERPRISE_TOKEN";
/// `GITHUB_ENTERPRISE_TOKEN`: see [`GH_ENTERPRISE_TOKEN`].
pub const GITHUB_ENTERPRISE_TOKEN: &str = "GITHUB_ENTERPRISE_TOKEN";
/// `GH_FORCE_TTY`: gh writes as for a terminal, with relative times that a stored answer would freeze.
pub const GH_FORCE_TTY: &str = "GH_FORCE_TTY";

/// What changes the bytes of an answer besides argv when it goes to no terminal.
pub const OUTPUT_SHAPE: [&str; 8] = [
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "GH_COLOR_LABELS",
    "GH_MDWIDTH",
    "GLAMOUR_STYLE",
    "NO_COLOR",
    "TZ",
];

/// Every variable: what a front end has to hand to the engine.
pub const NAMES: &[&str] = &[
    BOB_HOME,
    STATE,
    TTL,
    WINDOW,
    PROBE_TIMEOUT,
    CALLER,
    DEPTH,
    BATCH,
    MEASURE,
    SESSION,
    HOME,
    PATH,
    GH_HOST,
    GH_REPO,
    GH_CONFIG_DIR,
    XDG_CONFIG_HOME,
    GIT_DIR,
    GIT_CONFIG_GLOBAL,
    GIT_CONFIG_NOSYSTEM,
    CACHE,
    CACHE_MAX_AGE,
    GH_TOKEN,
    GITHUB_TOKEN,
    GH_ENTERPRISE_TOKEN,
    GITHUB_ENTERPRISE_TOKEN,
    GH_FORCE_TTY,
    OUTPUT_SHAPE[0],
    OUTPUT_SHAPE[1],
    OUTPUT_SHAPE[2],
    OUTPUT_SHAPE[3],
    OUTPUT_SHAPE[4],
    OUTPUT_SHAPE[5],
    OUTPUT_SHAPE[6],
    OUTPUT_SHAPE[7],
    budget::BUDGET,
    budget::BUDGET_TTL,
    budget::FLOOR.graphql,
    budget::FLOOR.core,
    budget::FLOOR.search,
    budget::PACE.graphql,
    budget::PACE.core,
    budget::PACE.search,
    budget::PACE_SECONDS,
    budget::MAX_WAIT,
    budget::BACKOFF_START,
    budget::BACKOFF_MAX,
    budget::INTERACTIVE,
    budget::RATE.graphql,
    budget::RATE.core,
    budget::RATE.search,
    budget::RATE_WINDOW,
    budget::BACKGROUND,
    budget::BACKGROUND_SHARE,
    budget::BACKGROUND_DEFER,
    budget::JOURNAL_AFTER,
    budget::DEADLINE,
    budget::SLEEP,
    queue::QUEUE,
    queue::QUEUE_MAX,
    queue::ATTEMPTS,
    queue::BATCH,
    queue::SETTLE,
    queue::REPLAY,
    queue::SPACING_MS,
    queue::REPLAY_SECONDS,
];

/// How deep shims may be nested before the shim takes it for a loop (`CONTRACT` section 2).
pub const MAX_DEPTH: u32 = 8;

/// A look-up in an environment: the process's own, or one a JS caller handed over.
pub trait Lookup {
    /// The value of `name`, where it is set.
    fn var(&self, name: &str) -> Option<OsString>;

    /// The value of `name`, where it is set to something: set to nothing counts as not set, as in a
    /// shell's `${NAME:-default}`.
    fn nonempty(&self, name: &str) -> Option<OsString> {
        self.var(name).filter(|value| !value.is_empty())
    }
}

impl<F: Fn(&str) -> Option<OsString>> Lookup for F {
    fn var(&self, name: &str) -> Option<OsString> {
        self(name)
    }
}

/// The settings of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The machine-wide state folder; `None` when neither it nor `BOB_HOME` nor `HOME` is set.
    pub state: Option<PathBuf>,
    /// Seconds a cached verdict is reused.
    pub ttl_s: u64,
    /// Seconds back that an observation is evidence.
    pub window_s: u64,
    /// Seconds after which a hanging probe is ended.
    pub probe_timeout_s: u64,
    /// Whether answers are stored and served.
    pub cache_enabled: bool,
    /// Seconds after which a stored answer is not served any more.
    pub cache_max_age_s: u64,
    /// The quota budget's own.
    pub budget: Budget,
    /// The write queue's own.
    pub queue: Queue,
    /// Names and values of variables that did not parse and fell back to their default.
    pub ignored: Vec<(&'static str, String)>,
}

impl Settings {
    /// Reads the settings out of an environment.
    pub fn read(env: &impl Lookup) -> Settings {
        let mut reader = Reader { env, ignored: Vec::new() };
        Settings {
            state: state_folder(env),
            ttl_s: reader.number(TTL, 60),
            window_s: reader.number(WINDOW, 300),
            probe_timeout_s: reader.number(PROBE_TIMEOUT, 10),
            cache_enabled: reader.flag(CACHE, true),
            cache_max_age_s: reader.number(CACHE_MAX_AGE, 86_400),
            budget: Budget::read(&mut reader),
            queue: Queue::read(&mut reader),
            ignored: reader.ignored,
        }
    }
}

/// Reads numbers, and keeps the names of those that are none.
struct Reader<'a, L> {
    env: &'a L,
    ignored: Vec<(&'static str, String)>,
}

impl<L: Lookup> Reader<'_, L> {
    fn number(&mut self, name: &'static str, default: u64) -> u64 {
        self.optional(name).unwrap_or(default)
    }

    fn optional(&mut self, name: &'static str) -> Option<u64> {
        let value = self.text(name)?;
        let number = value.to_str().and_then(|v| v.trim().parse::<u64>().ok());
        if number.is_none() {
            self.ignored.push((name, value.to_string_lossy().into_owned()));
        }
        number
    }

    /// 0 for no, any other number for yes.
    fn flag(&mut self, name: &'static str, default: bool) -> bool {
        self.number(name, default.into()) != 0
    }

    fn text(&mut self, name: &'static str) -> Option<OsString> {
        self.env.nonempty(name)
    }
}

/// `$BOB_HOME`, by default `~/.claude`; `None` when `HOME` is not set either.
pub fn bob_home(env: &impl Lookup) -> Option<PathBuf> {
    match env.nonempty(BOB_HOME) {
        Some(home) => Some(home.into()),
        None => env.nonempty(HOME).map(|home| Path::new(&home).join(".claude")),
    }
}

fn state_folder(env: &impl Lookup) -> Option<PathBuf> {
    match env.nonempty(STATE) {
        Some(state) => Some(state.into()),
        None => bob_home(env).map(|home| home.join("forge")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &'static [(&str, &str)]) -> impl Lookup {
        move |name: &str| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v))
    }

    #[test]
    fn the_state_folder_follows_bob_home_and_home() {
        let state = |pairs| Settings::read(&env(pairs)).state;
        assert_eq!(state(&[("HOME", "/h")]), Some("/h/.claude/forge".into()));
        assert_eq!(state(&[("HOME", "/h"), ("BOB_HOME", "/b")]), Some("/b/forge".into()));
        assert_eq!(state(&[("BOB_HOME", "/b"), ("BOB_FORGE_STATE", "/s")]), Some("/s".into()));
        assert_eq!(state(&[("HOME", "/h"), ("BOB_FORGE_STATE", "")]), Some("/h/.claude/forge".into()));
        assert_eq!(state(&[]), None);
    }

    #[test]
    fn a_number_that_does_not_parse_falls_back_and_is_named() {
        let settings = Settings::read(&env(&[("BOB_FORGE_TTL", "5m"), ("BOB_FORGE_WINDOW", " 30 ")]));
        assert_eq!((settings.ttl_s, settings.window_s), (60, 30));
        assert_eq!(settings.ignored, vec![(TTL, "5m".to_string())]);
    }

    /// A front end hands over the variables in [`NAMES`] and no others: one that is missing there would
    /// be read by the shim and never by a JS caller.
    #[test]
    #[allow(clippy::disallowed_methods)] // it reads the sources that it judges
    fn every_variable_of_these_files_is_handed_over() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let folder = std::fs::read_dir(source.join("settings")).unwrap().map(|entry| entry.unwrap().path());
        for file in folder.chain([source.join("settings.rs")]) {
            let text = std::fs::read_to_string(&file).unwrap();
            let code = text.split_once("\nmod tests {").map_or(&*text, |(code, _)| code);
            let code = code.lines().filter(|line| !line.trim_start().starts_with("//"));
            let code = code.collect::<Vec<_>>().join("\n");
            let is_name = |word: &&str| word.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
            let words = code.split('"').skip(1).step_by(2).filter(|word| !word.is_empty());
            for name in words.filter(is_name) {
                assert!(NAMES.contains(&name), "{name}, in {}", file.display());
            }
        }
    }
}
