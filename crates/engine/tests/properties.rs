//! The fuzzers' bodies on seeded inputs: what a minute of `cargo fuzz` looks at, a second's worth of it.
//!
//! `FORGE_SEED` repeats a run, `FORGE_PROPERTY_RUNS` says how many inputs each body gets.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stderr,
    missing_docs,
    reason = "tests write the files that are read, and name the seed that failed"
)]

#[path = "../../../fuzz/bodies.rs"]
mod bodies;
#[allow(dead_code, reason = "shared with the end-to-end suite")]
#[path = "../../../tests/support/dice.rs"]
mod dice;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use dice::Dice;

/// Real samples to start from: what a body reads in daily life.
fn samples(target: &str) -> Vec<Vec<u8>> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let lines = |name: &str| -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(golden.join(name)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    match target {
        "argv" => lines("argv.jsonl").iter().filter_map(|case| argv_bytes(&case["argv"])).collect(),
        "signal" => {
            let said = |case: &serde_json::Value| {
                [b"\x01\x00\x00\x00", case["stderr"].as_str()?.as_bytes()].concat().into()
            };
            lines("signals.jsonl").iter().filter_map(said).collect()
        }
        _ => {
            SAMPLES.iter().filter(|(of, _)| *of == target).map(|(_, text)| text.as_bytes().to_vec()).collect()
        }
    }
}

fn argv_bytes(argv: &serde_json::Value) -> Option<Vec<u8>> {
    let words: Option<Vec<&str>> = argv.as_array()?.iter().map(|word| word.as_str()).collect();
    Some(words?.join("\0").into_bytes())
}

const SAMPLES: &[(&str, &str)] = &[
    ("logs", "1790000000\t0\t512\tok\tissue list\tgraphql\t1\twidget\t56b20441\n"),
    (
        "logs",
        "1790000001\t1\t30\tserver\tissue view\tgraphql\t1\twidget/groom\t-\n1790000002\t0\t5\tok\tapi\n",
    ),
    ("logs", "1790000000\tgraphql\t1\tfront\tissue list\n"),
    ("logs", "1790000000\tserved\tserver\t60\tissue list\twidget\t-\n"),
    (
        "states",
        "schema=bob-forge-budget/1\nfetched_at=1790000000\ngraphql_limit=5000\ngraphql_remaining=4120\ngraphql_used=880\ngraphql_reset=1790003600\nforeign=kept\n",
    ),
    ("states", "schema=bob-forge-hold/1\ngraphql_closed_until_ms=1790000005000\ngraphql_line_ms=0\n"),
    ("states", r#"{"resources":{"graphql":{"limit":5000,"remaining":1,"used":4999,"reset":1790003600}}}"#),
    ("states", r#"{"schema":"bob-forge-verdict/1","log":{"dev":0,"ino":0,"size":0,"mtime_ns":0}}"#),
    ("states", "1790000000\tgraphql\t1\n"),
    ("cache", "\u{3}\u{5}\u{1}"),
    ("cache", "\u{1}aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
    ("queue", "issue\0comment\x005\x00--body\0x"),
    ("queue", "issue\0create\0--title\0t\0--body-file\0-\0--label=bug"),
    ("queue", "issue\0edit\0BOB-Q1\0--add-label\0bug\0-R\0acme/widget"),
    ("queue", "issue\0close\0https://github.com/acme/widget/issues/5\0-c\0done"),
    ("queue", "1790000000000\t1\tcreate\tdelivered\thttps://github.com/acme/widget/issues/7"),
    (
        "queue",
        r#"{"schema":"bob-forge-queue/1","seq":1,"id":"q000001","kind":"create","repo":"github.com/a/b","argv":["issue"],"status":"pending","seal":""}"#,
    ),
    (
        "git",
        "[remote \"origin\"]\n\turl = git@github.com:acme/widget.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n",
    ),
    (
        "git",
        "[url \"https://github.com/\"]\n\tinsteadOf = gh:\n[includeIf \"gitdir:~/work/\"]\n\tpath = ~/.work\n",
    ),
    ("git", "github.com:\n    user: octocat\n    oauth_token: abc\n"),
    ("git", "gitdir:~/w*/**/r?[a-z]/"),
    ("urls", "https://github.com/acme/widget.git"),
    ("urls", "git@github.com:acme/widget.git"),
    ("urls", "ssh://git@ssh.github.com:443/acme/widget"),
    ("urls", "github.example.com/acme/widget"),
    ("urls", "https://github.com/acme/widget/issues/BOB-Q12#issuecomment-1"),
];

/// A sample, changed a little; once in a while nothing but noise.
fn input(dice: &mut Dice, samples: &[Vec<u8>]) -> Vec<u8> {
    if dice.once_in(8) {
        return dice.bytes(300);
    }
    let mut bytes = dice.one_of(samples).clone();
    for _ in 0..dice.below(5) {
        let at = dice.below(bytes.len() as u64 + 1) as usize;
        match dice.below(5) {
            0 => bytes.truncate(at),
            1 => drop(bytes.splice(at..at, dice.bytes(6))),
            2 => {
                let other = dice.one_of(samples).clone();
                let from = dice.below(other.len() as u64 + 1) as usize;
                bytes.splice(at..at, other[from..].iter().copied());
            }
            3 => drop(bytes.splice(at..at, b"18446744073709551615".iter().copied())),
            _ => {
                let noise = dice.any() as u8;
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= noise;
                }
            }
        }
    }
    bytes
}

fn hold(target: &str) {
    let (seed, runs) = (dice::seed(), dice::times("FORGE_PROPERTY_RUNS", 1_500));
    let (_, body) = bodies::ALL.into_iter().find(|(name, _)| *name == target).unwrap();
    let samples = samples(target);
    assert!(!samples.is_empty());
    samples.iter().for_each(|sample| body(sample));
    for run in 0..runs {
        let bytes = input(&mut Dice::new(seed + run), &samples);
        if let Err(panicked) = catch_unwind(AssertUnwindSafe(|| body(&bytes))) {
            eprintln!("FORGE_SEED={} FORGE_PROPERTY_RUNS=1, {target}: {}", seed + run, bytes.escape_ascii());
            std::panic::resume_unwind(panicked);
        }
    }
}

#[test]
fn the_argv_grammar_holds() {
    hold("argv");
}

#[test]
fn the_classifier_holds() {
    hold("signal");
}

#[test]
fn the_logs_hold() {
    hold("logs");
}

#[test]
fn the_small_state_files_hold() {
    hold("states");
}

#[test]
fn a_damaged_cache_entry_is_never_served() {
    hold("cache");
}

#[test]
fn the_queues_files_hold() {
    hold("queue");
}

#[test]
fn gits_files_hold() {
    hold("git");
}

#[test]
fn urls_and_repositories_hold() {
    hold("urls");
}

/// The oracle itself: it has to refuse what gh refuses, or nothing is proven.
#[test]
fn the_oracle_refuses_what_gh_refuses() {
    let refuses = |line: &str| bodies::refused(&line.split(' ').map(Into::into).collect::<Vec<_>>());
    for line in [
        "issue close 5 --no-such",
        "issue close 5 -Z",
        "issue close",
        "issue close 5 6",
        "issue create extra -t t -b b",
        "issue comment 5 --body",
        "issue comment 5 -wb",
        "issue edit 5 --web=maybe",
        "issue comment 5 -w=maybe",
    ] {
        assert!(refuses(line).is_some(), "{line}");
    }
    for line in [
        "issue close 5 -c done",
        "issue create -tt -b=b -R a/b",
        "issue comment 5 -wFf",
        "issue edit 5 6 -t t",
    ] {
        assert_eq!(refuses(line), None, "{line}");
    }
}

#[test]
fn every_body_has_its_property_and_its_fuzz_target() {
    let targets =
        std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/fuzz_targets")).unwrap();
    let mut targets: Vec<String> =
        targets.map(|t| t.unwrap().path().file_stem().unwrap().to_str().unwrap().to_string()).collect();
    targets.sort();
    let mut bodies: Vec<&str> = bodies::ALL.iter().map(|(name, _)| *name).collect();
    bodies.sort_unstable();
    assert_eq!(targets, bodies);
    let this = include_str!("properties.rs");
    assert!(bodies.iter().all(|name| this.contains(&format!("hold(\"{name}\");"))));
}
