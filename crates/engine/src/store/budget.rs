//! `budget.env`: what remains of the token's quotas, one file for every session on the machine (#3190).
//!
//! Plain `key=value` lines. A file that is missing, torn or odd is "unknown", and unknown holds nobody back.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::private;
use crate::decide::reading::{Quota, Reading};
use crate::decide::resource::Resource;

/// The format's name.
pub const SCHEMA: &str = "bob-forge-budget/1";

/// No file of ours is longer (`RELIABILITY` R33).
const MAX_BYTES: u64 = 4 << 10;

/// Where the file lies.
pub fn path(state: &Path) -> PathBuf {
    state.join("budget.env")
}

/// What is on file; a file that cannot be read is unknown.
pub fn read(state: &Path) -> Reading {
    parse(&text(&path(state)).unwrap_or_default())
}

/// The new content of the file: `reading`, and every key of the old content that is not ours.
pub fn content(state: &Path, reading: &Reading) -> String {
    let old = text(&path(state)).unwrap_or_default();
    let mut lines = vec![format!("schema={SCHEMA}")];
    let mut number = |key: &str, value: Option<u64>| {
        lines.extend(value.map(|value| format!("{key}={value}")));
    };
    number("fetched_at", reading.fetched_at);
    number("tried_at", reading.tried_at);
    for resource in Resource::ALL {
        let quota = reading.quotas[resource];
        let name = resource.as_str();
        number(&format!("{name}_limit"), quota.map(|q| q.limit));
        number(&format!("{name}_remaining"), quota.map(|q| q.remaining));
        number(&format!("{name}_used"), quota.map(|q| q.used));
        number(&format!("{name}_reset"), quota.map(|q| q.reset_at));
    }
    let foreign = pairs(&old).filter(|(key, _)| !is_ours(key)).map(|(key, value)| format!("{key}={value}"));
    lines.extend(foreign);
    lines.join("\n") + "\n"
}

/// The text of a `key=value` file of ours.
pub(super) fn text(path: &Path) -> io::Result<String> {
    let mut text = String::with_capacity(512);
    private::open(OpenOptions::new().read(true), path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    // What does not end in a newline may end in half a number.
    let is_whole = text.ends_with('\n') && text.len() as u64 <= MAX_BYTES;
    if is_whole { Ok(text) } else { Err(io::ErrorKind::InvalidData.into()) }
}

/// The lines that are `key=value` and nothing a shell could trip over.
pub(super) fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let is_key = |key: &str| !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let is_value = |value: &str| value.bytes().all(|b| b.is_ascii_alphanumeric() || b"_:.+/-".contains(&b));
    text.lines().filter_map(|line| line.split_once('=')).filter(move |(k, v)| is_key(k) && is_value(v))
}

fn parse(text: &str) -> Reading {
    let find = |key: &str| {
        let value = pairs(text).filter(|(k, _)| *k == key).last()?.1;
        value.parse::<u64>().ok()
    };
    let mut reading =
        Reading { fetched_at: find("fetched_at"), tried_at: find("tried_at"), ..Reading::default() };
    for (resource, [limit, remaining, used, reset]) in Resource::ALL.into_iter().zip(KEYS) {
        reading.quotas[resource] = (|| {
            let (limit, remaining) = (find(limit)?, find(remaining)?);
            let used = find(used).unwrap_or(limit.saturating_sub(remaining));
            Some(Quota { limit, remaining, used, reset_at: find(reset)? })
        })();
    }
    reading
}

/// The keys of each quota, in the order of [`Resource::ALL`].
const KEYS: [[&str; 4]; 3] = [
    ["graphql_limit", "graphql_remaining", "graphql_used", "graphql_reset"],
    ["core_limit", "core_remaining", "core_used", "core_reset"],
    ["search_limit", "search_remaining", "search_used", "search_reset"],
];

fn is_ours(key: &str) -> bool {
    ["schema", "fetched_at", "tried_at"].contains(&key) || KEYS.concat().contains(&key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::reading::Each;
    use std::fs;

    fn reading() -> Reading {
        let quota =
            |limit, remaining| Some(Quota { limit, remaining, used: limit - remaining, reset_at: 900 });
        let quotas = Each { graphql: quota(5_000, 4_120), core: None, search: quota(30, 30) };
        Reading { fetched_at: Some(100), tried_at: Some(130), quotas }
    }

    #[test]
    fn what_is_written_is_read_back_and_foreign_keys_stay() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(read(home.path()), Reading::default());
        let old = "schema=bob-forge-budget/1\ngraphql_limit=7\nnote=kept\ncore_limit=1\nbad line\nx=$(rm)\n";
        fs::write(path(home.path()), old).unwrap();
        let text = content(home.path(), &reading());
        fs::write(path(home.path()), &text).unwrap();
        assert_eq!(read(home.path()), reading());
        let expected = "schema=bob-forge-budget/1\nfetched_at=100\ntried_at=130\ngraphql_limit=5000\n\
                        graphql_remaining=4120\ngraphql_used=880\ngraphql_reset=900\nsearch_limit=30\n\
                        search_remaining=30\nsearch_used=0\nsearch_reset=900\nnote=kept\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_torn_or_odd_file_is_unknown() {
        let home = tempfile::tempdir().unwrap();
        let whole = content(home.path(), &reading());
        for odd in [
            whole[..whole.len() - 3].to_string(),
            whole.clone() + &"x=1\n".repeat(2_000),
            "graphql_remaining=0\ngraphql_reset=99\n".into(),
            "graphql_limit=-1\ngraphql_remaining=0\ngraphql_reset=99\n".into(),
            "\u{0}\n".into(),
        ] {
            fs::write(path(home.path()), &odd).unwrap();
            assert_eq!(read(home.path()).quotas, Each::default(), "{odd:?}");
        }
        fs::write(path(home.path()), b"graphql_limit=1\xff\n").unwrap();
        assert_eq!(read(home.path()), Reading::default());
    }

    #[test]
    fn a_file_of_an_older_shim_needs_no_used() {
        let text = "fetched_at=5\ncore_limit=5000\ncore_remaining=4990\ncore_reset=77\n";
        assert_eq!(parse(text).quotas.core.map(|q| q.used), Some(10));
    }
}
