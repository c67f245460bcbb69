//! A checkout of `acme/widget` whose writes can be queued: the shim, a real gh, and the local forge.

use super::command::Call;
use super::forge::{Forge, sandbox_with_real_gh};
use super::running::Run;
use super::sandbox::Sandbox;
use super::spawn::Exit;
use super::streams::Stdin;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// One checkout and its forge.
pub struct Scene<'f> {
    /// The home.
    pub sandbox: Sandbox,
    /// The forge.
    pub forge: &'f Forge,
}

impl<'f> Scene<'f> {
    /// A fresh forge state and a fresh checkout, for this version of gh.
    pub fn new(forge: &'f Forge, version: &str) -> Scene<'f> {
        forge.control("POST", "/_forge/reset", "");
        let sandbox = sandbox_with_real_gh(version, forge);
        checkout(&sandbox);
        let scene = Scene { sandbox, forge };
        scene.seed(json!({"issues": [{"title": "first"}, {"title": "second"}]}));
        scene
    }

    /// Adds to the forge's state.
    pub fn seed(&self, what: Value) {
        self.forge.control("POST", "/_forge/seed", &what.to_string());
    }

    /// Makes the forge fail.
    pub fn fault(&self, fault: Value) {
        self.forge.control("POST", "/_forge/fault", &fault.to_string());
    }

    /// Every request fails.
    pub fn outage(&self) {
        self.fault(json!({"fault": "503"}));
    }

    /// Nothing fails any more.
    pub fn recovery(&self) {
        self.forge.control("DELETE", "/_forge/faults", "");
    }

    /// `gh ARGS` through the shim.
    pub fn call(&self, args: &[&str]) -> Call<'_> {
        settle(&self.sandbox, self.sandbox.gh(args))
    }

    /// Runs `gh ARGS` through the shim.
    pub fn gh(&self, args: &[&str]) -> Run {
        self.call(args).run()
    }

    /// Runs `gh ARGS` with this on standard input.
    pub fn gh_with(&self, args: &[&str], stdin: &[u8]) -> Run {
        self.call(args).stdin(Stdin::Bytes(stdin.to_vec())).run()
    }

    /// Runs a write that has to be spooled: its stdout.
    pub fn spooled(&self, args: &[&str], stdin: &[u8]) -> String {
        let run = self.gh_with(args, stdin);
        assert_eq!(run.exit, Exit::Code(0), "{args:?}: {}", run.err());
        assert!(run.err().contains("[forge-queue] not delivered yet"), "{args:?}: {}", run.err());
        run.out()
    }

    /// `forge queue ARGS`.
    pub fn queue(&self, args: &[&str]) -> Run {
        self.queue_call(args).run()
    }

    /// `forge queue ARGS`, to be started.
    pub fn queue_call(&self, args: &[&str]) -> Call<'_> {
        let words: Vec<&str> = ["queue"].iter().chain(args).copied().collect();
        settle(&self.sandbox, self.sandbox.forge(&words))
    }

    /// `forge queue replay --apply`.
    pub fn replay(&self) -> Run {
        self.queue(&["replay", "--apply"])
    }

    /// The forge's issues by their numbers.
    pub fn issues(&self) -> Vec<Value> {
        let state = self.forge.control("GET", "/_forge/state", "");
        state["repos"]["acme/widget"]["issues"].as_array().cloned().unwrap_or_default()
    }

    /// One issue.
    pub fn issue(&self, number: u64) -> Value {
        self.issues().into_iter().find(|issue| issue["number"] == number).unwrap_or_default()
    }

    /// The bodies of an issue's comments, in order.
    pub fn comments(&self, number: u64) -> Vec<String> {
        let comments = self.issue(number)["comments"].as_array().cloned().unwrap_or_default();
        comments.iter().map(|comment| comment["body"].as_str().unwrap_or_default().to_string()).collect()
    }

    /// The queue folder.
    pub fn folder(&self) -> PathBuf {
        folder(&self.sandbox)
    }

    /// An entry's file.
    pub fn entry(&self, seq: u32) -> Value {
        let text = fs::read(self.folder().join(format!("{seq:06}.json"))).unwrap();
        serde_json::from_slice(&text).unwrap()
    }

    /// How many entries wait.
    pub fn depth(&self) -> u64 {
        let run = self.queue(&["status", "--json"]);
        let status: Value = serde_json::from_slice(&run.stdout).unwrap();
        status["depth"].as_u64().unwrap()
    }
}

/// The queue folder of a sandbox's checkout.
pub fn folder(sandbox: &Sandbox) -> PathBuf {
    sandbox.path("work/.claude/forge/queue")
}

/// Makes the working directory a checkout of `acme/widget`, and puts git on PATH.
pub fn checkout(sandbox: &Sandbox) {
    let work = sandbox.path("work");
    git(sandbox, &["init", "-q"]);
    git(sandbox, &["remote", "add", "origin", "https://github.com/acme/widget.git"]);
    fs::create_dir_all(sandbox.path("tools")).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    let git = std::env::split_paths(&path).map(|dir| dir.join("git")).find(|git| git.is_file()).expect("git");
    let _ = std::os::unix::fs::symlink(fs::canonicalize(git).unwrap(), sandbox.path("tools/git"));
    assert!(work.join(".git").is_dir());
}

/// git in a sandbox's checkout.
pub fn git(sandbox: &Sandbox, args: &[&str]) {
    let identity = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "init.defaultBranch=main"];
    let done = Command::new("git")
        .args(identity)
        .args(args)
        .current_dir(sandbox.path("work"))
        .env("HOME", sandbox.path("home"))
        .output()
        .unwrap();
    assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// The variables of a queue's test: git is found, nothing is waited for, and what the budget does is not
/// looked at.
pub fn settle<'s>(sandbox: &'s Sandbox, call: Call<'s>) -> Call<'s> {
    let (bin, real, tools) = (sandbox.path("bin"), sandbox.path("real"), sandbox.path("tools"));
    call.search_path(&[&bin, &real, &tools])
        .env("BOB_FORGE_QUEUE_SETTLE", "0")
        .env("BOB_FORGE_REPLAY_SPACING_MS", "0")
        .env("BOB_FORGE_BUDGET", "0")
        .env("BOB_FORGE_CACHE", "0")
}
