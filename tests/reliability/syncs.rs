//! Power cuts, from the order of a program's own system calls: what a file system may lose is every write that was
//! not synced, and every name whose folder was not synced. So nothing of either may be left at the two moments
//! that promise something: the rename that makes an entry count, and the word to the caller; and, in a replay, no
//! attempt may be unsynced when its delivery starts.

use std::collections::BTreeSet;

use super::breaking::call_of;
use super::replay::waiting;
use super::scene::{Point, Scene, strace_works};
use super::tally::{Bad, Tally};
use crate::support::queued::settle;
use crate::support::sandbox::forge_command;
use crate::support::streams::Stdin;

/// What a power cut could still take.
#[derive(Default)]
struct Disk {
    /// Files with writes that are not synced.
    dirty: BTreeSet<String>,
    /// Names whose folders are not synced.
    unnamed: BTreeSet<String>,
}

impl Disk {
    fn run(&mut self, point: &Point) {
        let paths = paths_of(&point.line);
        let Some(first) = paths.first() else { return };
        match point.name.as_str() {
            "openat" if point.line.contains("O_CREAT") => drop(self.unnamed.insert(made(&point.line, first))),
            "mkdirat" => drop(self.unnamed.insert(made(&point.line, first))),
            "write" | "pwrite64" | "writev" => drop(self.dirty.insert(first.clone())),
            "fsync" | "fdatasync" => {
                self.dirty.remove(first);
                self.unnamed.retain(|name| name.rsplit_once('/').is_none_or(|(folder, _)| folder != first));
            }
            "renameat" | "renameat2" => {
                let names: Vec<&str> = point.line.split('"').skip(1).step_by(2).collect();
                if let [from, to, ..] = names[..] {
                    self.dirty.remove(&format!("{first}/{from}"));
                    self.unnamed.remove(&format!("{first}/{from}"));
                    self.unnamed.insert(format!("{first}/{to}"));
                }
            }
            _ => {}
        }
    }

    /// What is not on the disk yet of the queue's own files, locks left out.
    fn at_risk(&self) -> Vec<&String> {
        let all = self.dirty.iter().chain(&self.unnamed);
        all.filter(|path| {
            path.contains("/forge/queue/") && !path.ends_with(".lock") && !path.ends_with("handles.json")
        })
        .collect()
    }
}

/// The paths that strace shows behind descriptors.
fn paths_of(line: &str) -> Vec<String> {
    line.split('<')
        .skip(1)
        .filter_map(|rest| rest.split_once('>'))
        .map(|(path, _)| path.to_string())
        .collect()
}

/// The path of a name that a call makes in a folder.
fn made(line: &str, folder: &str) -> String {
    format!("{folder}/{}", line.split('"').nth(1).unwrap_or_default())
}

/// The order of syncs in an enqueue and in a replay.
pub fn order(tally: &mut Tally) {
    if let Err(why) = strace_works() {
        tally.why_not = Some(why);
        return;
    }
    enqueue(tally);
    replay(tally);
}

fn enqueue(tally: &mut Tally) {
    let scene = Scene::new("on *\n stdin\n err HTTP 503: Service Unavailable\\n\n exit 1\n", tally.without);
    let gh = scene.sandbox.path("bin/gh");
    let call = call_of(&scene, &gh, &["issue", "comment", "5", "--body-file", "-"], None);
    let points = scene.points(scene.guarded(call).stdin(Stdin::Bytes(b"the body".into())));
    let (mut disk, mut told, mut counted) = (Disk::default(), 0, 0);
    for point in &points {
        // The rename itself needs the file's bytes, its body and the body's name.
        if point.name.starts_with("rename") && point.line.contains(".json\"") {
            let at_risk = format!("{:?}", disk.at_risk());
            tally.expect(disk.at_risk().is_empty(), Bad::Lost, || {
                format!("renamed with {at_risk} not on the disk")
            });
            counted += 1;
        }
        if point.name.starts_with("write") && point.line.contains("not delivered yet") {
            let at_risk = format!("{:?}", disk.at_risk());
            tally.expect(disk.at_risk().is_empty(), Bad::Lost, || {
                format!("promised with {at_risk} not on the disk")
            });
            told += 1;
        }
        disk.run(point);
    }
    tally.runs += 1;
    tally.expect((counted, told) == (1, 1), Bad::Wrong, || {
        format!("{counted} renames and {told} promises were seen")
    });
}

fn replay(tally: &mut Tally) {
    let scene = waiting(&["one", "two"], tally.without);
    let call = call_of(&scene, &forge_command(), &["queue", "replay", "--apply"], None);
    let paths = ["bin", "real", "tools"].map(|name| scene.sandbox.path(name));
    let points = scene
        .points(scene.guarded(settle(&scene.sandbox, call)).search_path(&[&paths[0], &paths[1], &paths[2]]));
    let (mut disk, mut attempts) = (Disk::default(), 0);
    for point in &points {
        if matches!(point.name.as_str(), "vfork" | "clone" | "clone3" | "fork") {
            let log = disk.dirty.iter().find(|path| path.ends_with("/replay.log"));
            tally.expect(log.is_none(), Bad::Doubled, || {
                "a child starts before its attempt is on the disk".into()
            });
        }
        let is_attempt =
            point.name == "write" && point.line.contains("replay.log>") && point.line.contains("attempt");
        attempts += u64::from(is_attempt);
        disk.run(point);
    }
    tally.runs += 1;
    tally.expect(attempts == 2, Bad::Wrong, || format!("{attempts} attempts were seen"));
}
