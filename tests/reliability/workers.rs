//! The other processes of these tests are this program again.

use std::path::Path;
use std::process::{Command, Stdio};

use super::{disks, leases, locks, numberings};

/// What a worker does, by its first word.
pub fn work(words: &[String]) {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["append", folder, id] => locks::append(Path::new(folder), id),
        ["hold", file] => locks::hold(Path::new(file)),
        ["slot", folder, most] => locks::slot(Path::new(folder), most.parse().unwrap()),
        ["verdict", folder] => locks::verdict(folder),
        ["lease", folder] => leases::lease(Path::new(folder)),
        ["count", folder, id] => leases::count(Path::new(folder), id),
        ["keep", folder] => numberings::keep(Path::new(folder)),
        ["numbering", folder] => numberings::inside(Path::new(folder)),
        ["disks", case] => disks::inside(case),
        _ => panic!("no worker {words:?}"),
    }
}

/// A worker, with these guards switched off.
pub fn worker(without: &str, words: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg("worker").args(words).env("FORGE_CONTROL", without).stdin(Stdio::null());
    command
}

/// A worker in namespaces of its own (`unshare`'s flags); why that cannot be, otherwise.
pub fn apart(flags: &[&str], without: &str, words: &[&str]) -> Result<Command, String> {
    let mut all = flags.to_vec();
    // SAFETY: a plain system call.
    if unsafe { libc::geteuid() } != 0 {
        all.extend(["--user", "--map-root-user"]);
    }
    let tried = Command::new("/usr/bin/unshare").args(&all).arg("/bin/true").output();
    match tried {
        Ok(done) if done.status.success() => {}
        Ok(done) => return Err(String::from_utf8_lossy(&done.stderr).trim().to_string()),
        Err(_) => return Err("unshare is not installed".into()),
    }
    let mut command = Command::new("/usr/bin/unshare");
    command.args(&all).arg(std::env::current_exe().unwrap()).arg("worker").args(words);
    command.env("FORGE_CONTROL", without).stdin(Stdio::null());
    Ok(command)
}
