//! What every fuzzer checks, once: the fuzz targets and `crates/engine/tests/properties.rs` both are these
//! functions. None may panic, whatever the bytes.
#![allow(dead_code, reason = "a fuzz target uses one of them")]

#[path = "gh_refuses.rs"]
mod gh_refuses;

pub use gh_refuses::why as refused;

use std::cell::OnceCell;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use engine::decide::argv;
use engine::decide::backoff::{self, backoff};
use engine::decide::cache_key::{Account, Key};
use engine::decide::entry;
use engine::decide::gate::{Closed, Scene, Slot, gate};
use engine::decide::git_config::{self, Item};
use engine::decide::git_include;
use engine::decide::hosts;
use engine::decide::journal::{Event, Line};
use engine::decide::plan::{GhEnv, plan};
use engine::decide::queued::{self, Step};
use engine::decide::reading::Reading;
use engine::decide::repo::{self, Remote, Repo, Target};
use engine::decide::resource::Resource;
use engine::decide::signal::{Ended, Limit, Signal, classify};
use engine::decide::verdict;
use engine::decide::write::{Write, with_body_file};
use engine::settings::Settings;
use engine::store;

/// What a fuzzer checks of some bytes.
pub type Body = fn(&[u8]);

/// Every body by its fuzz target's name.
pub const ALL: [(&str, Body); 8] = [
    ("argv", argv),
    ("signal", signal),
    ("logs", logs),
    ("states", states),
    ("cache", cache),
    ("queue", queue),
    ("git", git),
    ("urls", urls),
];

/// Words that gh's grammar is made of. In an argv, one byte stands for one of them.
const WORDS: [&str; 64] = [
    "issue",
    "create",
    "comment",
    "edit",
    "close",
    "reopen",
    "list",
    "view",
    "label",
    "search",
    "issues",
    "api",
    "graphql",
    "pr",
    "status",
    "run",
    "watch",
    "--",
    "-",
    "--body",
    "-b",
    "--body-file",
    "-F",
    "--title",
    "-t",
    "--repo",
    "-R",
    "acme/widget",
    "5",
    "#5",
    "BOB-Q1",
    "https://github.com/acme/widget/issues/5",
    "--add-label",
    "--label",
    "-l",
    "bug",
    "--web",
    "-w",
    "--web=false",
    "--web=maybe",
    "--help",
    "-h",
    "--comment",
    "-c",
    "--reason",
    "-r",
    "completed",
    "--editor",
    "--edit-last",
    "--assignee",
    "@me",
    "-a",
    "--milestone",
    "--project",
    "--body=",
    "--title=t",
    "-Facme",
    "--no-such",
    "-Z",
    "--paginate",
    "--input",
    "-X",
    "",
    "--remove-label=x",
];

/// An argv out of bytes: words are separated by NUL; a word of one byte stands for one of [`WORDS`].
pub fn words(data: &[u8]) -> Vec<OsString> {
    let word = |bytes: &[u8]| match bytes {
        [one] => WORDS[*one as usize % WORDS.len()].into(),
        bytes => OsString::from_vec(bytes.to_vec()),
    };
    data.split(|b| *b == 0).take(24).map(word).collect()
}

/// The argv grammar: it never panics, is the same twice, and calls nothing queueable that gh would refuse.
pub fn argv(data: &[u8]) {
    let args = words(data);
    let parsed = argv::parse(&args);
    for operand in &parsed.operands {
        assert_eq!(operand.text, args[operand.word], "an operand is one of the words");
    }
    let env = GhEnv::default();
    let judged = plan(&args, &env);
    assert_eq!(judged, plan(&args, &env));
    if let Write::Queueable(action) = &judged.write {
        let refused = refused(&args);
        assert!(refused.is_none(), "queueable, but gh says {refused:?} to {args:?}");
        assert!(!judged.is_cacheable_read, "{args:?} is a read and a write");
        let with_body = with_body_file(&args, "/queue/body.md".as_ref());
        let Write::Queueable(again) = plan(&with_body, &env).write else {
            panic!("{args:?} is queueable, {with_body:?} is not")
        };
        assert_eq!(
            (action.kind(), action.on().map(|on| &on.target)),
            (again.kind(), again.on().map(|on| &on.target))
        );
    }
}

/// The classifier: any end, any bytes, any argv.
pub fn signal(data: &[u8]) {
    let (head, stderr) = data.split_at(data.len().min(4));
    let code = i32::from(head.first().copied().unwrap_or(1));
    let args: Vec<OsString> = match head.get(1).map(|b| b % 4) {
        Some(0) => vec!["issue".into(), "list".into()],
        Some(1) => vec!["api".into(), "graphql".into(), "-f".into(), OsString::from_vec(stderr.to_vec())],
        Some(2) => words(stderr),
        _ => Vec::new(),
    };
    let outcome = classify(Ended::Code(code), stderr, &args);
    assert_eq!(outcome.signal == Signal::Ok, code == 0, "exit {code}");
    assert_eq!(Signal::parse(outcome.signal.as_str()), Some(outcome.signal));
    assert_eq!(classify(Ended::Signal(9), stderr, &args).signal, Signal::Other);
    for retries in [0, 63] {
        let answer = backoff::Answer {
            limit: Limit::Primary,
            retry_after_s: outcome.retry_after_s,
            reset_at: None,
            retries,
            backed_off_ms: 0,
            now_ms: 1_790_000_000_000,
        };
        backoff(&answer, &settings().budget);
    }
}

fn settings() -> Settings {
    Settings::read(&|_: &str| None::<OsString>)
}

thread_local! {
    static SCRATCH: OnceCell<tempfile::TempDir> = const { OnceCell::new() };
}

/// A folder of this process, in memory where the machine has such a place.
fn scratch() -> PathBuf {
    SCRATCH.with(|cell| {
        let folder = cell.get_or_init(|| {
            let memory = PathBuf::from("/dev/shm");
            let place = if memory.is_dir() { memory } else { std::env::temp_dir() };
            tempfile::Builder::new().prefix("forge-fuzz").tempdir_in(place).unwrap()
        });
        folder.path().to_path_buf()
    })
}

fn put(name: &str, bytes: &[u8]) -> PathBuf {
    let state = scratch();
    fs::write(state.join(name), bytes).unwrap();
    state
}

/// The logs: every line is read or counted, and an append keeps what was whole.
pub fn logs(data: &[u8]) {
    let state = put("observations.log", data);
    let reading = store::observations::read(&state).unwrap();
    let complete = data.iter().rposition(|b| *b == b'\n').map_or(&data[..0], |end| &data[..end]);
    let lines = complete.split(|b| *b == b'\n').filter(|line| !line.is_empty()).count();
    assert_eq!(reading.rows.len() + reading.bad_lines, lines);
    for now_s in [0, 1_790_000_000, u64::MAX] {
        verdict::classify(&reading.rows, now_s, 300);
    }
    if let Some(last) = reading.rows.last() {
        store::observations::append(&state, last).unwrap();
        let after = store::observations::read(&state).unwrap();
        let torn = usize::from(!data.ends_with(b"\n") && data.len() > complete.len() + 1);
        assert_eq!(after.rows.len() + after.bad_lines, lines + torn + 1);
        assert_eq!(
            after.rows.last().map(|row| (row.at, row.exit, row.signal)),
            Some((last.at, last.exit, last.signal))
        );
    }
    let state = put("rate.log", data);
    let _ = store::ledger::read(&state);
    let state = put("cache.log", data);
    let _ = store::cache_log::since(&state, 0);
}

/// The small files of the state folder, and the gate that is decided by them.
pub fn states(data: &[u8]) {
    let state = put("budget.env", data);
    let reading = store::budget::read(&state);
    let again = put("budget.env", store::budget::content(&state, &reading).as_bytes());
    assert_eq!(store::budget::read(&again), reading, "what is read is what was written");
    let state = put("hold.env", data);
    let closed = store::hold::read(&state);
    let state = put("rate.log", data);
    let ledger = store::ledger::read(&state).unwrap_or_default();
    let state = put("health.json", data);
    let _ = store::verdict::read(&state, &Default::default());
    decide_on(&reading, closed[Resource::Graphql], &ledger);
    if let Some(reading) = Reading::from_rate_limit(data, 1_790_000_000) {
        decide_on(&reading, Closed::default(), &[]);
    }
}

/// Whatever stands in the files, no call waits longer than the settings allow.
fn decide_on(reading: &Reading, closed: Closed, ledger: &[Slot]) {
    let budget = settings().budget;
    for now_ms in [0, 1_790_000_000_000, 9_000_000_000_000_000] {
        for interactive in [false, true] {
            let scene = Scene {
                resource: Some(Resource::Graphql),
                extra: &[(Resource::Core, 1)],
                reading,
                closed,
                ledger,
                budget: &budget,
                interactive,
                now_ms,
                waited_ms: 0,
                has_ticket: false,
            };
            let wait_s = gate(&scene).wait_s();
            assert!(wait_s <= budget.max_wait_s, "{wait_s} s of waiting for {reading:?}, {closed:?}");
        }
        let reset_at = reading.quotas[Resource::Graphql].map(|quota| quota.reset_at);
        let answer = backoff::Answer {
            limit: Limit::Primary,
            retry_after_s: None,
            reset_at,
            retries: 0,
            backed_off_ms: 0,
            now_ms,
        };
        let decided = backoff(&answer, &budget);
        assert!(!decided.again || decided.wait_ms <= decided.bound_ms);
    }
}

/// A cache entry that anything has happened to: the very answer, or none.
pub fn cache(data: &[u8]) {
    const ANSWER: &[u8] = b"12\tOPEN\tan answer\tbug\n";
    let root = scratch();
    let key = Key::new(&["issue".into(), "list".into()], Some("github.com/acme/widget"), "github.com", &[]);
    let entry = store::cache::Entry { started_ns: 5, account: Account(7), answer: Some(ANSWER.to_vec()) };
    // Whatever an earlier run left in its place is older or not an entry at all.
    let folder = root.join(".claude/forge/cache");
    let _ = fs::remove_dir_all(&folder);
    store::cache::store(&root, &key, &entry, 6, store::cache::BOUNDS).unwrap();
    let file = fs::read_dir(&folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .find(|p| p.extension().is_some_and(|e| e == "entry"));
    let file = file.expect("the entry");
    let whole = fs::read(&file).unwrap();
    let mut bytes = whole.clone();
    match data.split_first() {
        Some((0, rest)) => bytes = rest.to_vec(),
        Some((1, rest)) => bytes.truncate(rest.len()),
        Some((2, rest)) => bytes.extend_from_slice(rest),
        Some((_, rest)) => {
            for pair in rest.chunks_exact(2) {
                let at = pair[0] as usize % bytes.len();
                bytes[at] ^= pair[1];
            }
        }
        None => {}
    }
    fs::write(&file, &bytes).unwrap();
    let found = store::cache::lookup(&root, &key);
    assert!(found.is_none() || bytes == whole, "a damaged entry was served");
    assert!(found.as_ref() == Some(&entry) || bytes != whole, "a whole entry was not");
    store::cache::list(&root).unwrap();
}

/// The queue's files with anything in them: no entry and no line that this machine did not write is taken for
/// its own, and every one that it wrote is.
pub fn queue(data: &[u8]) {
    let home = scratch();
    let root = home.join("project");
    fs::create_dir_all(&root).unwrap();
    let text = String::from_utf8_lossy(data);
    if let Some(line) = Line::parse(&text) {
        assert_eq!(
            Line::parse(&line.to_text()).as_ref(),
            Some(&line),
            "a line that is written is read as it was"
        );
    }
    entry::parse_id(&text);
    entry::parse_handle(&text);
    entry::number_in_url(&text);
    queued::handle_in(&text);
    queued::reread(&text.split('\0').map(String::from).collect::<Vec<_>>());
    keep_and_reread(data);
    let queue = store::queue::Queue::create(&root, &home.join("state")).unwrap();
    for name in ["000001.json", "000002.seq", "replay.log", "handles.json"] {
        let path = queue.path().join(name);
        fs::write(&path, data).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    }
    let loaded = queue.load().unwrap();
    assert!(!loaded.found.iter().any(|found| found.is_ours()), "an entry of nobody's is ours");
    assert!(queue.log().unwrap().lines.is_empty(), "a line of nobody's is ours");
    let lock = queue.lock().unwrap();
    let line = Line {
        at_ms: 5,
        seq: 1,
        step: Some(Step::Create),
        event: Event::Delivered("https://x/issues/7".into()),
    };
    queue.append(&lock, std::slice::from_ref(&line)).unwrap();
    assert_eq!(queue.log().unwrap().lines, [line], "a line after a torn one is lost");
}

/// A write that is kept says the same when it is read again.
fn keep_and_reread(data: &[u8]) {
    let args = words(data);
    let Write::Queueable(action) = plan(&args, &GhEnv::default()).write else { return };
    let Ok(kept) = queued::queued(&args, &action) else { return };
    let (again, _) = queued::reread(&kept.argv)
        .unwrap_or_else(|| panic!("{args:?} kept as {:?} is not read again", kept.argv));
    assert_eq!(again, kept, "{args:?}");
}

/// git's files and gh's hosts.
pub fn git(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    hosts::parse(&text);
    if let Ok(items) = git_config::parse(data) {
        let mut entries = Vec::new();
        for item in items {
            match item {
                Item::Entry(entry) => entries.push(entry),
                Item::Include { condition, .. } => {
                    let scene = git_include::Scene {
                        git_dirs: &["/home/me/r/.git"],
                        home: "/home/me",
                        ..Default::default()
                    };
                    if let Some(condition) = condition {
                        git_include::applies(&condition, &scene);
                    }
                }
            }
        }
        let remotes = git_config::remotes(&entries);
        remotes.iter().for_each(|remote| drop(remote.repo()));
        let _ = repo::origin(&remotes);
        let _ = repo::gh_would_pick(None, None, &GhEnv::default(), &remotes, &["github.com".into()]);
    }
    let scene = git_include::Scene { git_dirs: &["/home/me/r/.git"], home: "/home/me", ..Default::default() };
    git_include::applies(&text, &scene);
    // A checkout whose files hold anything at all.
    let root = scratch().join("checkout");
    fs::create_dir_all(root.join(".git")).unwrap();
    fs::write(root.join(".git/config"), data).unwrap();
    fs::write(root.join(".git/HEAD"), data).unwrap();
    store::remotes::read(&root, &|_: &str| None::<OsString>);
}

/// Repositories in every form: what is read can be written down and read again as the same.
pub fn urls(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for found in [Repo::parse(&text, "github.com"), Repo::from_url(&text)].into_iter().flatten() {
        assert_eq!(found.key(), found.key().to_ascii_lowercase());
        let written = found.to_string();
        let ambiguous = found.host.contains('/') || found.owner.contains('/') || found.name.contains('/');
        assert!(!ambiguous, "{text:?} was read as {found:?}");
        // gh takes `Https:x/o/n` for a host named `https:x`. It is no host anybody has, and in lower case a scheme:
        // written down it is read as none, so that nothing is sent there.
        let schemes = ["ssh", "git+ssh", "git", "http", "git+http", "https", "git+https"];
        let is_scheme = found.host.split_once(':').is_some_and(|(scheme, _)| schemes.contains(&scheme));
        // gh takes one `www.` away, once: read again, a second one would go too, and the names would differ.
        if is_scheme || found.host.starts_with("git@") || found.host.starts_with("www.") {
            continue;
        }
        assert_eq!(
            Repo::parse(&written, "elsewhere.example").as_ref(),
            Some(&found),
            "{text:?} written as {written:?}"
        );
    }
    if let Some(target) = Target::parse(&text) {
        assert!(target.repo().is_none_or(|repo| !repo.owner.contains('/') && !repo.name.contains('/')));
    }
    let remote = Remote { url: text.into_owned(), ..Remote::default() };
    let _ = remote.repo();
}
