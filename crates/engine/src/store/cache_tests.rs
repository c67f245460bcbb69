use std::ffi::OsString;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use super::*;

struct Project {
    folder: tempfile::TempDir,
}

impl Project {
    fn new() -> Project {
        Project { folder: tempfile::tempdir().unwrap() }
    }

    fn root(&self) -> &Path {
        self.folder.path()
    }

    fn cache(&self) -> PathBuf {
        self.root().join(".claude/forge/cache")
    }

    fn put(&self, key: &Key, started_ns: u64, answer: &[u8]) -> Stored {
        store(self.root(), key, &entry(started_ns, answer), started_ns + 1, BOUNDS).unwrap()
    }

    fn answer(&self, key: &Key) -> Option<Vec<u8>> {
        lookup(self.root(), key).map(|entry| entry.answer.unwrap())
    }

    fn file(&self, key: &Key) -> PathBuf {
        self.cache().join(file_name(key))
    }
}

fn entry(started_ns: u64, answer: &[u8]) -> Entry {
    Entry { started_ns, account: Account(7), answer: Some(answer.to_vec()) }
}

fn key(n: usize) -> Key {
    let args = ["issue".into(), "view".into(), OsString::from(n.to_string())];
    Key::new(&args, Some("github.com/acme/widget"), "github.com", &[])
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

#[test]
fn an_answer_comes_back_byte_for_byte() {
    let project = Project::new();
    assert_eq!(lookup(project.root(), &key(1)), None);
    let every: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    for answer in [&b""[..], b"\n", b"\0\r\n\xff", &every] {
        assert_eq!(project.put(&key(1), 10, answer), Stored::Kept);
        assert_eq!(lookup(project.root(), &key(1)), Some(entry(10, answer)));
    }
    assert_eq!(project.answer(&key(2)), None);
}

#[test]
fn an_older_call_never_replaces_a_newer_answer() {
    let project = Project::new();
    project.put(&key(1), 100, b"newer");
    let older = entry(50, b"older");
    assert_eq!(store(project.root(), &key(1), &older, 200, BOUNDS).unwrap(), Stored::Superseded);
    assert_eq!(project.answer(&key(1)).unwrap(), b"newer");
    assert_eq!(store(project.root(), &key(1), &entry(150, b"newest"), 200, BOUNDS).unwrap(), Stored::Kept);
    assert_eq!(project.answer(&key(1)).unwrap(), b"newest");
    // The clock was set back: what was stored before is from the future and gives way.
    assert_eq!(store(project.root(), &key(1), &entry(20, b"now"), 30, BOUNDS).unwrap(), Stored::Kept);
    assert_eq!(project.answer(&key(1)).unwrap(), b"now");
}

#[test]
fn what_is_gone_does_not_come_back() {
    let project = Project::new();
    forget(project.root(), &key(1), 10, 11).unwrap();
    assert!(!project.cache().exists(), "nothing known is nothing to forget");
    project.put(&key(1), 100, b"seen");
    forget(project.root(), &key(1), 50, 200).unwrap();
    assert_eq!(project.answer(&key(1)).unwrap(), b"seen", "seen again after it was not found");
    forget(project.root(), &key(1), 150, 200).unwrap();
    assert_eq!(project.answer(&key(1)), None);
    assert_eq!(
        store(project.root(), &key(1), &entry(120, b"slow"), 300, BOUNDS).unwrap(),
        Stored::Superseded
    );
    assert_eq!(project.answer(&key(1)), None);
    assert_eq!(list(project.root()).unwrap(), Listing::default());
}

#[test]
fn a_damaged_cut_or_foreign_file_is_a_miss() {
    let project = Project::new();
    project.put(&key(1), 10, b"answer");
    let whole = fs::read(project.file(&key(1))).unwrap();
    let write = |bytes: &[u8]| fs::write(project.file(&key(1)), bytes).unwrap();
    for cut in 0..whole.len() {
        write(&whole[..cut]);
        assert_eq!(project.answer(&key(1)), None, "cut at {cut}");
        let mut damaged = whole.clone();
        damaged[cut] ^= 1;
        write(&damaged);
        assert_eq!(project.answer(&key(1)), None, "damaged at {cut}");
    }
    assert_eq!(list(project.root()).unwrap().damaged, 1);
    write(&[&whole[..], b"x"].concat());
    assert_eq!(project.answer(&key(1)), None);
    write(&whole);
    assert_eq!(project.answer(&key(1)).unwrap(), b"answer");
    // An answer to another question under this name, and this one's in another checkout.
    project.put(&key(2), 10, b"other");
    fs::rename(project.file(&key(2)), project.file(&key(1))).unwrap();
    assert_eq!(project.answer(&key(1)), None);
    let clone = Project::new();
    clone.put(&key(1), 10, b"mine");
    write(&whole);
    fs::copy(project.file(&key(1)), clone.file(&key(1))).unwrap();
    assert_eq!(clone.answer(&key(1)), None);
    assert_eq!(clone.put(&key(1), 20, b"mine again"), Stored::Kept);
    assert_eq!(clone.answer(&key(1)).unwrap(), b"mine again");
}

#[test]
fn folders_and_files_are_closed_whatever_the_umask_and_on_the_next_write() {
    let project = Project::new();
    project.put(&key(1), 10, b"private");
    project.put(&key(2), 10, b"private");
    let forge = project.root().join(".claude/forge");
    let open = |path: &Path, bits| fs::set_permissions(path, fs::Permissions::from_mode(bits)).unwrap();
    open(&forge, 0o755);
    open(&project.cache(), 0o777);
    open(&project.file(&key(1)), 0o644);
    assert_eq!(project.answer(&key(1)), None, "a file open to others is not trusted");
    project.put(&key(2), 20, b"private");
    assert_eq!((mode(&forge), mode(&project.cache())), (0o700, 0o700));
    for name in fs::read_dir(project.cache()).unwrap() {
        assert_eq!(mode(&name.unwrap().path()), 0o600);
    }
    assert_eq!(project.answer(&key(1)).unwrap(), b"private");
}

#[test]
fn a_symlink_out_of_the_project_is_neither_written_nor_read_through() {
    for place in [".claude", ".claude/forge", ".claude/forge/cache"] {
        let (project, elsewhere) = (Project::new(), tempfile::tempdir().unwrap());
        let at = project.root().join(place);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        symlink(elsewhere.path(), &at).unwrap();
        assert!(store(project.root(), &key(1), &entry(1, b"x"), 2, BOUNDS).is_err(), "{place}");
        assert!(clear(project.root()).is_err() || place != ".claude/forge/cache");
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0, "{place}");
    }
    let (project, elsewhere) = (Project::new(), tempfile::tempdir().unwrap());
    project.put(&key(1), 10, b"mine");
    let outside = elsewhere.path().join("entry");
    fs::rename(project.file(&key(1)), &outside).unwrap();
    symlink(&outside, project.file(&key(1))).unwrap();
    assert_eq!(project.answer(&key(1)), None);
    let before = fs::read(&outside).unwrap();
    project.put(&key(1), 20, b"new");
    assert_eq!((project.answer(&key(1)).unwrap(), fs::read(&outside).unwrap()), (b"new".to_vec(), before));
    symlink(&outside, project.cache().join("planted")).unwrap();
    fs::remove_file(project.cache().join(LOCK)).unwrap();
    symlink(&outside, project.cache().join(LOCK)).unwrap();
    assert!(store(project.root(), &key(1), &entry(30, b"x"), 31, BOUNDS).is_err());
}

#[test]
fn what_stands_in_an_entrys_place_blocks_nobody() {
    let project = Project::new();
    project.put(&key(1), 10, b"x");
    fs::remove_file(project.file(&key(1))).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(project.file(&key(1))).status().unwrap().success());
    assert_eq!(project.answer(&key(1)), None);
    assert_eq!(project.put(&key(1), 20, b"y"), Stored::Kept);
    assert_eq!(project.answer(&key(1)).unwrap(), b"y");
    let huge = fs::File::create(project.file(&key(2))).unwrap();
    huge.set_len(1 << 40).unwrap();
    assert_eq!(project.answer(&key(2)), None);
}

#[test]
fn the_oldest_go_first_and_no_bound_is_ever_passed() {
    let project = Project::new();
    let bounds = Bounds { entries: 40, bytes: 20_000 };
    let count = || {
        let names = fs::read_dir(project.cache()).unwrap().map(|e| e.unwrap());
        let entries: Vec<_> = names.filter(|e| e.path().extension() == Some("entry".as_ref())).collect();
        (entries.len() as u64, entries.iter().map(|e| e.metadata().unwrap().len()).sum::<u64>())
    };
    for n in 0..120 {
        store(project.root(), &key(n), &entry(n as u64 + 1, &[b'x'; 100]), 1_000, bounds).unwrap();
        let (entries, bytes) = count();
        assert!(entries <= 40 && bytes <= 20_000, "{n}: {entries} {bytes}");
        // The order is that of writing; the file system's clock ticks slowly.
        let old = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(n as u64);
        fs::File::open(project.file(&key(n))).unwrap().set_modified(old).unwrap();
    }
    assert!(count().0 >= 36);
    assert!(project.answer(&key(119)).is_some() && project.answer(&key(85)).is_some());
    assert!(project.answer(&key(60)).is_none());
    store(project.root(), &key(500), &entry(500, &[b'y'; 15_000]), 1_000, bounds).unwrap();
    let (_, bytes) = count();
    assert!(bytes <= 20_000 && project.answer(&key(500)).is_some(), "{bytes}");
    // A count that was lost is taken again.
    fs::write(project.cache().join(LOCK), "nonsense").unwrap();
    store(project.root(), &key(501), &entry(501, b"z"), 1_000, bounds).unwrap();
    let (entries, bytes) = count();
    assert_eq!(
        fs::read_to_string(project.cache().join(LOCK)).unwrap(),
        format!("{entries:020} {bytes:020}\n")
    );
}

#[test]
fn an_answer_of_8_mib_is_not_stored() {
    let project = Project::new();
    let most = vec![b'x'; ANSWER_MAX as usize - 1];
    assert_eq!(project.put(&key(1), 1, &most), Stored::Kept);
    assert_eq!(project.answer(&key(1)).unwrap(), most);
    let more = vec![b'x'; ANSWER_MAX as usize];
    assert!(store(project.root(), &key(2), &entry(1, &more), 2, BOUNDS).is_err());
}

#[test]
fn clear_drops_everything_and_says_how_much() {
    let project = Project::new();
    assert_eq!(clear(project.root()).unwrap(), (0, 0));
    project.put(&key(1), 1, b"one");
    project.put(&key(2), 2, b"two");
    assert_eq!(list(project.root()).unwrap().rows.len(), 2);
    assert_eq!(list(project.root()).unwrap().rows[0].question.args, ["issue", "view", "2"]);
    fs::write(project.cache().join("left.tmp"), "debris").unwrap();
    let (entries, bytes) = clear(project.root()).unwrap();
    assert!(entries == 2 && bytes > 6);
    assert_eq!(fs::read_dir(project.cache()).unwrap().count(), 1, "the lock stays");
    assert_eq!(list(project.root()).unwrap(), Listing::default());
    assert_eq!(project.put(&key(1), 1, b"one"), Stored::Kept);
}

#[test]
fn a_reader_meets_a_whole_answer_whatever_is_being_written() {
    let project = Project::new();
    let answer = |n: u64| format!("answer {n}\n").repeat(1 + (n as usize * 37) % 3_000).into_bytes();
    project.put(&key(1), 1, &answer(1));
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|threads| {
        for first in [2, 1_001] {
            let (project, done) = (&project, &done);
            threads.spawn(move || {
                for n in first..first + 400 {
                    // Both questions use the one file that is kept aside.
                    project.put(&key(1), n, &answer(n));
                    project.put(&key(2), n, &answer(n));
                }
                done.store(true, std::sync::atomic::Ordering::Relaxed);
            });
        }
        while !done.load(std::sync::atomic::Ordering::Relaxed) {
            let entry = lookup(project.root(), &key(1)).expect("an answer at any moment");
            assert_eq!(entry.answer.unwrap(), answer(entry.started_ns));
        }
    });
    assert_eq!(list(project.root()).unwrap().damaged, 0);
}
