use super::*;
use crate::process::kernel;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

/// The machine's own kernel, but for who we are.
#[derive(Clone)]
struct World(Owner);

impl World {
    fn here() -> World {
        let pid = kernel::pid();
        World(Owner {
            pid,
            start: kernel::start_of(pid).unwrap(),
            boot: kernel::boot_id(),
            namespace: kernel::pid_namespace(),
            boot_s: kernel::boot_s(),
        })
    }

    fn dead() -> World {
        World(Owner { start: "1".into(), ..World::here().0 })
    }
}

impl Kernel for World {
    fn me(&self) -> Owner {
        self.0.clone()
    }

    fn start_of(&self, pid: u32) -> Option<String> {
        kernel::start_of(pid)
    }

    fn rename_to_free(&self, from: &Path, to: &Path) -> io::Result<()> {
        kernel::rename_to_free(from, to)
    }

    fn unique(&self) -> u64 {
        kernel::unique()
    }
}

fn take(folder: &Path, world: &World) -> Option<Lease> {
    acquire(folder, Duration::ZERO, world).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

/// Leaves the lock as a killed holder leaves it.
fn abandon(folder: &Path, owner: &World) {
    std::mem::forget(take(folder, owner).unwrap());
}

#[test]
fn one_holder_at_a_time_and_a_commit_puts_the_bytes_in_place() {
    let home = tempfile::tempdir().unwrap();
    let (folder, target) = (home.path().join("budget.lock"), home.path().join("budget.env"));
    let lease = take(&folder, &World::here()).unwrap();
    assert!(take(&folder, &World::here()).is_none());
    lease.commit(&target, b"new").unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"new");
    drop(take(&folder, &World::here()).unwrap());
    assert_eq!(names(home.path()), ["budget.env"], "nothing is left behind");
}

#[test]
fn a_dead_owners_lock_is_taken_over_by_exactly_one_of_twenty() {
    let home = tempfile::tempdir().unwrap();
    for round in 0..200 {
        let folder = home.path().join(format!("{round}.lock"));
        abandon(&folder, &World::dead());
        let (barrier, holders) = (Arc::new(Barrier::new(20)), Arc::new(AtomicUsize::new(0)));
        let waiters: Vec<_> = (0..20)
            .map(|_| {
                let (folder, barrier, holders) = (folder.clone(), barrier.clone(), holders.clone());
                std::thread::spawn(move || {
                    let world = World::here();
                    barrier.wait();
                    let lease = take(&folder, &world);
                    holders.fetch_add(usize::from(lease.is_some()), Ordering::SeqCst);
                    // Kept until everybody has tried.
                    barrier.wait();
                    lease.map(|lease| lease.commit(&folder.with_extension("env"), b"x"))
                })
            })
            .collect();
        let ends: Vec<_> = waiters.into_iter().filter_map(|waiter| waiter.join().unwrap()).collect();
        assert_eq!(holders.load(Ordering::SeqCst), 1, "round {round}");
        assert!(ends.iter().all(Result::is_ok), "round {round}");
    }
    let left: Vec<_> = names(home.path()).into_iter().filter(|name| !name.ends_with(".env")).collect();
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn an_owner_that_was_taken_over_changes_nothing_and_removes_no_lock_of_its_successor() {
    let home = tempfile::tempdir().unwrap();
    let (folder, target) = (home.path().join("budget.lock"), home.path().join("budget.env"));
    let stopped = take(&folder, &World::dead()).unwrap();
    let also_stopped = fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let successor = take(&folder, &World::here()).unwrap();
    assert!(!also_stopped.exists());
    assert_eq!(stopped.commit(&target, b"old").unwrap_err().kind(), io::ErrorKind::NotFound);
    assert!(!target.exists());
    assert!(take(&folder, &World::here()).is_none(), "the successor still holds it");
    successor.commit(&target, b"new").unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"new");
}

#[test]
fn who_is_taken_over() {
    let here = World::here().0;
    let table = [
        ("alive", here.clone(), false),
        ("dead", World::dead().0, true),
        ("another boot", Owner { boot: "x".into(), ..here.clone() }, true),
        (
            "another container, young",
            Owner { namespace: "x".into(), start: "1".into(), ..here.clone() },
            false,
        ),
        ("alive, its start unknown", Owner { start: String::new(), ..here.clone() }, false),
        (
            "its numbering unknown",
            Owner { namespace: String::new(), start: "1".into(), ..here.clone() },
            false,
        ),
        ("alive, but late", Owner { boot_s: here.boot_s.wrapping_sub(40), ..here.clone() }, true),
        ("within its lease", Owner { boot_s: here.boot_s + 29, ..here }, false),
    ];
    for (what, owner, taken_over) in table {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("budget.lock");
        abandon(&folder, &World(owner));
        assert_eq!(take(&folder, &World::here()).is_some(), taken_over, "{what}");
    }
}

#[test]
fn a_shell_shims_plain_folder_is_honoured_for_half_a_minute() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("budget.lock");
    fs::create_dir(&folder).unwrap();
    assert!(take(&folder, &World::here()).is_none());
    let long_ago = std::time::SystemTime::now() - Duration::from_secs(31);
    fs::File::open(&folder).unwrap().set_modified(long_ago).unwrap();
    assert!(take(&folder, &World::here()).is_some());
}

#[test]
fn folders_that_never_got_into_place_are_swept_when_they_are_old() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("budget.lock");
    for name in ["budget.lock.new.1.2.3", "budget.lock.new.4.5.6"] {
        fs::create_dir(home.path().join(name)).unwrap();
    }
    let long_ago = std::time::SystemTime::now() - Duration::from_secs(601);
    fs::File::open(home.path().join("budget.lock.new.1.2.3")).unwrap().set_modified(long_ago).unwrap();
    drop(take(&folder, &World::here()).unwrap());
    assert_eq!(names(home.path()), ["budget.lock.new.4.5.6"]);
}
