//! Golden rows shared with the JS suite, and what no row of theirs can hold.

use serde_json::Value as Json;

use super::super::argv::tests::{Random, words};
use super::super::write::Write;
use super::*;

fn env(host: &str, repo: &str) -> GhEnv {
    let set = |text: &str| (!text.is_empty()).then(|| OsString::from(text));
    GhEnv { host: set(host), repo: set(repo) }
}

fn of(line: &str) -> Plan {
    plan(&words(line), &GhEnv::default())
}

#[test]
fn every_golden_row_holds() {
    let table = include_str!("../../../../tests/golden/argv.jsonl");
    let mut rows = 0;
    for line in table.lines() {
        let row: Json = serde_json::from_str(line).expect(line);
        let args: Vec<OsString> = serde_json::from_value(row["argv"].clone())
            .map(|words: Vec<String>| words.into_iter().map(OsString::from).collect())
            .expect(line);
        let plan = plan(&args, &GhEnv::default());
        assert_eq!(row["command"], plan.command, "{line}");
        assert_eq!(row["kind"], plan.kind.as_str(), "{line}");
        assert_eq!(row["resource"].as_str(), plan.resource.map(Resource::as_str), "{line}");
        assert_eq!(row["cacheable"], plan.is_cacheable_read, "{line}");
        assert_eq!(row["queueable"], matches!(plan.write, Write::Queueable(_)), "{line}");
        rows += 1;
    }
    assert!(rows > 250);
}

#[test]
fn every_command_of_the_table_has_its_own_answer() {
    let rows: Vec<&str> = commands::ROWS.iter().map(|row| row.0).collect();
    assert!(argv::commands().eq(rows.iter().copied()));
    assert!(rows.is_sorted());
    for path in rows.iter().filter(|path| !path.is_empty()) {
        let plan = of(path);
        assert_eq!(plan.command, *path);
        assert_eq!(plan.why.is_empty(), plan.kind == Kind::Call, "{path}");
    }
}

#[test]
fn the_quota_follows_the_specifications_rule_for_every_command() {
    for path in argv::commands().filter(|path| *path != "api") {
        let plan = of(path);
        let expected = match path.split(' ').next().expect("a word") {
            _ if plan.kind == Kind::Offline => None,
            "auth" | "copilot" => None,
            "run" | "workflow" | "release" | "secret" | "variable" => Some(Resource::Core),
            "search" => Some(Resource::Search),
            _ => Some(Resource::Graphql),
        };
        assert_eq!(plan.resource, expected, "{path}");
    }
}

#[test]
fn what_else_a_call_spends_is_never_its_own_quota() {
    for path in argv::commands() {
        let plan = of(path);
        assert!(plan.extra.iter().all(|(resource, _)| Some(*resource) != plan.resource), "{path}");
    }
    assert_eq!(of("search issues x").extra, [(Resource::Graphql, 1)]);
    assert_eq!(of("run view 5").extra, [(Resource::Graphql, 1)]);
    assert_eq!(of("label create x").extra, [(Resource::Core, 1)]);
    assert_eq!(of("search issues x --help").extra, []);
    assert_eq!(plan(&words("search issues x"), &env("ghe.example.com", "")).extra, []);
}

#[test]
fn the_host_is_what_argv_and_the_environment_name() {
    let rows = [
        ("issue list", "", "", None),
        ("issue list -R o/r", "", "", None),
        ("issue list -R github.com/o/r", "", "", Some("github.com")),
        ("issue list -R GHE.example.com/o/r", "", "", Some("ghe.example.com")),
        ("issue list -R git@ghe.example.com:o/r.git", "", "", Some("ghe.example.com")),
        ("issue list -R https://ghe.example.com/o/r", "", "", Some("ghe.example.com")),
        ("issue list", "GHE.example.com", "", Some("ghe.example.com")),
        ("issue list", "", "ghe.example.com/o/r", Some("ghe.example.com")),
        ("issue list", "ghe.example.com", "github.com/o/r", Some("github.com")),
        ("issue list", "ghe.example.com", "o/r", Some("ghe.example.com")),
        ("issue list -R github.com/o/r", "", "ghe.example.com/o/r", Some("github.com")),
        ("issue list -R o/r", "", "ghe.example.com/o/r", None),
        ("issue list -R o/r", "ghe.example.com", "", Some("ghe.example.com")),
        (
            "issue view https://ghe.example.com/o/r/issues/9 -R github.com/o/r",
            "",
            "",
            Some("ghe.example.com"),
        ),
        ("issue view https://github.com/o/r/issues/9", "ghe.example.com", "", Some("github.com")),
        ("pr view https://ghe.example.com/o/r/pull/9", "", "", Some("ghe.example.com")),
        ("search issues x --repo ghe.example.com/o/r", "", "ghe.example.com/o/r", None),
        ("search issues https://ghe.example.com/o/r", "", "", None),
        ("search issues x", "ghe.example.com", "", Some("ghe.example.com")),
        ("api user", "", "ghe.example.com/o/r", None),
        ("api user", "ghe.example.com", "", Some("ghe.example.com")),
        ("api user --hostname github.com", "ghe.example.com", "", Some("github.com")),
        ("api https://ghe.example.com/api/v3/user --hostname github.com", "", "", Some("ghe.example.com")),
        ("api https://api.github.com/user", "ghe.example.com", "", Some("api.github.com")),
        ("repo clone ghe.example.com/o/r", "", "", Some("ghe.example.com")),
        ("repo clone o/r", "", "", None),
        ("repo view https://ghe.example.com/o/r", "", "", Some("ghe.example.com")),
        ("gist view https://gist.github.com/u/abc", "", "", Some("github.com")),
        ("gist list", "", "ghe.example.com/o/r", None),
    ];
    for (line, host, repo, expected) in rows {
        let plan = plan(&words(line), &env(host, repo));
        assert_eq!(plan.host.as_deref(), expected, "{line} GH_HOST={host} GH_REPO={repo}");
        let github = expected.is_none_or(|host| host.ends_with("github.com"));
        assert_eq!(plan.host_is_github(), github, "{line}");
        assert_eq!(plan.resource.is_some(), github, "{line}");
    }
}

#[test]
fn stdin_is_read_where_the_commands_own_grammar_says_so() {
    let reads = [
        "issue create -t T --body-file -",
        "issue create -t T -F-",
        "issue comment 12 --body-file=-",
        "issue edit 12 -F -",
        "pr create -t T -F -",
        "pr merge 3 -F -",
        "pr review 3 -a -F -",
        "discussion create -t T -c General -F -",
        "release create v1 --notes-file -",
        "release create v1 -F -",
        "api graphql --input -",
        "api graphql -F query=@-",
        "api graphql --field=query=@-",
        "api x -F a=b=@- -F c=@-",
        "workflow run ci.yml --json",
        "auth login --with-token",
        "secret set X",
        "secret set -f -",
        "variable set X",
        "gist create -",
        "gist create",
        "gist edit abc -",
        "ssh-key add -",
        "gpg-key add -",
        "repo deploy-key add -",
        "agent-task create -F -",
    ];
    for line in reads {
        assert!(of(line).reads_stdin, "{line}");
    }
    let not = [
        "issue create -t T -b -",
        "issue create -t - -b x",
        "issue create -t T -F ./-",
        "issue create -t -F -b -",
        "issue comment 12 -b --body-file",
        "issue list -S -",
        "api graphql -f query=@-",
        "api graphql -F query=@file",
        "api x -F a=b=@-",
        "api x --input f",
        "workflow run ci.yml -f a=@-",
        "secret set X -b y",
        "secret set -f .env",
        "gist create a.txt",
        "ssh-key add key.pub",
        "issue create --help -F -",
        "alias set x -",
    ];
    for line in not {
        assert!(!of(line).reads_stdin, "{line}");
    }
}

#[test]
fn only_a_paginated_api_call_pages_as_it_prints() {
    assert!(of("api x --paginate").paginates);
    assert!(of("api --paginate --slurp x").paginates);
    assert!(!of("api x --paginate=false").paginates);
    assert!(!of("issue list").paginates);
}

#[test]
fn web_is_whether_the_switch_ends_up_on() {
    assert!(of("issue list -w").web);
    assert!(!of("issue list --web=false").web);
    assert!(!of("repo deploy-key add -w k.pub").web);
    assert!(of("repo create x -t web").kind == Kind::Call);
}

#[test]
fn the_repository_that_argv_names_is_kept_for_the_ones_that_act_on_it() {
    assert_eq!(of("issue list -R a/b -R o/r").repo_flag, Some("o/r".into()));
    assert_eq!(of("issue list -R a/b --repo=").repo_flag, None);
    assert_eq!(of("search issues x -R o/r").repo_flag, None);
    let url = of("issue view https://GitHub.com/O/R/issues/9#c").url_repo;
    assert_eq!(url, Some(Repo::new("github.com", "o", "r")));
    assert_eq!(of("issue view 9").url_repo, None);
    assert_eq!(of("repo view https://github.com/o/r").url_repo, None);
}

#[test]
fn no_command_line_makes_it_panic_and_the_verdicts_agree_with_each_other() {
    let mut random = Random(3190);
    for _ in 0..20_000 {
        let args = random.argv();
        let plan = plan(&args, &GhEnv::default());
        assert_eq!(plan.why.is_empty(), plan.kind == Kind::Call, "{args:?}");
        if plan.kind == Kind::Offline {
            assert!(
                !plan.is_cacheable_read && plan.write == Write::None && plan.resource.is_none(),
                "{args:?}"
            );
        }
        if plan.is_cacheable_read || matches!(plan.write, Write::Queueable(_)) {
            assert_eq!(plan.kind, Kind::Call, "{args:?}");
        }
    }
}
