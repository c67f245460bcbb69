//! Look-ups in the generated table of gh's commands and flags. Nothing is built: the rows are found by
//! binary search, a row's flags by reading its one string.

use std::ffi::OsStr;

use super::gh_flags::{ALIASES, COMMANDS};

/// The row of the command that `word` names under `path`.
pub(super) fn child(path: &str, word: &OsStr) -> Option<usize> {
    let word = word.to_str()?;
    if word.is_empty() || word.contains(' ') {
        return None;
    }
    let name = if path.is_empty() { word.to_string() } else { format!("{path} {word}") };
    row_of(&name).or_else(|| {
        let alias = ALIASES.binary_search_by(|(alias, _)| (*alias).cmp(&name)).ok()?;
        row_of(ALIASES[alias].1)
    })
}

pub(super) fn row_of(path: &str) -> Option<usize> {
    COMMANDS.binary_search_by(|(known, ..)| (*known).cmp(path)).ok()
}

/// Whether the command has commands of its own. The table is sorted and a space sorts before every
/// other character of a name, so the first of them would be the next row.
pub(super) fn is_group(row: usize) -> bool {
    let path = COMMANDS[row].0;
    COMMANDS.get(row + 1).is_some_and(|(next, ..)| {
        next.strip_prefix(path).is_some_and(|tail| tail.starts_with(' ')) && path != "codespace ports"
    })
}

/// Every command's path, groups included; the empty path is gh itself. Sorted.
pub fn commands() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().map(|(path, ..)| *path)
}

/// Whether a command knows a flag, in either version.
pub fn has_flag(path: &str, long: &str) -> bool {
    row_of(path).is_some_and(|row| by_name(COMMANDS[row].2, long.as_bytes()).is_some())
}

/// Whether a flag takes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// A switch.
    Nothing,
    /// Always.
    Value,
    /// Only as `--flag=value` or `-f=value` (pflag's NoOptDefVal).
    Maybe,
}

/// A flag of one command.
#[derive(Clone, Copy)]
pub(super) struct Spec {
    pub(super) long: &'static str,
    pub(super) short: Option<u8>,
    pub(super) takes: Takes,
    pub(super) in_both_versions: bool,
}

/// Reads one word of a row's third column.
pub(super) fn spec_of(word: &'static str) -> Spec {
    let name = word.trim_end_matches(['^', '_']);
    let (rest, takes) = match (name.strip_suffix("=?"), name.strip_suffix('=')) {
        (Some(rest), _) => (rest, Takes::Maybe),
        (_, Some(rest)) => (rest, Takes::Value),
        _ => (name, Takes::Nothing),
    };
    let (long, short) = match rest.split_once('/') {
        Some((long, short)) => (long, short.bytes().next()),
        None => (rest, None),
    };
    Spec { long, short, takes, in_both_versions: name.len() == word.len() }
}

fn specs(spec: &'static str) -> impl Iterator<Item = Spec> {
    spec.split_ascii_whitespace().map(spec_of).chain([HELP])
}

/// Every command has `--help`; `-h` is pflag's own, where no flag of the command takes it.
pub(super) const HELP: Spec =
    Spec { long: "help", short: None, takes: Takes::Nothing, in_both_versions: true };

pub(super) fn by_name(spec: &'static str, name: &[u8]) -> Option<Spec> {
    specs(spec).find(|flag| flag.long.as_bytes() == name)
}

pub(super) fn by_short(spec: &'static str, short: u8) -> Option<Spec> {
    specs(spec).find(|flag| flag.short == Some(short))
}
