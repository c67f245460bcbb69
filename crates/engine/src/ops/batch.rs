//! Reads many issues in few calls of gh.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::Context;
use crate::decide::batch::{self, Field, PER_QUERY, Part, Read, UNREAD};
use crate::decide::hosts;
use crate::decide::plan::GhEnv;
use crate::decide::repo::{default_host, gh_would_pick};
use crate::decide::signal::Ended;
use crate::error::{Error, Result};
use crate::process::capture::{Captured, Environment, consult};
use crate::process::find;
use crate::settings::budget::{Budget, DEADLINE};
use crate::settings::{self, Lookup};
use crate::store::remotes;

/// What is wanted.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The issues' numbers, in the caller's order; one that comes twice is read once.
    pub numbers: Vec<u64>,
    /// What of each.
    pub fields: Vec<Field>,
    /// `[HOST/]OWNER/NAME`; without it, what gh picks.
    pub repo: Option<String>,
    /// The gh to run; without it, the first on PATH, a shim as good as any.
    pub gh: Option<PathBuf>,
    /// Milliseconds that one call may take; without it, as long as a shim may hold one.
    pub timeout_ms: Option<u64>,
}

/// What was read; every number is in exactly one of the three, in the caller's order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Issues {
    /// The issues and pull requests that were read whole.
    pub issues: Vec<(u64, Map<String, Value>)>,
    /// The numbers that the forge says it has nothing for.
    pub missing: Vec<u64>,
    /// The numbers of which nothing is known.
    pub unread: Vec<u64>,
    /// Those of `issues` that are last-known state, served from the shim's cache: a single read can be.
    pub cached: Vec<u64>,
}

impl Issues {
    /// As a JS caller gets it; `issues` is a list of pairs.
    pub fn to_json(&self) -> String {
        let Issues { issues, missing, unread, cached } = self;
        json!({"issues": issues, "missing": missing, "unread": unread, "cached": cached}).to_string()
    }
}

/// Reads issues, up to [`PER_QUERY`] a call; with `BOB_FORGE_BATCH=0` one a call. Whatever fails leaves
/// numbers unread; a failed call does not keep the others from being made.
///
/// # Errors
/// `EFORGE_USAGE`: a number or the repository is none.
pub fn read_issues(context: &Context, wanted: &Wanted) -> Result<Issues> {
    let mut numbers = wanted.numbers.clone();
    if let Some(bad) = numbers.iter().find(|n| !(1..=batch::MAX_NUMBER).contains(*n)) {
        return Err(Error::usage(format!("{bad} is no issue number")));
    }
    let mut seen = std::collections::HashSet::new();
    numbers.retain(|n| seen.insert(*n));
    let reader = Reader::new(context, wanted)?;
    let one_by_one = context.var(settings::BATCH).is_some_and(|value| value == "0");
    let parts = match one_by_one {
        true => numbers.iter().map(|n| reader.view(*n)).collect(),
        false => numbers.chunks(PER_QUERY).flat_map(|chunk| reader.batch(chunk)).collect::<Vec<_>>(),
    };
    let mut issues = Issues::default();
    for (number, part) in numbers.into_iter().zip(parts) {
        match part.read {
            Read::Issue(issue) => {
                issues.issues.push((number, issue));
                issues.cached.extend(part.is_cached.then_some(number));
            }
            Read::Missing => issues.missing.push(number),
            Read::Unread => issues.unread.push(number),
        }
    }
    Ok(issues)
}

/// The calls of gh.
struct Reader<'a> {
    context: &'a Context,
    wanted: &'a Wanted,
    gh: Option<PathBuf>,
    /// The arguments by which `gh api` knows the repository.
    place: Vec<String>,
    timeout: Duration,
}

impl Reader<'_> {
    fn new<'a>(context: &'a Context, wanted: &'a Wanted) -> Result<Reader<'a>> {
        let gh = wanted.gh.clone().or_else(|| find::any_gh(find::path_of(context).as_deref()));
        let place = place(context, wanted.repo.as_deref())?;
        let Budget { max_wait_s, backoff_max_s, .. } = context.settings.budget;
        // The longest that a shim holds a call, and time for the call itself.
        let longest_ms = max_wait_s.saturating_add(backoff_max_s).saturating_add(120).saturating_mul(1_000);
        let timeout = Duration::from_millis(wanted.timeout_ms.unwrap_or(longest_ms));
        Ok(Reader { context, wanted, gh, place, timeout })
    }

    fn batch(&self, numbers: &[u64]) -> Vec<Part> {
        let fields = &self.wanted.fields;
        let unread = || batch::read(numbers, fields, false, b"");
        let answer = self.ask(&batch::query(numbers, fields));
        let mut parts = answer
            .map_or_else(unread, |(succeeded, stdout)| batch::read(numbers, fields, succeeded, &stdout));
        self.complete_labels(numbers, &mut parts);
        parts
    }

    /// Reads on where the first page did not hold all labels. An issue with only some of its labels would
    /// be a wrong answer: if the rest cannot be read, it is unread.
    fn complete_labels(&self, numbers: &[u64], parts: &mut [Part]) {
        loop {
            let open = |(i, part): (usize, &Part)| part.labels_after.clone().map(|after| (i, after));
            let open: Vec<(usize, String)> = parts.iter().enumerate().filter_map(open).collect();
            if open.is_empty() {
                return;
            }
            let after: Vec<_> = open.iter().map(|(i, after)| (numbers[*i], after.clone())).collect();
            let answer = self.ask(&batch::more_labels(&after));
            for (i, after) in open {
                let page = answer.as_ref().and_then(|(ok, out)| batch::labels_page(numbers[i], *ok, out));
                // A page that ends where it began would be asked for without end.
                extend(&mut parts[i], page.filter(|(_, next)| next.as_ref() != Some(&after)));
            }
        }
    }

    fn view(&self, number: u64) -> Part {
        let args = batch::view_args(number, &self.wanted.fields, self.wanted.repo.as_deref());
        let Some(done) = self.run(&args) else { return UNREAD };
        let exit = match done.ended {
            Ended::Code(code) if !done.timed_out => Some(code),
            _ => None,
        };
        let part = batch::read_view(number, &self.wanted.fields, exit, &done.stdout, &done.stderr);
        // gh stops at the first hundred labels.
        if part.labels_after.is_some() { self.batch(&[number]).pop().unwrap_or(UNREAD) } else { part }
    }

    fn ask(&self, query: &str) -> Option<(bool, Vec<u8>)> {
        let mut args = vec!["api".to_string(), "graphql".into()];
        args.extend(self.place.iter().cloned());
        args.extend(["-f".into(), format!("query={query}")]);
        let done = self.run(&args).filter(|done| !done.timed_out)?;
        match done.ended {
            Ended::Code(code) => Some((code == 0, done.stdout)),
            Ended::Signal(_) => None,
        }
    }

    fn run(&self, args: &[String]) -> Option<Captured> {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let mut env = self.context.env.clone();
        if let Some(timeout_ms) = self.wanted.timeout_ms {
            let deadline = self.context.clock.now_s().saturating_add(timeout_ms / 1_000);
            env.retain(|(name, _)| name != DEADLINE);
            env.push((
                DEADLINE.into(),
                deadline.min(self.context.settings.budget.deadline.unwrap_or(u64::MAX)).to_string().into(),
            ));
        }
        let env = Environment::Given(env);
        let cwd: Option<&Path> = self.context.cwd.as_deref();
        consult(self.gh.as_deref()?, &args, &env, cwd, self.timeout).ok()
    }
}

fn extend(part: &mut Part, page: Option<(Vec<Value>, Option<String>)>) {
    let Some((labels, next)) = page else {
        *part = UNREAD;
        return;
    };
    if let Read::Issue(issue) = &mut part.read
        && let Some(Value::Array(all)) = issue.get_mut("labels")
    {
        all.extend(labels);
    }
    part.labels_after = next;
}

/// gh's arguments for the repository that it would pick itself for `gh issue`; `gh api` leaves the host out
/// of that, so it is named. Where nothing is found, gh is left to say why.
fn place(context: &Context, repo: Option<&str>) -> Result<Vec<String>> {
    let env = GhEnv::of(context);
    let known: Vec<String> =
        hosts::parse(&remotes::hosts(context)).into_iter().map(|host| host.name).collect();
    let of_checkout = context.cwd.as_deref().map(|cwd| remotes::read(cwd, context)).unwrap_or_default();
    let Some(repo) = gh_would_pick(repo, None, &env, &of_checkout, &known) else {
        return match repo {
            Some(given) => Err(Error::usage(format!("{given:?} is no repository; it is [HOST/]OWNER/NAME"))),
            None => Ok(["-F", "owner={owner}", "-F", "name={repo}"].map(String::from).to_vec()),
        };
    };
    let mut args =
        vec!["-f".into(), format!("owner={}", repo.owner), "-f".into(), format!("name={}", repo.name)];
    if repo.host != default_host(&env, &known) {
        args.extend(["--hostname".to_string(), repo.host]);
    }
    Ok(args)
}
