//! What the fake `gh` wrote down about one call.

use super::bytes::unescape;
use std::path::Path;

/// One descriptor the fake found open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fd {
    /// Its number.
    pub number: i32,
    /// `pipe`, `char`, `file`, `dir`, `socket`, `other`.
    pub kind: String,
    /// `device:inode`.
    pub identity: String,
    /// Status flags, octal.
    pub flags: String,
    /// Whether it is a terminal.
    pub is_tty: bool,
}

/// One call of the fake `gh`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// argv\[0\].
    pub argv0: Vec<u8>,
    /// The words after it.
    pub args: Vec<Vec<u8>>,
    /// The environment's entries, in order.
    pub env: Vec<Vec<u8>>,
    /// The working directory, or `error ERRNO`.
    pub cwd: String,
    /// Open descriptors, in order.
    pub fds: Vec<Fd>,
    /// Ignored signals, in order.
    pub ignored: Vec<i32>,
    /// Blocked signals, in order.
    pub blocked: Vec<i32>,
    /// The process.
    pub pid: i32,
    /// Its parent.
    pub ppid: i32,
    /// Its process group.
    pub pgid: i32,
    /// Its session.
    pub sid: i32,
    /// The terminal's foreground group, through stderr; -1 where stderr is no terminal.
    pub foreground: i32,
    /// The umask, octal.
    pub umask: String,
    /// The soft limits of open files and of a file's size.
    pub limits: String,
    /// The nice value.
    pub nice: String,
    /// When the call started, in milliseconds since the epoch.
    pub epoch_ms: u64,
    /// What was read from stdin, where the script read it.
    pub stdin: Option<Vec<u8>>,
}

impl Record {
    /// Reads `NNNN.call` and its `NNNN.stdin`.
    pub fn read(path: &Path) -> Record {
        let text = std::fs::read_to_string(path).unwrap();
        let stdin = std::fs::read(path.with_extension("stdin")).ok();
        let mut record = Record { stdin, ..Record::default() };
        for line in text.lines() {
            let (name, value) = line.split_once(' ').unwrap_or((line, ""));
            let number = || value.parse::<i32>().unwrap();
            match name {
                "argv0" => record.argv0 = unescape(value),
                "arg" => record.args.push(unescape(value)),
                "env" => record.env.push(unescape(value)),
                "cwd" => record.cwd = value.to_string(),
                "fd" => record.fds.push(fd(value)),
                "ignored" => record.ignored.push(number()),
                "blocked" => record.blocked.push(number()),
                "pid" => record.pid = number(),
                "ppid" => record.ppid = number(),
                "pgid" => record.pgid = number(),
                "sid" => record.sid = number(),
                "foreground" => record.foreground = number(),
                "umask" => record.umask = value.to_string(),
                "limits" => record.limits = value.to_string(),
                "nice" => record.nice = value.to_string(),
                "epoch_ms" => record.epoch_ms = value.parse().unwrap(),
                _ => panic!("unknown line in {}: {line}", path.display()),
            }
        }
        record
    }

    /// The words after argv\[0\], as text.
    pub fn words(&self) -> Vec<String> {
        self.args.iter().map(|a| String::from_utf8_lossy(a).into_owned()).collect()
    }

    /// The value of the first entry of that name.
    pub fn var(&self, name: &str) -> Option<String> {
        let prefix = format!("{name}=");
        let entry = self.env.iter().find_map(|e| e.strip_prefix(prefix.as_bytes()))?;
        Some(String::from_utf8_lossy(entry).into_owned())
    }
}

fn fd(value: &str) -> Fd {
    let parts: Vec<&str> = value.split(' ').collect();
    Fd {
        number: parts[0].parse().unwrap(),
        kind: parts[1].into(),
        identity: parts[2].into(),
        flags: parts[3].into(),
        is_tty: parts[5] == "tty",
    }
}
