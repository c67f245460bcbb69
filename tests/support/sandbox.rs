//! A home of its own for every test: the shim and the fake `gh` on PATH, nothing inherited, and the whole
//! scene on stderr when the test fails.
//!
//! ```text
//! ROOT/bin/gh      the shim              ROOT/home        HOME
//! ROOT/real/gh     the fake              ROOT/bob         BOB_HOME (its state folder: ROOT/bob/forge)
//! ROOT/real/…      its script and log    ROOT/work        the working directory
//! ```

use super::bytes::escape;
use super::command::Call;
use super::record::Record;
use super::spawn::FORKING;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The shim under test: this build's, or the one `FORGE_TEST_GH` names.
pub fn shim() -> PathBuf {
    std::env::var_os("FORGE_TEST_GH").map_or(env!("CARGO_BIN_EXE_gh").into(), PathBuf::from)
}

/// The `forge` command under test.
pub fn forge_command() -> PathBuf {
    std::env::var_os("FORGE_TEST_FORGE").map_or(env!("CARGO_BIN_EXE_forge").into(), PathBuf::from)
}

/// The scripted fake.
pub fn fake() -> PathBuf {
    env!("CARGO_BIN_EXE_fake-gh").into()
}

/// One test's home.
pub struct Sandbox {
    folder: tempfile::TempDir,
    scene: Mutex<String>,
}

impl Sandbox {
    /// A new home whose fake `gh` follows `script` (see `fake_gh.rs`).
    pub fn new(script: &str) -> Sandbox {
        // Not under `target`: a test outside a checkout must not find this repository's, and leave its cache there.
        let folder = tempfile::Builder::new().prefix("forge-").tempdir().unwrap();
        let checkout = folder.path().ancestors().find(|above| above.join(".git").exists());
        assert_eq!(checkout, None, "the folder for temporary files lies in a checkout");
        let sandbox = Sandbox { folder, scene: Mutex::default() };
        for name in ["bin", "real", "home", "bob", "work", "tmp"] {
            fs::create_dir(sandbox.path(name)).unwrap();
        }
        place(&shim(), &sandbox.path("bin/gh"));
        place(&fake(), &sandbox.path("real/gh"));
        sandbox.script(script);
        sandbox
    }

    /// A path inside.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The state folder.
    pub fn state(&self) -> PathBuf {
        self.path("bob/forge")
    }

    /// Makes the working directory a checkout of `owner/name`, as far as its files tell.
    pub fn checkout(&self, repository: &str) {
        self.file("work/.git/HEAD", "ref: refs/heads/main\n");
        let url = format!("https://github.com/{repository}.git");
        let fetch = "+refs/heads/*:refs/remotes/origin/*";
        self.file("work/.git/config", format!("[remote \"origin\"]\n\turl = {url}\n\tfetch = {fetch}\n"));
        for name in ["work/.git/objects", "work/.git/refs/heads"] {
            fs::create_dir_all(self.path(name)).unwrap();
        }
    }

    /// Replaces the fake's script.
    pub fn script(&self, text: &str) {
        fs::write(self.path("real/fake-gh.script"), text).unwrap();
    }

    /// Writes a file inside, with its folders.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// Writes an executable shell script inside. It is written by a child, so that no fork of this process
    /// can hold it open.
    pub fn shell(&self, name: &str, body: &str) -> PathBuf {
        let source = self.file(&format!("{name}.src"), format!("#!/bin/sh\n{body}\n"));
        fs::set_permissions(&source, fs::Permissions::from_mode(0o755)).unwrap();
        let path = self.path(name);
        let copied =
            std::process::Command::new("/bin/cp").arg("-p").arg(&source).arg(&path).status().unwrap();
        assert!(copied.success());
        fs::remove_file(source).unwrap();
        path
    }

    /// A file beside the fake's script: what its steps `wait` for, `touch` and `append` to.
    pub fn checkpoint(&self, name: &str) -> PathBuf {
        self.path("real").join(name)
    }

    /// Makes a checkpoint the fake waits for.
    pub fn release(&self, name: &str) {
        fs::write(self.checkpoint(name), b"").unwrap();
    }

    /// Waits until the fake has made a checkpoint.
    pub fn await_checkpoint(&self, name: &str) {
        let path = self.checkpoint(name);
        wait_until(&format!("checkpoint {name}"), || path.exists());
    }

    /// `gh ARGS` through the shim.
    pub fn gh<A: AsRef<OsStr>>(&self, args: &[A]) -> Call<'_> {
        Call::new(self, self.path("bin/gh"), "gh", args)
    }

    /// `gh ARGS` with the fake alone, in the same environment.
    pub fn bare_gh<A: AsRef<OsStr>>(&self, args: &[A]) -> Call<'_> {
        Call::new(self, self.path("real/gh"), "gh", args)
    }

    /// `forge ARGS`.
    pub fn forge<A: AsRef<OsStr>>(&self, args: &[A]) -> Call<'_> {
        Call::new(self, forge_command(), "forge", args)
    }

    /// Any program, in the sandbox's environment.
    pub fn program<A: AsRef<OsStr>>(&self, program: impl Into<PathBuf>, args: &[A]) -> Call<'_> {
        let program = program.into();
        let argv0 = program.file_name().unwrap().to_string_lossy().into_owned();
        Call::new(self, program, &argv0, args)
    }

    /// What the fake was given, call by call.
    pub fn calls(&self) -> Vec<Record> {
        let log = self.path("real/fake-gh.script.log");
        let mut names: Vec<PathBuf> =
            fs::read_dir(log).map(|d| d.map(|e| e.unwrap().path()).collect()).unwrap_or_default();
        names.retain(|p| p.extension() == Some(OsStr::new("call")));
        names.sort();
        names.iter().map(|p| Record::read(p)).collect()
    }

    /// The only call the fake was given.
    pub fn only_call(&self) -> Record {
        let mut calls = self.calls();
        assert_eq!(calls.len(), 1, "calls of gh");
        calls.remove(0)
    }

    /// The observation log's lines, split into columns. An empty line is none: a writer that did not get the
    /// lock ends a line that may be torn.
    pub fn observations(&self) -> Vec<Vec<String>> {
        let text = fs::read_to_string(self.state().join("observations.log")).unwrap_or_default();
        text.lines().filter(|l| !l.is_empty()).map(|l| l.split('\t').map(String::from).collect()).collect()
    }

    /// The signal of the only observation.
    pub fn only_signal(&self) -> String {
        let observations = self.observations();
        assert_eq!(observations.len(), 1, "observations: {observations:?}");
        observations[0][3].clone()
    }

    /// Forgets the fake's calls, its checkpoints, the files of earlier commands and the whole forge state.
    pub fn reset(&self) {
        for name in ["bob/forge", "work/.claude", "tmp"] {
            let _ = fs::remove_dir_all(self.path(name));
        }
        fs::create_dir(self.path("tmp")).unwrap();
        for entry in fs::read_dir(self.path("real")).unwrap() {
            let path = entry.unwrap().path();
            match path.file_name().and_then(OsStr::to_str) {
                Some("gh" | "fake-gh.script") => {}
                _ if path.is_dir() => fs::remove_dir_all(path).unwrap(),
                _ => fs::remove_file(path).unwrap(),
            }
        }
    }

    /// Adds to what is shown when the test fails.
    pub fn note(&self, text: &str) {
        self.scene.lock().unwrap().push_str(text);
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.scene.lock().unwrap_or_else(|e| e.into_inner()));
            eprintln!(
                "--- script\n{}",
                fs::read_to_string(self.path("real/fake-gh.script")).unwrap_or_default()
            );
            for root in ["bob", "work"] {
                show_files(&self.path(root));
            }
        }
    }
}

/// Waits until `done` says so; fails with `what` after a long time.
pub fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < until, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Links a program into the sandbox (a test makes hundreds of these), or copies it from another file system.
pub fn place(program: &Path, at: &Path) {
    let program = fs::canonicalize(program).unwrap();
    if fs::hard_link(&program, at).is_err() {
        copy(&program, at);
    }
}

/// Copies a program by another process, so that no fork of this one can hold the copy open for writing.
pub fn copy(program: &Path, at: &Path) {
    let _guard = FORKING.lock();
    let copied = std::process::Command::new("/bin/cp").arg("-p").arg(program).arg(at).status().unwrap();
    assert!(copied.success(), "cannot copy {}", program.display());
}

fn show_files(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let mode = entry.metadata().map(|m| m.permissions().mode() & 0o7777).unwrap_or(0);
        if path.is_dir() {
            eprintln!("--- {mode:o} {}/", path.display());
            show_files(&path);
        } else {
            let content = fs::read(&path).unwrap_or_default();
            let shown = escape(&content[..content.len().min(4000)]).replace("\\n", "\n    ");
            eprintln!("--- {mode:o} {}\n    {shown}", path.display());
        }
    }
}
