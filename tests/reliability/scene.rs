//! A sandbox that can be put back, and programs under strace in it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::command::Call;
use crate::support::sandbox::Sandbox;

/// A sandbox whose state and project store go back to what they were when it was kept.
pub struct Scene {
    pub sandbox: Sandbox,
    without: &'static str,
}

/// One place at which a program can be killed or failed: the `nth` call of this name.
#[derive(Clone, Debug)]
pub struct Point {
    pub name: String,
    pub nth: usize,
    /// The call as strace shows it.
    pub line: String,
}

const STRACE: &str = "/usr/bin/strace";

impl Scene {
    /// A checkout of `acme/widget` whose fake `gh` follows `script`.
    pub fn new(script: &str, without: &'static str) -> Scene {
        let sandbox = Sandbox::new(script);
        sandbox.checkout("acme/widget");
        Scene { sandbox, without }
    }

    /// Takes over a sandbox.
    pub fn of(sandbox: Sandbox, without: &'static str) -> Scene {
        Scene { sandbox, without }
    }

    /// Keeps the state folder and the project's store as they are now.
    pub fn keep(&self) {
        for (from, to) in STORES {
            copy_tree(&self.sandbox.path(from), &self.sandbox.path(to));
        }
    }

    /// Puts both back.
    pub fn restore(&self) {
        for (to, from) in STORES {
            copy_tree(&self.sandbox.path(from), &self.sandbox.path(to));
        }
    }

    /// The same call with the guards switched off that this arm lives without.
    pub fn guarded<'s>(&self, call: Call<'s>) -> Call<'s> {
        if self.without.is_empty() { call } else { call.env("FORGE_CONTROL", self.without) }
    }

    /// `gh ARGS` through the shim.
    pub fn gh(&self, args: &[&str]) -> Call<'_> {
        self.guarded(self.sandbox.gh(args))
    }

    /// `forge ARGS`.
    pub fn forge(&self, args: &[&str]) -> Call<'_> {
        self.guarded(self.sandbox.forge(args))
    }

    /// Every system call of one run, after the program's loader.
    pub fn points(&self, traced: Call<'_>) -> Vec<Point> {
        let file = self.sandbox.path("tmp/trace");
        traced.run();
        let text = String::from_utf8_lossy(&fs::read(file).unwrap_or_default()).into_owned();
        let mut counts: Vec<(String, usize)> = Vec::new();
        let mut points = Vec::new();
        for line in text.lines() {
            let Some((name, _)) = line.split_once('(') else { continue };
            if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
                continue;
            }
            let at = counts.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
                counts.push((name.to_string(), 0));
                counts.len() - 1
            });
            counts[at].1 += 1;
            points.push(Point { name: name.to_string(), nth: counts[at].1, line: line.to_string() });
        }
        let loaded = points.iter().rposition(|point| point.line.contains(".so")).map_or(1, |at| at + 1);
        points.drain(..loaded.min(points.len()));
        points.retain(|point| !matches!(point.name.as_str(), "exit_group" | "execve" | "rt_sigreturn"));
        points
    }
}

/// The words by which strace runs a program of the sandbox.
pub fn under_strace(sandbox: &Sandbox, program: &Path, args: &[&str], inject: Option<&str>) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec!["-qq".into(), "-y".into(), "-o".into()];
    words.push(sandbox.path("tmp/trace").into());
    if let Some(inject) = inject {
        words.extend(["-e".into(), format!("inject={inject}").into()]);
    }
    words.push(program.into());
    words.extend(args.iter().map(OsString::from));
    words
}

/// Whether strace may trace on this machine; why not, otherwise.
pub fn strace_works() -> Result<(), String> {
    let tried = Command::new(STRACE).args(["-qq", "-o", "/dev/null", "/bin/true"]).output();
    match tried {
        Ok(done) if done.status.success() => Ok(()),
        Ok(done) => Err(format!("strace may not trace: {}", String::from_utf8_lossy(&done.stderr).trim())),
        Err(_) => Err("strace is not installed".into()),
    }
}

/// strace itself.
pub fn strace() -> PathBuf {
    STRACE.into()
}

const STORES: [(&str, &str); 2] = [("bob", "kept/bob"), ("work/.claude", "kept/claude")];

/// Makes `to` a copy of `from`, times and modes included; where there is no `from`, there is no `to`.
fn copy_tree(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    if !from.exists() {
        return;
    }
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            copy_tree(&source, &target);
        } else {
            fs::copy(&source, &target).unwrap();
            let times = fs::metadata(&source).unwrap().modified().unwrap();
            fs::File::options().append(true).open(&target).unwrap().set_modified(times).unwrap();
        }
    }
    fs::set_permissions(to, fs::metadata(from).unwrap().permissions()).unwrap();
}
