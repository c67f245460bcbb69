//! The read cache: what a read that succeeded leaves behind, and what a read that could not be made gets
//! from it (#1749).

mod own_writes;
mod report;

pub use own_writes::landed;
pub use report::{READS_WINDOW_S, Reads, Status, reads, status};

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::record::{caller, session};
use super::{Context, place};
use crate::decide::cache_key::{Account, Key};
use crate::decide::fallback::{self, Facts, Fallback, Known, Unread, Why};
use crate::decide::plan::{GhEnv, Kind, Plan, plan};
use crate::decide::signal::Signal;
use crate::decide::{argv, hosts, keep, repo};
use crate::error::{Error, Result};
use crate::settings::{self, Lookup, Settings};
use crate::store::{cache, cache_log, project, remotes};

/// A call that is asked of the forge.
#[derive(Debug)]
pub struct Asked<'a, L> {
    /// gh's argv, without `gh`.
    pub args: &'a [OsString],
    /// What the call is.
    pub plan: &'a Plan,
    /// The environment gh gets.
    pub env: &'a L,
    /// The working directory.
    pub cwd: Option<&'a Path>,
    /// When it started, in nanoseconds since the epoch.
    pub started_ns: u64,
}

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub struct Came<'a> {
    /// What its outcome says.
    pub signal: Signal,
    /// The whole answer; `None` when it was not held or is too long to be.
    pub answer: Option<&'a [u8]>,
    /// What gh wrote to stderr.
    pub said: &'a [u8],
    /// Whether the caller has seen some of it already.
    pub has_flowed: bool,
    /// Now, in nanoseconds since the epoch.
    pub now_ns: u64,
}

/// What the caller gets in the place of what gh said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The exact bytes of the answer.
    pub answer: Vec<u8>,
    /// The one line for stderr, without its newline.
    pub marker: String,
}

/// A question with its place.
#[derive(Debug)]
pub struct Question {
    /// The project.
    pub root: PathBuf,
    /// Its identity.
    pub key: Key,
    /// As whom it is asked.
    pub account: Account,
    /// `host/owner/name` in lower case; `None` for a search, which has none.
    pub repo: Option<String>,
}

/// Whether the call's answer may be stored and served, as far as argv and the settings tell: the
/// allowlist, not turned off, and not shaped for a terminal (`GH_FORCE_TTY` writes relative times,
/// which a stored answer would freeze).
pub fn applies(plan: &Plan, env: &impl Lookup) -> bool {
    plan.is_cacheable_read
        && plan.kind == Kind::Call
        && env.nonempty(settings::GH_FORCE_TTY).is_none()
        && Settings::read(env).cache_enabled
}

impl<L: Lookup> Asked<'_, L> {
    /// The question that this call asks; `None` for one that is not cached, and outside a project.
    pub fn question(&self) -> Option<Question> {
        let cwd = self.cwd?;
        if !applies(self.plan, self.env) {
            return None;
        }
        let root = project::root(cwd)?;
        let known = hosts::parse(&remotes::hosts(self.env));
        let names: Vec<String> = known.iter().map(|host| host.name.clone()).collect();
        let repo = place::repo(self.plan, self.env, Some(cwd), &names);
        let host = match &repo {
            Some(repo) => repo.host.clone(),
            None => {
                self.plan.host.clone().unwrap_or_else(|| repo::default_host(&GhEnv::of(self.env), &names))
            }
        };
        let set = |name| Some((name, self.env.var(name)?));
        let shape: Vec<_> = settings::OUTPUT_SHAPE.into_iter().filter_map(set).collect();
        let repo = repo.map(|repo| repo.key());
        let key = Key::new(self.args, repo.as_deref(), &host, &shape);
        let account = Account::of(&host, &self.tokens(&host), &known);
        Some(Question { root, key, account, repo })
    }

    /// The variables that gh takes a token for `host` from, in its order.
    fn tokens(&self, host: &str) -> [Option<OsString>; 2] {
        let is_subdomain = |of: &str| host.strip_suffix(of).is_some_and(|rest| rest.ends_with('.'));
        let names = if repo::is_github(host) || is_subdomain("ghe.com") || is_subdomain("localhost") {
            [settings::GH_TOKEN, settings::GITHUB_TOKEN]
        } else {
            [settings::GH_ENTERPRISE_TOKEN, settings::GITHUB_ENTERPRISE_TOKEN]
        };
        names.map(|name| self.env.var(name))
    }

    /// Stores what was learned, or finds what the caller gets instead. Nothing here can fail the call:
    /// what cannot be stored, found or written down is simply not.
    pub fn conclude(&self, came: Came) -> Option<Reply> {
        if came.has_flowed {
            return None;
        }
        match came.signal {
            Signal::Ok => self.store(came),
            Signal::NotFound => self.forget(came),
            signal if signal.is_availability_failure() => return self.fall_back(came),
            _ => {}
        }
        None
    }

    fn store(&self, came: Came) {
        let Some(answer) = came.answer.filter(|answer| (answer.len() as u64) < cache::ANSWER_MAX) else {
            return;
        };
        if self.judge(answer, came.said).is_err() {
            return;
        }
        if let Some(Question { root, key, account, .. }) = self.question() {
            let entry = cache::Entry { started_ns: self.started_ns, account, answer: Some(answer.to_vec()) };
            // A full disk, a folder that is not ours: the caller has the answer, and that is what counts.
            let _ = cache::store(&root, &key, &entry, came.now_ns, cache::BOUNDS);
        }
    }

    fn judge(&self, answer: &[u8], said: &[u8]) -> std::result::Result<(), keep::Why> {
        let call = argv::parse(self.args);
        let shaped = call.given("jq") || call.given("template");
        keep::judge(self.plan.command, shaped, answer, said)
    }

    /// The forge has answered "not found": what was known before must not be served after that. Another
    /// account's "not found" may only mean that it may not see.
    fn forget(&self, came: Came) {
        let Some(Question { root, key, account, .. }) = self.question() else { return };
        let known = cache::lookup(&root, &key);
        if known.is_some_and(|entry| entry.account == account || entry.account == Account::UNKNOWN) {
            let _ = cache::forget(&root, &key, self.started_ns, came.now_ns);
        }
    }

    fn fall_back(&self, came: Came) -> Option<Reply> {
        let question = self.question()?;
        let settings = Settings::read(self.env);
        let entry = cache::lookup(&question.root, &question.key);
        let facts = Facts {
            signal: came.signal,
            credentials_refused: fallback::are_credentials_refused(came.said),
            account: question.account,
            now_ns: came.now_ns,
            max_age_s: settings.cache_max_age_s,
        };
        let decision = fallback::decide(&facts, entry.as_ref().map(cache::Entry::known));
        self.report(&settings, came, decision);
        match decision {
            Fallback::Served { age_s } => {
                let entry = entry?;
                let unread = self.unread(&question, entry.known(), came.now_ns);
                Some(Reply { answer: entry.answer?, marker: fallback::marker(age_s, came.signal, unread) })
            }
            Fallback::AsItRan | Fallback::PassedThrough(_) => None,
        }
    }

    /// The writes of this machine that the answer does not show. Their place is all that has to be known.
    fn unread(&self, question: &Question, known: Known, now_ns: u64) -> Unread {
        let place = [settings::STATE, settings::BOB_HOME, settings::HOME];
        let env = place.iter().filter_map(|name| Some((name.into(), self.env.var(name)?))).collect();
        let now_s = now_ns / 1_000_000_000;
        let context = Context::new(env, self.cwd.map(Path::to_path_buf), Some(now_s));
        let issues = own_writes::Issues::of(self.plan.command, self.args);
        let repo = question.repo.as_deref();
        own_writes::unread(&context, issues, repo, known.started_ns)
    }

    fn report(&self, settings: &Settings, came: Came, decision: Fallback) {
        let (served, age_s) = match decision {
            Fallback::Served { age_s } => (true, age_s),
            Fallback::PassedThrough(Why::Stale { age_s }) => (false, age_s),
            _ => return,
        };
        let Some(state) = settings.state.as_deref() else { return };
        let event = cache_log::Event {
            at: came.now_ns / 1_000_000_000,
            served,
            signal: came.signal,
            age_s,
            subcommand: self.plan.command.to_string(),
            caller: caller(self.env, self.cwd),
            session: session(self.env),
        };
        let _ = cache_log::append(state, &event);
    }
}

/// A stored answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The exact bytes.
    pub bytes: Vec<u8>,
    /// Its age in seconds.
    pub age_s: u64,
    /// When it was asked for, in epoch seconds.
    pub stored_at: u64,
}

/// The call of a front end that has no running gh: planned, starting now.
fn asked<'a>(context: &'a Context, args: &'a [OsString], plan: &'a Plan) -> Asked<'a, Context> {
    let started_ns = context.clock.now_s() * 1_000_000_000;
    Asked { args, plan, env: context, cwd: context.cwd.as_deref(), started_ns }
}

fn planned(context: &Context, args: &[OsString]) -> Plan {
    plan(args, &GhEnv::of(context))
}

/// Whether argv is one of the reads that are cached.
pub fn is_cacheable(context: &Context, args: &[OsString]) -> bool {
    planned(context, args).is_cacheable_read
}

/// The name of the question that argv asks here; `None` for one that is not cached.
pub fn key_for(context: &Context, args: &[OsString]) -> Option<String> {
    let plan = planned(context, args);
    asked(context, args, &plan).question().map(|question| question.key.name())
}

/// What a failing call of this argv would be served now.
pub fn lookup(context: &Context, args: &[OsString]) -> Option<Answer> {
    let plan = planned(context, args);
    let question = asked(context, args, &plan).question()?;
    let entry = cache::lookup(&question.root, &question.key)?;
    let facts = Facts {
        signal: Signal::Net,
        credentials_refused: false,
        account: question.account,
        now_ns: now_ns(context),
        max_age_s: context.settings.cache_max_age_s,
    };
    match fallback::decide(&facts, Some(entry.known())) {
        Fallback::Served { age_s } => {
            Some(Answer { bytes: entry.answer?, age_s, stored_at: entry.started_ns / 1_000_000_000 })
        }
        _ => None,
    }
}

/// Stores an answer that was got past the shim. False when it is not one that is kept: not on the
/// allowlist, the cache turned off, outside a project, too long, empty where that says nothing, or
/// older than what is known.
///
/// # Errors
/// `EFORGE_STATE` when the cache's folder cannot be written.
pub fn store(context: &Context, args: &[OsString], answer: &[u8]) -> Result<bool> {
    let plan = planned(context, args);
    let asked = asked(context, args, &plan);
    let Some(question) = asked.question() else { return Ok(false) };
    if answer.len() as u64 >= cache::ANSWER_MAX || asked.judge(answer, b"").is_err() {
        return Ok(false);
    }
    let Question { root, key, account, .. } = question;
    let entry = cache::Entry { started_ns: asked.started_ns, account, answer: Some(answer.to_vec()) };
    let stored = cache::store(&root, &key, &entry, now_ns(context), cache::BOUNDS);
    let stored = stored.map_err(|e| Error::state("write the read cache in", &root, e))?;
    Ok(stored == cache::Stored::Kept)
}

/// Drops every answer of this project; says how many and how many bytes; `None` outside a project, where
/// no cache is.
///
/// # Errors
/// `EFORGE_STATE` when the folder cannot be written.
pub fn clear(context: &Context) -> Result<Option<(u64, u64)>> {
    let Some(root) = context.cwd.as_deref().and_then(project::root) else { return Ok(None) };
    cache::clear(&root).map(Some).map_err(|e| Error::state("clear the read cache in", &root, e))
}

/// A front end's clock has whole seconds; the end of the present one is not in the future.
fn now_ns(context: &Context) -> u64 {
    context.clock.now_s() * 1_000_000_000 + 999_999_999
}

#[cfg(test)]
mod tests;
