//! A disk that keeps what was synced and nothing else for certain, as POSIX has it.
//!
//! A file's bytes are certain after an fsync of that file, a name after one of its folder. What is not certain
//! may be there after a power cut or not: of a file the old bytes, the new ones, a part of them, or zeros; of a
//! folder any of its changes without any other. A rename is one change of the name it gives (the old file or
//! the new one, never none), after which the old name may still be there as well.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::trace::Step;

/// What a folder holds after a cut, by paths below the sandbox.
pub type Tree = BTreeMap<String, Node>;

/// One name of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    Folder,
    File(Rc<[u8]>),
}

pub(super) type Names = BTreeMap<String, usize>;

pub(super) enum Inode {
    File { synced: Vec<u8>, now: Vec<u8> },
    Folder { kept: Names, now: Names, pending: Vec<Change> },
}

/// One change of a folder: a name stands for an inode, or for nothing any more.
pub(super) struct Change {
    pub(super) at: usize,
    pub(super) name: String,
    pub(super) to: Option<usize>,
    /// Not without this one: the second half of a rename.
    pub(super) needs: Option<usize>,
}

struct Open {
    inode: usize,
    offset: usize,
    appends: bool,
}

pub struct Disk {
    root: String,
    counts: fn(&str) -> bool,
    pub(super) inodes: Vec<Inode>,
    open: BTreeMap<i32, Open>,
    /// Changes so far.
    clock: usize,
}

impl Disk {
    /// A disk that keeps `tree`, below the path `root`. `counts` says which paths are looked at.
    pub fn new(root: String, tree: &Tree, counts: fn(&str) -> bool) -> Disk {
        let folder = || Inode::Folder { kept: Names::new(), now: Names::new(), pending: Vec::new() };
        let mut disk = Disk { root, counts, inodes: vec![folder()], open: BTreeMap::new(), clock: 0 };
        for (path, node) in tree {
            let inode = match node {
                Node::Folder => folder(),
                Node::File(bytes) => Inode::File { synced: bytes.to_vec(), now: bytes.to_vec() },
            };
            disk.inodes.push(inode);
            let (above, name) = disk.above(path).expect("its folder comes first");
            let new = disk.inodes.len() - 1;
            if let Inode::Folder { kept, now, .. } = &mut disk.inodes[above] {
                kept.insert(name.clone(), new);
                now.insert(name, new);
            }
        }
        disk
    }

    /// Another program starts: nothing is open.
    pub fn starts_anew(&mut self) {
        self.open.clear();
    }

    fn find(&self, path: &str) -> Option<usize> {
        path.split('/').filter(|part| !part.is_empty()).try_fold(0, |at, part| match &self.inodes[at] {
            Inode::Folder { now, .. } => now.get(part).copied(),
            Inode::File { .. } => None,
        })
    }

    fn above(&self, path: &str) -> Option<(usize, String)> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        Some((self.find(folder)?, name.to_string()))
    }

    /// The part of a path below the root, where it is one of ours.
    fn ours(&self, path: Option<String>) -> Option<String> {
        let path = path?.strip_prefix(&self.root)?.trim_start_matches('/').trim_end_matches("/.").to_string();
        (self.counts)(&path).then_some(path)
    }

    fn change(&mut self, folder: usize, name: String, to: Option<usize>, needs: Option<usize>) -> usize {
        self.clock += 1;
        let at = self.clock;
        if let Inode::Folder { now, pending, .. } = &mut self.inodes[folder] {
            match to {
                Some(inode) => drop(now.insert(name.clone(), inode)),
                None => drop(now.remove(&name)),
            }
            pending.push(Change { at, name, to, needs });
        }
        at
    }

    /// Does what a call did. Says whether anything changed.
    ///
    /// # Errors
    /// A call on one of our paths that nobody has told this disk about.
    pub fn run(&mut self, step: &Step) -> Result<bool, String> {
        if step.result < 0 {
            return Ok(false);
        }
        match step.name.as_str() {
            "open" => Ok(self.opened(step, step.path(0), step.other(1))),
            "openat" => Ok(self.opened(step, step.path_at(0), step.other(2))),
            "close" => {
                step.fd(0).and_then(|(fd, _)| self.open.remove(&fd));
                Ok(false)
            }
            "write" => Ok(self.written(step, None)),
            "pwrite64" => Ok(self.written(step, step.other(3).parse().ok())),
            "lseek" | "ftruncate" => Ok(self.moved(step)),
            "fsync" | "fdatasync" => Ok(self.synced(step)),
            "mkdir" => Ok(self.made(step.path(0))),
            "mkdirat" => Ok(self.made(step.path_at(0))),
            "unlink" | "rmdir" => Ok(self.removed(step.path(0))),
            "unlinkat" => Ok(self.removed(step.path_at(0))),
            "link" => Ok(self.linked(step.path(0), step.path(1))),
            "linkat" => Ok(self.linked(step.path_at(0), step.path_at(2))),
            "rename" => self.renamed(step.path(0), step.path(1), false),
            "renameat" => self.renamed(step.path_at(0), step.path_at(2), false),
            "renameat2" => self.renamed(step.path_at(0), step.path_at(2), step.other(4) == "RENAME_EXCHANGE"),
            name => self.is_harmless(name, step).map(|()| false),
        }
    }

    fn is_harmless(&self, name: &str, step: &Step) -> Result<(), String> {
        const READS: [&str; 21] = [
            "fstat",
            "newfstatat",
            "statx",
            "stat",
            "lstat",
            "fcntl",
            "flock",
            "getdents64",
            "fchmod",
            "fchmodat",
            "chmod",
            "access",
            "faccessat",
            "faccessat2",
            "readlink",
            "readlinkat",
            "execve",
            "chdir",
            "getcwd",
            "utimensat",
            "poll",
        ];
        let names = |nth: usize| self.ours(step.path(nth).or_else(|| step.path_at(nth))).is_some();
        let touches = step.fd(0).is_some_and(|(fd, _)| self.open.contains_key(&fd)) || names(0) || names(1);
        let copies = name == "fcntl" && step.other(1).contains("DUPFD") && touches;
        if touches && (copies || !READS.contains(&name)) {
            return Err(format!("a call that the disk does not know: {}", step.line));
        }
        Ok(())
    }

    fn opened(&mut self, step: &Step, path: Option<String>, flags: &str) -> bool {
        let Some(path) = self.ours(path) else { return false };
        let (inode, is_new) = match self.find(&path) {
            Some(inode) => (inode, false),
            None => {
                let Some((folder, name)) = self.above(&path) else { return false };
                self.inodes.push(Inode::File { synced: Vec::new(), now: Vec::new() });
                let inode = self.inodes.len() - 1;
                self.change(folder, name, Some(inode), None);
                (inode, true)
            }
        };
        if let (true, Inode::File { now, .. }) = (flags.contains("O_TRUNC"), &mut self.inodes[inode]) {
            now.clear();
        }
        let appends = flags.contains("O_APPEND");
        self.open.insert(step.result as i32, Open { inode, offset: 0, appends });
        is_new || flags.contains("O_TRUNC")
    }

    fn written(&mut self, step: &Step, at: Option<usize>) -> bool {
        let Some((fd, _)) = step.fd(0) else { return false };
        let (Some(open), Some(bytes)) = (self.open.get_mut(&fd), step.text(1)) else { return false };
        let Inode::File { now, .. } = &mut self.inodes[open.inode] else { return false };
        let bytes = &bytes[..step.result as usize];
        let start = at.unwrap_or(if open.appends { now.len() } else { open.offset });
        if now.len() < start + bytes.len() {
            now.resize(start + bytes.len(), 0);
        }
        now[start..start + bytes.len()].copy_from_slice(bytes);
        if at.is_none() {
            open.offset = start + bytes.len();
        }
        true
    }

    fn moved(&mut self, step: &Step) -> bool {
        let Some((fd, _)) = step.fd(0) else { return false };
        let Some(open) = self.open.get_mut(&fd) else { return false };
        if step.name == "lseek" {
            open.offset = step.result as usize;
            return false;
        }
        let (Inode::File { now, .. }, Ok(length)) = (&mut self.inodes[open.inode], step.other(1).parse())
        else {
            return false;
        };
        now.resize(length, 0);
        true
    }

    fn synced(&mut self, step: &Step) -> bool {
        let Some(open) = step.fd(0).and_then(|(fd, _)| self.open.get(&fd)) else { return false };
        match &mut self.inodes[open.inode] {
            Inode::File { synced, now } => synced.clone_from(now),
            Inode::Folder { kept, now, pending } => {
                kept.clone_from(now);
                pending.clear();
            }
        }
        true
    }

    fn made(&mut self, path: Option<String>) -> bool {
        let Some((folder, name)) = self.ours(path).and_then(|path| self.above(&path)) else { return false };
        self.inodes.push(Inode::Folder { kept: Names::new(), now: Names::new(), pending: Vec::new() });
        let inode = self.inodes.len() - 1;
        self.change(folder, name, Some(inode), None);
        true
    }

    fn removed(&mut self, path: Option<String>) -> bool {
        let Some((folder, name)) = self.ours(path).and_then(|path| self.above(&path)) else { return false };
        self.change(folder, name, None, None);
        true
    }

    fn linked(&mut self, from: Option<String>, to: Option<String>) -> bool {
        let Some(inode) = self.ours(from).and_then(|path| self.find(&path)) else { return false };
        let Some((folder, name)) = self.ours(to).and_then(|path| self.above(&path)) else { return false };
        self.change(folder, name, Some(inode), None);
        true
    }

    fn renamed(&mut self, from: Option<String>, to: Option<String>, swaps: bool) -> Result<bool, String> {
        let (from, to) = match (self.ours(from), self.ours(to)) {
            (None, None) => return Ok(false),
            (Some(from), Some(to)) => (from, to),
            (from, to) => return Err(format!("a rename across what counts: {from:?} to {to:?}")),
        };
        let parts = (self.above(&from), self.above(&to), self.find(&from));
        let (Some((folder, old)), Some((other, new)), Some(inode)) = parts else {
            return Err(format!("a rename of what the disk does not know: {from} to {to}"));
        };
        if folder != other {
            return Err(format!("a rename between two folders: {from} to {to}"));
        }
        let back = if swaps { self.find(&to) } else { None };
        let first = self.change(folder, new, Some(inode), None);
        self.change(folder, old, back, Some(first));
        Ok(true)
    }
}
