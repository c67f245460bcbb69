//! The command line of `forge`, as clap reads it.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, CommandFactory, Parser, Subcommand};
use engine::decide::signal::Signal;

/// Whether the forge can be believed, from the calls that were made of it.
#[derive(Debug, Parser)]
#[command(name = "forge", bin_name = "bob forge", version, disable_help_subcommand = true)]
pub struct Forge {
    #[command(subcommand)]
    pub noun: Noun,
}

/// One noun a module.
#[derive(Debug, Subcommand)]
pub enum Noun {
    /// GitHub's quota: what is left of it, who spends it, and what the gate makes of it
    Budget(Budget),
    /// May an empty result be believed? Exit 0 operational, 3 degraded, 4 unreachable, 5 unknown
    Health(Health),
    /// What reads get when the forge cannot be read: the last answers of this project
    Cache(Cache),
    /// Writes that wait for the forge. Exit 0 when nothing is undelivered, 3 otherwise
    Queue(Queue),
}

/// `forge queue` alone is `forge queue status`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub struct Queue {
    #[command(subcommand)]
    pub verb: Option<QueueVerb>,
    #[command(flatten)]
    pub status: Json,
}

#[derive(Debug, Subcommand)]
pub enum QueueVerb {
    /// Depth, oldest entry, unresolved handles, what was set aside and why
    Status(Json),
    /// What waits, in replay order
    List(QueueList),
    /// One entry, body included
    Show(QueueOne),
    /// Set one entry aside; the rest stay queued
    Drop(QueueOne),
    /// Remove every entry
    Clear(Json),
    /// Deliver what waits; without --apply, only say what would be done
    Replay(QueueReplay),
}

#[derive(Debug, Args)]
pub struct QueueList {
    /// Those that were delivered or set aside, too
    #[arg(long)]
    pub all: bool,
    /// Print them as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct QueueOne {
    /// 3, #3 or q000003
    pub id: String,
    /// Print it as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct QueueReplay {
    /// Deliver
    #[arg(long)]
    pub apply: bool,
    /// Only where this machine has marked this project
    #[arg(long)]
    pub marked_only: bool,
    /// Most entries to deliver; 0 for all
    #[arg(long, value_name = "N")]
    pub batch: Option<u64>,
    /// Let an entry through that has no seal of this machine (may be given again)
    #[arg(long, value_name = "SEQ", value_parser = entry_id)]
    pub accept: Vec<String>,
    /// Print the outcome as JSON (bob-forge-replay/1)
    #[arg(long)]
    pub json: bool,
}

fn entry_id(text: &str) -> Result<String, String> {
    match engine::decide::entry::parse_id(text) {
        Some(_) => Ok(text.to_string()),
        None => Err("it names no entry: it is 3, #3 or q000003".into()),
    }
}

/// `forge cache` alone is `forge cache status`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub struct Cache {
    #[command(subcommand)]
    pub verb: Option<CacheVerb>,
    #[command(flatten)]
    pub status: Json,
}

#[derive(Debug, Subcommand)]
pub enum CacheVerb {
    /// What is cached, and how old
    Status(Json),
    /// Drop it; costs a re-fetch, nothing more
    Clear(Json),
}

#[derive(Clone, Debug, Args)]
pub struct Json {
    /// Print it as JSON
    #[arg(long)]
    pub json: bool,
}

/// `forge budget` alone is `forge budget status`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub struct Budget {
    #[command(subcommand)]
    pub verb: Option<BudgetVerb>,
    #[command(flatten)]
    pub status: BudgetStatus,
}

#[derive(Debug, Subcommand)]
pub enum BudgetVerb {
    /// What is left, who spent it, who was made to wait; never asks the forge
    Status(BudgetStatus),
    /// The one line for a doctor: INFO, or WARN under a floor or after a rate-limited answer
    Doctor(Json),
    /// Read the quota now (gh api rate_limit, free); exit 3 when the forge does not answer
    Refresh(Json),
    /// What the gate would do with a call of gh now, and why
    Plan(BudgetCall),
    /// Which quota a call of gh spends
    Resource(BudgetCall),
    /// Cut the logs to their bounds
    Trim(Json),
    /// Run a command, count its calls of gh and read the quota before and after it
    Measure(BudgetMeasure),
}

#[derive(Clone, Debug, Args)]
pub struct BudgetStatus {
    /// Print the document as JSON (bob-forge-quota/1)
    #[arg(long)]
    pub json: bool,
    /// Print its compact form as JSON (bob-forge-quota-compact/1)
    #[arg(long)]
    pub compact: bool,
}

#[derive(Clone, Debug, Args)]
pub struct BudgetCall {
    /// Print it as JSON
    #[arg(long)]
    pub json: bool,
    /// gh's arguments without gh itself, after `--`
    #[arg(required = true, last = true, value_name = "ARGS")]
    pub args: Vec<OsString>,
}

#[derive(Debug, Args)]
pub struct BudgetMeasure {
    /// Print the report as JSON (bob-forge-measure/1); what the command prints goes to standard error
    #[arg(long)]
    pub json: bool,
    /// The command and its arguments, after `--`
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// `forge health` alone is `forge health status`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub struct Health {
    #[command(subcommand)]
    pub verb: Option<HealthVerb>,
    #[command(flatten)]
    pub status: HealthStatus,
}

#[derive(Debug, Subcommand)]
pub enum HealthVerb {
    /// The verdict with its evidence; asks the forge once when there is none
    Status(HealthStatus),
    /// Record a call that went past the shim
    Record(HealthRecord),
    /// The raw evidence behind the verdict
    Observations(HealthObservations),
    /// Forget all evidence
    Reset,
}

#[derive(Clone, Debug, Args)]
pub struct HealthStatus {
    /// Print the whole verdict as JSON (bob-forge-health/1)
    #[arg(long)]
    pub json: bool,
    /// Only read: never issue a call
    #[arg(long)]
    pub no_probe: bool,
    /// Seconds a verdict is reused [default: BOB_FORGE_TTL, else 60]
    #[arg(long, value_name = "N")]
    pub ttl: Option<u64>,
    /// Seconds back that a call is evidence [default: BOB_FORGE_WINDOW, else 300]
    #[arg(long, value_name = "N")]
    pub window: Option<u64>,
}

#[derive(Debug, Args)]
pub struct HealthRecord {
    /// gh's exit code
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub rc: i32,
    /// Latency in milliseconds
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub ms: u64,
    /// What the outcome says about the forge [default: ok for exit 0, else other]
    #[arg(long, value_name = "S", value_parser = signal_names())]
    pub signal: Option<Signal>,
    /// Command and subcommand, as in "issue list"
    #[arg(long, value_name = "X")]
    pub sub: Option<String>,
}

#[derive(Debug, Args)]
pub struct HealthObservations {
    /// Print them as JSON (bob-forge-observations/1)
    #[arg(long)]
    pub json: bool,
    /// Seconds back [default: BOB_FORGE_WINDOW, else 300]
    #[arg(long, value_name = "N")]
    pub window: Option<u64>,
}

fn signal_names() -> impl TypedValueParser<Value = Signal> {
    PossibleValuesParser::new(Signal::ALL.map(Signal::as_str))
        .map(|name| Signal::parse(&name).unwrap_or(Signal::Other))
}

/// The command line with its alias undone: called as `forge-health`, it is `forge health`.
pub fn unalias(mut argv: Vec<OsString>) -> Vec<OsString> {
    let called_as = argv.first().and_then(|word| Path::new(word).file_name()).and_then(OsStr::to_str);
    let noun = called_as.and_then(|name| name.strip_prefix("forge-"));
    let noun = noun.filter(|noun| Forge::command().find_subcommand(noun).is_some()).map(OsString::from);
    match noun {
        Some(noun) => argv.splice(..1, ["forge".into(), noun]).for_each(drop),
        // clap takes the first word for the program's name, whatever it is.
        None if argv.is_empty() => argv.push("forge".into()),
        None => {}
    }
    argv
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar_is_sound() {
        Forge::command().debug_assert();
    }

    #[test]
    fn an_alias_is_its_noun() {
        let undone = |words: &[&str]| unalias(words.iter().map(OsString::from).collect());
        assert_eq!(undone(&["/b/bin/forge-health", "--json"]), ["forge", "health", "--json"]);
        assert_eq!(undone(&["forge", "health"]), ["forge", "health"]);
        assert_eq!(undone(&["forge-2.0", "health"]), ["forge-2.0", "health"], "a name, not a noun");
        assert_eq!(undone(&[]), ["forge"]);
    }
}
