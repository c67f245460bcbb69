//! The use cases on real files.
#![allow(clippy::disallowed_methods)]

use std::fs;

use super::*;

const NOW: u64 = 1_800_000_000;

struct Scene {
    home: tempfile::TempDir,
    env: Vec<(OsString, OsString)>,
}

impl Scene {
    fn new() -> Scene {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(home.path().join("project/.git")).unwrap();
        let remote = "[remote \"origin\"]\n\turl = https://github.com/Acme/Widget.git\n";
        fs::write(home.path().join("project/.git/config"), remote).unwrap();
        let env = vec![
            ("HOME".into(), home.path().into()),
            ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
            ("GH_TOKEN".into(), "secret-token".into()),
        ];
        Scene { home, env }
    }

    fn with(&self, name: &str, value: &str) -> Scene {
        let home = tempfile::tempdir_in(self.home.path()).unwrap();
        let mut env = self.env.clone();
        env.retain(|(n, _)| n != name);
        env.push((name.into(), value.into()));
        Scene { home, env }
    }

    fn at(&self, root: &Scene, now_s: u64) -> Context {
        Context::new(self.env.clone(), Some(root.home.path().join("project")), Some(now_s))
    }

    fn now(&self) -> Context {
        self.at(self, NOW)
    }
}

fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

#[test]
fn what_was_stored_is_looked_up_until_it_is_stale() {
    let scene = Scene::new();
    let args = words("issue list --label req");
    assert_eq!(lookup(&scene.now(), &args), None);
    assert!(store(&scene.now(), &args, b"1\topen\n").unwrap());
    let answer = lookup(&scene.at(&scene, NOW + 45), &args).unwrap();
    assert_eq!(answer, Answer { bytes: b"1\topen\n".to_vec(), age_s: 45, stored_at: NOW });
    assert_eq!(lookup(&scene.at(&scene, NOW + 86_400), &args), None);
    assert_eq!(lookup(&scene.at(&scene, NOW - 1), &args), None);
    let short = scene.with("BOB_FORGE_CACHE_MAX_AGE", "10");
    assert!(lookup(&short.at(&scene, NOW + 9), &args).is_some());
    assert_eq!(lookup(&short.at(&scene, NOW + 10), &args), None);
    assert!(store(&scene.now(), &args, b"").unwrap(), "an empty list is an answer");
    assert_eq!(clear(&scene.now()).unwrap().map(|(entries, _)| entries), Some(1));
    assert_eq!(lookup(&scene.now(), &args), None);
}

#[test]
fn only_the_four_reads_are_ever_stored() {
    let scene = Scene::new();
    for line in
        ["issue create -t x", "issue list --web", "pr list", "api user", "issue view 5 --help", "issue"]
    {
        let args = words(line);
        assert!(!is_cacheable(&scene.now(), &args), "{line}");
        assert!(!store(&scene.now(), &args, b"x").unwrap(), "{line}");
        assert_eq!(key_for(&scene.now(), &args), None, "{line}");
    }
    for line in ["issue list", "issue ls", "issue view 5", "label list", "label ls", "search issues x"] {
        assert!(is_cacheable(&scene.now(), &words(line)), "{line}");
        assert!(store(&scene.now(), &words(line), b"x").unwrap(), "{line}");
    }
    assert!(!store(&scene.now(), &words("label list"), b"[]\n").unwrap());
    assert_eq!(lookup(&scene.now(), &words("label list")).unwrap().bytes, b"x");
    assert_eq!(status(&scene.now()).unwrap().rows.len(), 6);
}

#[test]
fn the_question_is_argv_repository_host_and_shape() {
    let scene = Scene::new();
    let key = |scene: &Scene, root: &Scene, line: &str| key_for(&scene.at(root, NOW), &words(line)).unwrap();
    let here = key(&scene, &scene, "issue list");
    for (name, value) in [
        ("GH_REPO", "acme/other"),
        ("GH_REPO", "ghe.example/acme/widget"),
        ("GH_HOST", "ghe.example"),
        ("TZ", "CET"),
        ("CLICOLOR_FORCE", "1"),
    ] {
        assert_ne!(key(&scene.with(name, value), &scene, "issue list"), here, "{name}");
    }
    assert_eq!(key(&scene.with("GH_REPO", "ACME/widget"), &scene, "issue list"), here);
    assert_eq!(key(&scene.with("PATH", "/elsewhere"), &scene, "issue list"), here);
    assert_eq!(key_for(&scene.with("GH_FORCE_TTY", "80").at(&scene, NOW), &words("issue list")), None);
    assert_eq!(key_for(&scene.with("BOB_FORGE_CACHE", "0").at(&scene, NOW), &words("issue list")), None);
    let flag = key(&scene, &scene, "issue list -R acme/other");
    assert_ne!(flag, here);
    // Another repository as the default one is another question.
    let config = scene.home.path().join("project/.git/config");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text + "[remote \"upstream\"]\n\turl = git@github.com:up/widget\n").unwrap();
    assert_ne!(key(&scene, &scene, "issue list"), here);
    assert_eq!(key(&scene, &scene, "issue list -R acme/other"), flag);
}

#[test]
fn another_accounts_answer_is_not_served() {
    let scene = Scene::new();
    let args = words("issue list --assignee @me");
    store(&scene.now(), &args, b"mine\n").unwrap();
    assert_eq!(lookup(&scene.with("GH_TOKEN", "other").at(&scene, NOW), &args), None);
    assert!(lookup(&scene.with("GH_TOKEN", "").at(&scene, NOW), &args).is_some());
    let folder = scene.home.path().join("project/.claude/forge/cache");
    for entry in fs::read_dir(folder).unwrap() {
        let text = fs::read(entry.unwrap().path()).unwrap();
        assert!(!String::from_utf8_lossy(&text).contains("secret-token"));
    }
}

#[test]
fn an_answer_from_the_forge_is_stored_and_a_404_takes_it_back() {
    let scene = Scene::new();
    let (context, args) = (scene.now(), words("issue view 5"));
    let plan = planned(&context, &args);
    let at = |started_s: u64| Asked {
        started_ns: (NOW + started_s) * 1_000_000_000,
        ..asked(&context, &args, &plan)
    };
    let came = |signal, answer| Came {
        signal,
        answer,
        said: b"",
        has_flowed: false,
        now_ns: (NOW + 50) * 1_000_000_000,
    };
    assert_eq!(at(0).conclude(came(Signal::Net, None)), None, "never seen");
    assert_eq!(at(1).conclude(came(Signal::Ok, Some(b"title\n"))), None);
    let reply = at(5).conclude(came(Signal::Server, Some(b"half of it"))).unwrap();
    assert_eq!(reply.answer, b"title\n");
    assert!(
        reply
            .marker
            .starts_with("[forge-cache] served from cache (age 49s) — the live call failed (server).")
    );
    assert_eq!(at(6).conclude(Came { has_flowed: true, ..came(Signal::Net, None) }), None);
    for signal in [Signal::Other, Signal::NotFound] {
        assert_eq!(at(7).conclude(came(signal, None)), None);
    }
    assert_eq!(at(8).conclude(came(Signal::Net, None)), None, "it was not found since");
    at(6).conclude(came(Signal::Ok, Some(b"slow and old\n")));
    assert_eq!(at(9).conclude(came(Signal::Net, None)), None);
    at(9).conclude(came(Signal::Ok, Some(b"back\n")));
    assert_eq!(at(10).conclude(came(Signal::Auth, None)).unwrap().answer, b"back\n");
    at(11).conclude(Came { said: b"warning: half\n", ..came(Signal::Ok, Some(b"half\n")) });
    assert_eq!(at(12).conclude(came(Signal::RateLimit, None)).unwrap().answer, b"back\n");
}

#[test]
fn reads_from_the_cache_are_reported_for_an_hour() {
    let scene = Scene::new();
    let reads = |context: &Context| reads(context).unwrap().unwrap();
    assert_eq!(reads(&scene.now()), Reads { window: READS_WINDOW_S, ..Reads::default() });
    let (context, args) = (scene.now(), words("issue list"));
    let plan = planned(&context, &args);
    store(&context, &args, b"x").unwrap();
    let fail = |after_s: u64| {
        let now_ns = (NOW + after_s) * 1_000_000_000;
        let came = Came { signal: Signal::Server, answer: None, said: b"", has_flowed: false, now_ns };
        asked(&context, &args, &plan).conclude(came).is_some()
    };
    assert!(fail(30) && fail(45) && !fail(90_000));
    let after = reads(&scene.at(&scene, NOW + 100));
    assert_eq!((after.served, after.last_served_at, after.last_answer_age_s), (2, Some(NOW + 45), Some(45)));
    assert_eq!((after.last_signal, after.last_command.as_deref()), (Some("server"), Some("issue list")));
    assert_eq!(after.stale, 1, "a clock ahead of ours counts too");
    assert_eq!(
        reads(&scene.at(&scene, NOW + 90_000)),
        Reads { stale: 1, window: READS_WINDOW_S, ..Reads::default() }
    );
}

#[test]
fn outside_a_project_there_is_no_cache() {
    let scene = Scene::new();
    let context = Context::new(scene.env.clone(), Some("/".into()), Some(NOW));
    assert!(!store(&context, &words("issue list"), b"x").unwrap());
    assert_eq!((clear(&context).unwrap(), status(&context).unwrap().project), (None, None));
}
