use super::*;
use crate::decide::entry::{Reach, Status};
use crate::decide::journal::{Event, Line};
use crate::decide::queued::{Queued, Step};
use crate::decide::repo::Repo;
use crate::decide::write::WriteKind;
use crate::store::dirty;
use std::fs;

struct Home {
    _folder: tempfile::TempDir,
    root: PathBuf,
    state: PathBuf,
}

impl Home {
    fn new() -> Home {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap().join("project");
        fs::create_dir(&root).unwrap();
        let state = root.with_file_name("state");
        Home { _folder: folder, root, state }
    }

    fn queue(&self) -> Queue {
        Queue::create(&self.root, &self.state).unwrap()
    }

    fn file(&self, name: &str) -> PathBuf {
        path(&self.root).join(name)
    }
}

fn write(queue: &Queue, body: &str, max: u64) -> Result<u32, NotAdded> {
    let argv = ["issue", "comment", "7", "--body-file", "-"].map(String::from).to_vec();
    let queued = Queued {
        kind: WriteKind::Comment,
        target: Some("7".into()),
        argv,
        body_word: Some(4),
        needs: Vec::new(),
    };
    let repo = Repo::new("github.com", "acme", "widget");
    let draft = Draft {
        queued: &queued,
        body: Some(body.as_bytes()),
        repo: &repo,
        signal: Some("net"),
        live: None,
        caller: "test",
        session: "-",
        now_s: 1_000,
    };
    queue.add(&draft, max).map(|(entry, _)| entry.seq)
}

fn line(seq: u32, event: Event) -> Line {
    Line { at_ms: 5, seq, step: Some(Step::Create), event }
}

#[test]
fn a_write_is_whole_private_sealed_and_marked() {
    let home = Home::new();
    assert!(Queue::open(&home.root, &home.state).unwrap().is_none() && !exists(&home.root));
    let queue = home.queue();
    assert_eq!(write(&queue, "text", 5).unwrap(), 1);
    let record = queue.record(1).unwrap();
    assert!(record.is_sealed);
    assert_eq!(record.entry.argv[4], home.file("000001.d/body.md").to_string_lossy());
    assert_eq!(queue.body(1).unwrap(), b"text");
    assert!(dirty::is_marked(&home.state, &home.root));
    assert_eq!(fs::read_to_string(home.root.join(".claude/forge/.gitignore")).unwrap(), "*\n");
    // Another folder, another machine: the same file has no seal there.
    let moved = home.root.with_file_name("moved");
    fs::rename(&home.root, &moved).unwrap();
    assert!(!Queue::open(&moved, &home.state).unwrap().unwrap().record(1).unwrap().is_sealed);
    fs::rename(&moved, &home.root).unwrap();
    let elsewhere = home.root.with_file_name("other-state");
    assert!(!Queue::open(&home.root, &elsewhere).unwrap().unwrap().record(1).unwrap().is_sealed);
}

#[test]
fn the_bound_counts_what_waits_and_numbers_only_go_up() {
    let home = Home::new();
    let queue = home.queue();
    assert_eq!((write(&queue, "a", 2).unwrap(), write(&queue, "b", 2).unwrap()), (1, 2));
    assert!(matches!(write(&queue, "c", 2), Err(NotAdded::Full { max: 2 })));
    assert_eq!(queue.load().unwrap().highest, 2, "a refused write takes no number");
    let lock = queue.lock().unwrap();
    let mut entry = queue.record(2).unwrap().entry;
    entry.status = Status::Dropped;
    queue.update(&lock, &mut entry).unwrap();
    assert!(queue.record(2).unwrap().is_sealed);
    drop(lock);
    assert_eq!(write(&queue, "c", 2).unwrap(), 3);
    let lock = queue.lock().unwrap();
    queue.take_away(&lock, &[1, 2, 3], 3).unwrap();
    drop(lock);
    let loaded = queue.load().unwrap();
    assert_eq!((loaded.found.len(), loaded.orphans.len(), loaded.highest), (0, 0, 3));
    assert_eq!(write(&queue, "d", 2).unwrap(), 4);
}

#[test]
fn an_orphan_is_reported_and_can_be_cleared_without_its_number_coming_back() {
    let home = Home::new();
    let queue = home.queue();
    for name in ["000002.seq", "000003.json.tmp"] {
        fs::write(home.file(name), "").unwrap();
    }
    fs::create_dir(home.file("000004.d")).unwrap();
    assert_eq!(queue.load().unwrap().orphans, [2, 3, 4]);
    assert_eq!(write(&queue, "x", 5).unwrap(), 5);
    let lock = queue.lock().unwrap();
    for seq in 2..=4 {
        queue.spend(&lock, seq).unwrap();
    }
    let loaded = queue.load().unwrap();
    assert_eq!((loaded.orphans.len(), loaded.highest), (0, 5));
    assert!(!home.file("000004.d").exists() && !home.file("000003.json.tmp").exists());
}

#[test]
fn the_log_says_nothing_that_this_machine_did_not_write() {
    let home = Home::new();
    let queue = home.queue();
    let lock = queue.lock().unwrap();
    let landed = line(3, Event::Delivered("https://github.com/acme/widget/issues/42".into()));
    queue.append(&lock, &[line(3, Event::Attempt), landed.clone()]).unwrap();
    let log = queue.log().unwrap();
    assert_eq!(log.lines, [line(3, Event::Attempt), landed.clone()]);
    queue.write_handles(&lock, &log).unwrap();
    assert_eq!(fs::read_to_string(home.file("handles.json")).unwrap(), "{\n  \"BOB-Q3\": 42\n}\n");
    // A forged line, a changed one, a torn one: none is believed, and the next one is whole.
    let mut text = fs::read_to_string(home.file("replay.log")).unwrap();
    text.push_str(&text.lines().last().unwrap().replace("issues/42", "issues/666"));
    text.push_str("\n5\tdelivered\tq000004\tcreate\t-\thttps://github.com/acme/widget/issues/1\t0000000000000000\n5\tatt");
    fs::write(home.file("replay.log"), text).unwrap();
    queue.append(&lock, &[line(5, Event::Failed(Reach::Unknown, "why".into()))]).unwrap();
    let log = queue.log().unwrap();
    assert_eq!((log.lines.len(), log.bad_lines), (3, 3));
    assert_eq!(handles(&log.lines).into_iter().collect::<Vec<_>>(), [("BOB-Q3".to_string(), 42)]);
}

#[test]
fn a_log_that_has_grown_keeps_what_is_needed() {
    let home = Home::new();
    let queue = home.queue();
    let lock = queue.lock().unwrap();
    let filler = line(9, Event::Failed(Reach::Nothing, "x".repeat(280)));
    let landed = line(3, Event::Delivered("https://github.com/acme/widget/issues/42".into()));
    let waiting = line(4, Event::Attempt);
    let mut lines = vec![landed.clone(), waiting.clone()];
    lines.resize(4_000, filler);
    queue.append(&lock, &lines).unwrap();
    queue.compact(&lock, &[4], 10).unwrap();
    assert_eq!(queue.log().unwrap().lines, [landed, waiting]);
}

#[test]
fn the_records_of_long_ago_go_and_the_last_two_hundred_stay() {
    let home = Home::new();
    let queue = home.queue();
    let first = write(&queue, "x", 5).unwrap();
    let lock = queue.lock().unwrap();
    let model = queue.record(first).unwrap().entry;
    for seq in 1..=203 {
        let mut entry = model.clone();
        (entry.seq, entry.id, entry.status) = (seq, format!("q{seq:06}"), Status::Delivered);
        fs::write(home.file(&format!("{seq:06}.seq")), "").unwrap();
        queue.update(&lock, &mut entry).unwrap();
    }
    queue.prune(&lock, &queue.load().unwrap()).unwrap();
    let loaded = queue.load().unwrap();
    assert_eq!((loaded.found.len(), loaded.found[0].seq, loaded.orphans.len()), (200, 4, 0));
    assert!(!home.file("000001.seq").exists());
    queue.unmark_if_drained(&lock).unwrap();
    assert!(!dirty::any(&home.state));
}

#[test]
fn one_replay_at_a_time_and_the_second_knows_the_first() {
    let home = Home::new();
    let queue = home.queue();
    let held = queue.try_replay_lock().unwrap().unwrap();
    let second = home.queue().try_replay_lock().unwrap();
    assert_eq!(second.unwrap_err(), Some(std::process::id()));
    drop(held);
    assert!(queue.try_replay_lock().unwrap().is_ok());
}
