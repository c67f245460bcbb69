//! Rows measured with gh 2.23.0 and 2.103.3, and the table held to the JSON it was generated from.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use super::super::flag_table::{row_of, spec_of};
use super::super::gh_flags::ALIASES;
use super::*;

pub(crate) fn words(line: &str) -> Vec<OsString> {
    let mut out = Vec::new();
    for word in line.split(' ').filter(|word| !word.is_empty()) {
        out.push(OsString::from(if word == "''" { "" } else { word }));
    }
    out
}

/// A command line, written out: `issue list: repo=o/r web | operand | help | faults`.
fn show(line: &str) -> String {
    let args = words(line);
    let call = parse(&args);
    let mut out = match call.named {
        Named::Nothing => "(nothing)".to_string(),
        Named::Unknown { word } => format!("(unknown {})", args[word].display()),
        Named::UnknownIn { group, word } => format!("{group} (unknown {})", args[word].display()),
        Named::Group(path) => format!("{path} (group)"),
        Named::Command(path) => path.to_string(),
    };
    for flag in &call.flags {
        out += &match flag.value {
            Value::Switch(true) => format!(" --{}", flag.name),
            Value::Switch(false) => format!(" --{}=false", flag.name),
            Value::Text(text) => format!(" --{}={}", flag.name, text.display()),
        };
    }
    for operand in &call.operands {
        out += &format!(" [{}]", operand.text.display());
    }
    if call.help {
        out += " help";
    }
    for (fault, word) in &call.faults {
        out += &format!(" {fault:?}@{word}");
    }
    out
}

const GRAMMAR: &[(&str, &str)] = &[
    ("", "(nothing)"),
    ("--version", "(nothing) --version"),
    ("-h", "(nothing) help"),
    ("--help", "(nothing) help"),
    ("help issue list", "help [issue] [list]"),
    ("issue", "issue (group)"),
    ("issue -R o/r", "issue (group) --repo=o/r"),
    // The command is found behind flags that swallow a word.
    ("issue list", "issue list"),
    ("-R o/r issue list", "issue list --repo=o/r"),
    ("--repo o/r issue list", "issue list --repo=o/r"),
    ("-Ro/r issue list", "issue list --repo=o/r"),
    ("issue -R o/r list", "issue list --repo=o/r"),
    ("issue --json number list", "issue list --json=number"),
    ("--json number issue list", "issue list --json=number"),
    ("-R issue issue list", "issue list --repo=issue"),
    ("issue -R list list", "issue list --repo=list"),
    ("--json issue issue list", "issue list --json=issue"),
    ("issue --web=true list", "issue list --web"),
    ("--version issue list", "issue (unknown list) [list] UnknownFlag@0"),
    ("issue --web list", "issue (unknown list) [list] UnknownFlag@1"),
    ("-w issue list", "(unknown issue) [issue] [list]"),
    ("-- issue list", "(unknown issue) [issue] [list]"),
    ("issue -- list", "issue (unknown list) [list]"),
    ("'' issue list", "issue list ['']"),
    ("- issue list", "issue list [-]"),
    ("issue - list", "issue list [-]"),
    ("issue list issue", "issue list [issue]"),
    ("list issue", "(unknown list) [list] [issue]"),
    // Aliases, at every level.
    ("issue ls", "issue list"),
    ("issue new", "issue create"),
    ("label ls", "label list"),
    ("pr co 3", "pr checkout [3]"),
    ("ext ls", "extension list"),
    ("extensions uninstall x", "extension remove [x]"),
    ("cs ls", "codespace list"),
    ("rs ls", "ruleset list"),
    ("at verify x", "attestation verify [x]"),
    ("agents view 3", "agent-task view [3]"),
    ("secret remove X", "secret delete [X]"),
    ("repo deploy-key ls", "repo deploy-key list"),
    ("issue artifact new 12", "issue artifact create [12]"),
    ("issues", "(unknown issues) [issues]"),
    ("Issue list", "(unknown Issue) [Issue] [list]"),
    ("issue lst", "issue (unknown lst) [lst]"),
    ("issue lst --json n", "issue (unknown lst) [lst] [n] UnknownFlag@2"),
    ("issue help", "issue (unknown help) [help]"),
    // A value, wherever it stands.
    ("issue list -R o/r", "issue list --repo=o/r"),
    ("issue list -Ro/r", "issue list --repo=o/r"),
    ("issue list -R=o/r", "issue list --repo=o/r"),
    ("issue list --repo o/r", "issue list --repo=o/r"),
    ("issue list --repo=o/r", "issue list --repo=o/r"),
    ("issue list -R=", "issue list --repo=="),
    ("issue list --repo=", "issue list --repo="),
    ("issue list --search=a=b", "issue list --search=a=b"),
    ("issue list -l ''", "issue list --label="),
    ("issue list -wRo/r", "issue list --web --repo=o/r"),
    ("issue list -Rwo/r", "issue list --repo=wo/r"),
    ("issue view 12 -cw", "issue view --comments --web [12]"),
    ("issue create -tTitle -F-", "issue create --title=Title --body-file=-"),
    ("issue close 12 -c --help", "issue close --comment=--help [12]"),
    ("issue comment 12 -b --repo=x/y", "issue comment --body=--repo=x/y [12]"),
    ("issue create -t -b -b -t", "issue create --title=-b --body=-t"),
    ("issue comment -b -- 12", "issue comment --body=-- [12]"),
    ("issue list -t --help", "issue list --template=--help"),
    // Switches.
    ("issue list --web=false", "issue list --web=false"),
    ("issue list --web=T", "issue list --web"),
    ("issue list -w=0", "issue list --web=false"),
    ("issue list --web false", "issue list --web [false]"),
    ("issue list --web=maybe", "issue list BadSwitch@2"),
    ("issue list -w=", "issue list --web UnknownFlag@2"),
    ("browse -c", "browse --commit="),
    ("browse -c abc", "browse --commit= [abc]"),
    ("browse -c=abc", "browse --commit=abc"),
    ("browse --commit=abc", "browse --commit=abc"),
    ("browse --commit abc", "browse --commit= [abc]"),
    ("auth setup-git -f --hostname h", "auth setup-git --force --hostname=h"),
    ("cache delete --all --succeed-on-no-caches", "cache delete --all --succeed-on-no-caches"),
    ("issue delete 12 --confirm", "issue delete --confirm [12]"),
    ("repo list --public", "repo list --public"),
    ("search issues x -R o/r", "search issues --repo=o/r [x]"),
    // The end of flags.
    ("search issues -- -label:bug", "search issues [-label:bug]"),
    ("issue list -- --help", "issue list [--help]"),
    ("issue view -- -- 12", "issue view [--] [12]"),
    ("repo clone o/r -- --depth 1", "repo clone [o/r] [--depth] [1]"),
    ("issue list -", "issue list [-]"),
    // Help, which is no help where it is a value or another flag.
    ("issue list --help", "issue list help"),
    ("issue list -h", "issue list help"),
    ("issue list -wh", "issue list --web help"),
    ("issue list -hw", "issue list --web help"),
    ("issue list --help=false", "issue list"),
    ("issue list --help --help=false", "issue list"),
    ("issue list --help=x", "issue list BadSwitch@2"),
    ("--help issue list", "issue list help"),
    ("repo create -h", "repo create NoValue@2"),
    ("repo create -h https://x", "repo create --homepage=https://x"),
    ("auth login -h ghe.example.com", "auth login --hostname=ghe.example.com"),
    ("config get -h ghe.example.com editor", "config get --host=ghe.example.com [editor]"),
    // What gh refuses.
    ("issue list --bogus", "issue list UnknownFlag@2"),
    ("issue list --bogus=1 -L 5", "issue list --limit=5 UnknownFlag@2"),
    ("issue list --stat open", "issue list [open] UnknownFlag@2"),
    ("issue list -Z", "issue list UnknownFlag@2"),
    ("issue list -wZ", "issue list --web UnknownFlag@2"),
    ("issue close -12", "issue close UnknownFlag@2"),
    ("issue list ---x", "issue list BadSyntax@2"),
    ("issue list --=x", "issue list BadSyntax@2"),
    ("issue list -R", "issue list NoValue@2"),
    ("issue list --label", "issue list NoValue@2"),
    ("issue list -wl", "issue list --web NoValue@2"),
    ("issue list --Label x", "issue list [x] UnknownFlag@2"),
    // An unknown first word keeps its own grammar.
    ("my-ext run --body -h2 -- --help", "(unknown my-ext) [my-ext] [run] [--body] [-h2] [--] [--help]"),
    ("my-ext --help", "(unknown my-ext) [my-ext] [--help] help"),
    ("my-ext -h", "(unknown my-ext) [my-ext] [-h] help"),
    ("--bogus my-ext", "(unknown my-ext) [my-ext]"),
];

#[test]
fn every_row_of_the_grammar_reads_as_gh_reads_it() {
    for (line, expected) in GRAMMAR {
        let expected = expected.replace("['']", "[]");
        assert_eq!(show(line), expected, "gh {line}");
    }
}

#[test]
fn a_value_is_found_again_in_the_word_it_stands_in() {
    for line in [
        "issue create -t T --body-file -",
        "issue create -t T --body-file=-",
        "-F - issue create -t T",
        "issue -F- create -t T",
        "issue create -t T -F=-",
    ] {
        let args = words(line);
        let call = parse(&args);
        let given = call.flags.iter().find(|flag| flag.name == "body-file").expect(line);
        let (word, byte) = given.place.value.expect(line);
        assert_eq!(&args[word].as_bytes()[byte..], b"-", "{line}");
        assert!(args[given.place.word].as_bytes().starts_with(b"-"), "{line}");
    }
}

#[test]
fn the_last_occurrence_of_a_flag_wins() {
    let args = words("issue list -R a/b --web --repo=c/d --web=false");
    let call = parse(&args);
    assert_eq!(call.value("repo"), Some(OsStr::new("c/d")));
    assert!(!call.switch("web"));
    assert!(call.given("web"));
    assert_eq!(call.values("repo").count(), 2);
}

#[test]
fn a_flag_of_one_version_only_says_so() {
    let args = words("issue list --type Bug --label x");
    let in_both: Vec<bool> = parse(&args).flags.iter().map(|flag| flag.in_both_versions).collect();
    assert_eq!(in_both, [false, true]);
}

#[test]
fn words_that_are_no_utf8_are_operands_and_values_like_any_other() {
    let bad = OsString::from(OsStr::from_bytes(b"\xff\xfe"));
    let args = [words("issue list -l"), vec![bad.clone(), bad.clone()]].concat();
    let call = parse(&args);
    assert_eq!(call.value("label"), Some(bad.as_os_str()));
    assert_eq!(call.operands[0].text, bad);
    assert_eq!(parse(&[bad]).named, Named::Unknown { word: 0 });
}

fn golden() -> BTreeMap<String, Json> {
    serde_json::from_str(include_str!("../../../../tests/golden/gh-flags.json")).expect("gh-flags.json")
}

/// Flags that help pages give a value by mistake: `--force --hostname` is a switch and its description.
const SWITCHES: [(&str, &str); 2] = [("auth setup-git", "force"), ("cache delete", "succeed-on-no-caches")];

#[test]
fn the_flag_table_says_what_the_json_says() {
    let golden = golden();
    for (bit, version) in [(1, "2.23.0"), (2, "2.103.3")] {
        for (path, command) in golden[version].as_object().expect("commands") {
            let row = row_of(path).unwrap_or_else(|| panic!("{path} is missing"));
            assert_ne!(COMMANDS[row].1 & bit, 0, "{path} in {version}");
            for group in ["inherited", "flags"] {
                for (name, flag) in command[group].as_object().expect("flags") {
                    same_flag(&golden, path, name, flag);
                }
            }
            for alias in command["aliases"].as_array().expect("aliases") {
                let args = words(alias.as_str().expect("text"));
                assert_eq!(parse(&args[1..]).named.path(), path);
            }
        }
    }
}

fn same_flag(golden: &BTreeMap<String, Json>, path: &str, name: &str, flag: &Json) {
    let spec = COMMANDS[row_of(path).expect("row")].2;
    let known = by_name(spec, name.as_bytes()).unwrap_or_else(|| panic!("{path} --{name} is missing"));
    if let Some(short) = flag["short"].as_str() {
        assert_eq!(known.short, short.bytes().next(), "{path} -{short}");
    }
    let takes = match flag["value"].as_str() {
        None => Takes::Nothing,
        Some(_) if SWITCHES.contains(&(path, name)) => Takes::Nothing,
        Some(value) if value.contains("[=") => Takes::Maybe,
        Some(_) => Takes::Value,
    };
    // The older `browse --commit` is a switch, which the newer's optional value includes.
    assert!(known.takes == takes || (path, name) == ("browse", "commit"), "{path} --{name}");
    let both = ["2.23.0", "2.103.3"]
        .iter()
        .filter(|version| {
            let command = &golden[**version][path];
            command.is_null() || !command["flags"][name].is_null() || !command["inherited"][name].is_null()
        })
        .count();
    assert_eq!(known.in_both_versions, both == 2, "{path} --{name}");
}

#[test]
fn the_flag_table_holds_nothing_that_the_json_or_the_hidden_list_does_not() {
    let mut flags = BTreeSet::new();
    for (_, commands) in golden() {
        for (path, command) in commands.as_object().expect("commands") {
            for group in ["inherited", "flags"] {
                for name in command[group].as_object().expect("flags").keys().filter(|name| *name != "help") {
                    flags.insert(format!("{path} --{name}"));
                }
            }
        }
    }
    let hidden: Vec<String> = COMMANDS
        .iter()
        .flat_map(|(path, _, spec)| {
            spec.split(' ').filter(|w| !w.is_empty()).map(move |w| (path, spec_of(w)))
        })
        .map(|(path, flag)| format!("{path} --{}", flag.long))
        .filter(|flag| !flags.contains(flag))
        .collect();
    assert_eq!(hidden, HIDDEN);
}

/// Flags that no help page shows; each was tried on gh 2.103.3.
const HIDDEN: &[&str] = &[
    " --version",
    "accessibility --web",
    "attestation inspect --format",
    "attestation inspect --hostname",
    "attestation inspect --jq",
    "attestation inspect --template",
    "auth login --secure-storage",
    "auth refresh --secure-storage",
    "auth token --secure-storage",
    "codespace edit --displayName",
    "codespace list --repo-deprecated",
    "codespace select --codespace",
    "codespace select --file",
    "codespace select --repo",
    "codespace select --repo-owner",
    "codespace ssh --stdio",
    "credits --static",
    "gpg-key delete --confirm",
    "issue delete --confirm",
    "label delete --confirm",
    "repo archive --confirm",
    "repo create --confirm",
    "repo create --enable-issues",
    "repo create --enable-wiki",
    "repo credits --static",
    "repo delete --confirm",
    "repo list --private",
    "repo list --public",
    "repo rename --confirm",
    "repo unarchive --confirm",
    "ssh-key delete --confirm",
];

#[test]
fn the_tables_are_sorted_for_the_binary_search() {
    assert!(COMMANDS.is_sorted_by(|a, b| a.0 < b.0));
    assert!(ALIASES.is_sorted_by(|a, b| a.0 < b.0));
    for (alias, path) in ALIASES {
        assert!(row_of(path).is_some(), "{alias}");
        assert!(row_of(alias).is_none(), "{alias}");
    }
}

/// A small generator with a seed, so that a failure can be repeated.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % end
    }

    /// An argv of known words, flags, values and noise.
    pub(crate) fn argv(&mut self) -> Vec<OsString> {
        const NOISE: &[&[u8]] =
            &[b"", b"-", b"--", b"---", b"-=", b"--=", b"-h", b"-\xff", b"\xff", b"--help", b"12", b"BOB-Q1"];
        (0..self.below(9)).map(|_| self.word(NOISE)).collect()
    }

    fn word(&mut self, noise: &[&[u8]]) -> OsString {
        let row = COMMANDS[self.below(COMMANDS.len())];
        let flags: Vec<&str> = row.2.split(' ').collect();
        let flag = spec_of(flags[self.below(flags.len())]);
        match self.below(6) {
            0 | 1 => row.0.split(' ').next_back().unwrap_or_default().into(),
            2 => format!("--{}", flag.long).into(),
            3 => format!("--{}={}", flag.long, self.below(3)).into(),
            4 => format!("-{}{}", char::from(flag.short.unwrap_or(b'w')), self.below(3)).into(),
            _ => OsStr::from_bytes(noise[self.below(noise.len())]).into(),
        }
    }
}

#[test]
fn no_command_line_makes_it_panic_and_every_word_is_accounted_for_at_most_once() {
    let mut random = Random(1748);
    for _ in 0..20_000 {
        let args = random.argv();
        let call = parse(&args);
        let mut seen = BTreeSet::new();
        for operand in &call.operands {
            assert_eq!(args[operand.word], operand.text);
            assert!(seen.insert(operand.word), "{args:?}");
        }
        for flag in &call.flags {
            assert!(!seen.contains(&flag.place.word), "{args:?}");
            if let Some((word, byte)) = flag.place.value {
                assert_eq!(
                    flag.value,
                    Value::Text(OsStr::from_bytes(&args[word].as_bytes()[byte..])),
                    "{args:?}"
                );
            }
        }
    }
}
