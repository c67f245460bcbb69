//! URL forms, selectors and the choice among remotes, as measured with gh 2.23.0 and 2.103.3.

use super::*;

#[test]
fn every_form_of_a_remote_url_names_its_repository() {
    let rows = [
        ("https://github.com/o/r", "github.com/o/r"),
        ("https://github.com/o/r.git", "github.com/o/r"),
        ("https://github.com/o/r.git/", "github.com/o/r"),
        ("https://github.com/o/r/", "github.com/o/r"),
        ("https://www.github.com/o/r", "github.com/o/r"),
        ("https://WWW.GitHub.com/O/R", "github.com/O/R"),
        ("https://user:secret@github.com:443/o/r.git?x=1", "github.com/o/r"),
        ("https://github.com/o/r#frag", "github.com/o/r"),
        ("https://github.com/o/my%20repo", "github.com/o/my repo"),
        ("http://ghe.example.com:8080/o/r.git", "ghe.example.com/o/r"),
        ("git://github.com/o/r.git", "github.com/o/r"),
        ("ssh://git@github.com/o/r.git", "github.com/o/r"),
        ("ssh://git@github.com:22/o/r", "github.com/o/r"),
        ("ssh://git@ssh.github.com:443/o/r.git", "github.com/o/r"),
        ("git+ssh://git@github.com/o/r.git", "github.com/o/r"),
        ("git+https://github.com/o/r.git", "github.com/o/r"),
        ("git@github.com:o/r.git", "github.com/o/r"),
        ("git@github.com:/o/r.git", "github.com/o/r"),
        ("github.com:o/r", "github.com/o/r"),
        ("git@ssh.github.com:o/r.git", "github.com/o/r"),
        ("https://ssh.github.com/o/r", "ssh.github.com/o/r"),
        ("git@GHE.example.com:o/r.GIT", "ghe.example.com/o/r.GIT"),
        ("git@work-alias:o/r.git", "work-alias/o/r"),
        ("ssh://git@[::1]:22/o/r", "::1/o/r"),
    ];
    for (url, expected) in rows {
        assert_eq!(Repo::from_url(url).map(|repo| repo.to_string()).as_deref(), Some(expected), "{url}");
    }
}

#[test]
fn what_is_no_repository_on_a_host_is_none() {
    for url in [
        "",
        "o/r",
        "/srv/git/r.git",
        "./r.git",
        "../o:r/x",
        "file:///srv/o/r.git",
        "ftp://github.com/o/r",
        "https://github.com/o",
        "https://github.com/o/r/extra",
        "https://github.com//o//r",
        "https://github.com/o/.git",
        "https:///o/r",
        "HTTPS://github.com/o/r",
        "C:\\git\\r",
        "git@github.com",
        "https://github.com/o/%zz",
        "https://github.com/o/r\n",
    ] {
        assert_eq!(Repo::from_url(url), None, "{url}");
    }
}

#[test]
fn a_repo_flag_is_read_as_gh_reads_it() {
    let rows = [
        ("o/r", Some("default.host/o/r")),
        ("o/r.git", Some("default.host/o/r.git")),
        ("O/R", Some("default.host/O/R")),
        ("GHE.example.com/o/r", Some("ghe.example.com/o/r")),
        ("https://github.com/o/r.git", Some("github.com/o/r")),
        ("git@github.com:o/r.git", Some("github.com/o/r")),
        ("ssh://git@github.com/o/r", Some("github.com/o/r")),
        ("r", None),
        ("", None),
        ("/r", None),
        ("o/", None),
        ("a/b/c/d", None),
        ("h//r", None),
        ("https://github.com/o/r/issues", None),
    ];
    for (value, expected) in rows {
        let repo = Repo::parse(value, "default.host").map(|repo| repo.to_string());
        assert_eq!(repo.as_deref(), expected, "{value}");
    }
}

#[test]
fn two_spellings_of_one_repository_are_equal() {
    let (a, b) = (Repo::new("GitHub.com", "Acme", "Widget"), Repo::new("github.com", "acme", "widget"));
    assert_eq!(a, b);
    assert_eq!(a.key(), b.key());
    assert_ne!(a, Repo::new("github.com", "acme", "widgets"));
    assert_ne!(a, Repo::new("ghe.example.com", "acme", "widget"));
    assert!(std::collections::HashSet::from([a]).contains(&b));
}

#[test]
fn a_selector_is_read_as_gh_reads_it() {
    let at = |host: &str| Repo::new(host, "o", "r");
    let rows = [
        ("12", Some(Target::Number(12))),
        ("#12", Some(Target::Number(12))),
        ("012", Some(Target::Number(12))),
        ("+12", Some(Target::Number(12))),
        ("##12", None),
        ("12 ", None),
        ("-12", None),
        ("12,13", None),
        ("", None),
        ("#", None),
        ("o/r#12", None),
        ("GH-12", None),
        ("99999999999999999999999", None),
        ("github.com/o/r/issues/12", None),
        ("https://github.com/o/r/issues/12", Some(Target::Url(at("github.com"), 12))),
        ("http://ghe.example.com:8080/o/r/issues/12", Some(Target::Url(at("ghe.example.com"), 12))),
        ("https://github.com/O/R/issues/12#issuecomment-5", Some(Target::Url(at("github.com"), 12))),
        ("https://github.com/o/r/issues/12/x?y", Some(Target::Url(at("github.com"), 12))),
        ("https://github.com/o/r/pull/12", Some(Target::Url(at("github.com"), 12))),
        ("https://github.com/o/r/pulls", None),
        ("https://github.com/o/r/issues/", None),
        ("https://github.com/o/r", None),
        ("https://github.com//r/issues/1", None),
        ("BOB-Q3", Some(Target::Handle(3))),
        ("#BOB-Q3", Some(Target::Handle(3))),
        ("BOB-Q", None),
        ("BOB-Q0", None),
        ("BOB-Q3x", None),
        ("bob-q3", None),
        ("BOB-Q+3", None),
        ("https://github.com/o/r/issues/BOB-Q1", Some(Target::HandleUrl(at("github.com"), 1))),
        ("https://github.com/o/r/issues/BOB-Q1#top", Some(Target::HandleUrl(at("github.com"), 1))),
        ("https://github.com/o/r/issues/BOB-Q1x", None),
        ("https://github.com/o/r/pull/BOB-Q1", None),
    ];
    for (operand, expected) in rows {
        assert_eq!(Target::parse(operand), expected, "{operand}");
    }
}

/// A remote's name, URL and `gh-resolved`.
type Row = (&'static str, &'static str, &'static str);

fn remotes(list: &[Row]) -> Vec<Remote> {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_string());
    list.iter()
        .map(|(name, url, resolved)| Remote {
            name: name.to_string(),
            url: url.to_string(),
            push_url: None,
            resolved: some(resolved),
        })
        .collect()
}

fn env(host: &str, repo: &str) -> GhEnv {
    let set = |text: &str| (!text.is_empty()).then(|| text.into());
    GhEnv { host: set(host), repo: set(repo) }
}

fn pick(env: &GhEnv, list: &[Row], known: &[&str]) -> Option<String> {
    let known: Vec<String> = known.iter().map(|host| host.to_string()).collect();
    gh_would_pick(None, None, env, &remotes(list), &known).map(|repo| repo.to_string())
}

const FORK: &[Row] = &[("origin", "git@github.com:me/r.git", ""), ("upstream", "https://github.com/o/r", "")];
const BOTH_HOSTS: &[Row] =
    &[("origin", "git@github.com:me/r.git", ""), ("work", "https://ghe.example.com/o/r", "")];

#[test]
fn a_url_beats_the_flag_beats_the_environment_beats_git() {
    let all = remotes(FORK);
    let url = Repo::new("ghe.example.com", "u", "u");
    let env = env("", "e/e");
    let pick = |flag, url| gh_would_pick(flag, url, &env, &all, &[]).map(|repo| repo.to_string());
    assert_eq!(pick(Some("f/f"), Some(&url)).as_deref(), Some("ghe.example.com/u/u"));
    assert_eq!(pick(Some("f/f"), None).as_deref(), Some("github.com/f/f"));
    assert_eq!(pick(Some(""), None).as_deref(), Some("github.com/e/e"));
    assert_eq!(pick(Some("nonsense"), None), None);
    assert_eq!(gh_would_pick(None, None, &GhEnv::default(), &all, &[]), Some(Repo::new(GITHUB, "o", "r")));
}

#[test]
fn two_parts_are_on_the_default_host() {
    let known = |list: &[&str]| list.iter().map(|host| host.to_string()).collect::<Vec<_>>();
    assert_eq!(default_host(&env("", ""), &[]), "github.com");
    assert_eq!(default_host(&env("GHE.example.com", ""), &known(&["github.com"])), "ghe.example.com");
    assert_eq!(default_host(&env("", ""), &known(&["ghe.example.com"])), "ghe.example.com");
    assert_eq!(default_host(&env("", ""), &known(&["ghe.example.com", "a.example.com"])), "github.com");
}

#[test]
fn remotes_are_tried_in_ghs_own_order() {
    let none = env("", "");
    let rows: &[(&[Row], Option<&str>)] = &[
        (&[], None),
        (FORK, Some("github.com/o/r")),
        (&[("origin", "git@github.com:me/r.git", "base"), FORK[1]], Some("github.com/me/r")),
        (&[("origin", "git@github.com:me/r.git", "x/y"), FORK[1]], Some("github.com/x/y")),
        (&[("origin", "git@github.com:me/r.git", "h.com/x/y"), FORK[1]], Some("github.com/x/y")),
        (&[("origin", "git@github.com:me/r.git", "junk"), FORK[1]], None),
        (&[("b", "git@github.com:b/r", ""), ("a", "git@github.com:a/r", "")], Some("github.com/a/r")),
        (&[("a", "git@github.com:a/r", ""), ("origin", "git@github.com:o/r", "")], Some("github.com/o/r")),
        (
            &[("origin", "git@github.com:o/r", ""), ("GitHub", "git@github.com:g/r", "")],
            Some("github.com/g/r"),
        ),
        (
            &[("origin", "git@github.com:o/r", ""), ("Upstream", "git@github.com:u/r", "")],
            Some("github.com/u/r"),
        ),
        (&[("origin", "/srv/git/r.git", ""), ("x", "git@github.com:x/r", "")], Some("github.com/x/r")),
        (&[("origin", "git@gitlab.com:o/r", "")], None),
        (&[("origin", "https://gist.github.com/o/r", "")], None),
    ];
    for (list, expected) in rows {
        assert_eq!(pick(&none, list, &[]).as_deref(), *expected, "{list:?}");
    }
}

#[test]
fn a_named_default_host_chooses_among_the_remotes() {
    let none = env("", "");
    assert_eq!(pick(&none, BOTH_HOSTS, &[]).as_deref(), Some("github.com/me/r"));
    assert_eq!(pick(&none, BOTH_HOSTS, &["ghe.example.com"]).as_deref(), Some("ghe.example.com/o/r"));
    assert_eq!(
        pick(&none, BOTH_HOSTS, &["github.com", "ghe.example.com"]).as_deref(),
        Some("github.com/me/r")
    );
    assert_eq!(pick(&none, FORK, &["ghe.example.com"]).as_deref(), Some("github.com/o/r"));
    assert_eq!(
        pick(&env("ghe.example.com", ""), BOTH_HOSTS, &["github.com"]).as_deref(),
        Some("ghe.example.com/o/r")
    );
    assert_eq!(pick(&env("ghe.example.com", ""), FORK, &[]), None);
}

#[test]
fn a_push_url_stands_in_for_a_fetch_url_that_names_no_repository() {
    let remote = Remote {
        name: "origin".into(),
        url: "/mirror/r.git".into(),
        push_url: Some("git@github.com:o/r.git".into()),
        resolved: None,
    };
    assert_eq!(remote.repo(), Some(Repo::new(GITHUB, "o", "r")));
    assert_eq!(origin(&[remote]), None);
}

#[test]
fn github_is_known_by_every_one_of_its_names() {
    for host in ["github.com", "GitHub.com", "www.github.com", "api.github.com", "uploads.github.com"] {
        assert!(is_github(host), "{host}");
    }
    for host in ["ghe.example.com", "notgithub.com", "github.com.evil.example", "acme.ghe.com", ""] {
        assert!(!is_github(host), "{host}");
    }
}

#[test]
fn a_repository_always_has_a_host() {
    let repo = Repo::from_url("www.:/o/n").unwrap();
    assert_eq!(repo.host, "www.");
    assert_eq!(Repo::parse(&repo.to_string(), "elsewhere.example"), Some(repo));
}
