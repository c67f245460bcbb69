//! The local forge and the real `gh` binaries, for tests that need GitHub's own client and a server.

use super::sandbox::{Sandbox, place, wait_until};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The two real versions of gh that the suite runs.
pub const REAL_GH: [&str; 2] = ["debian", "wheel"];

/// A real `gh`, installed on first use.
pub fn real_gh(version: &str) -> PathBuf {
    static INSTALLED: std::sync::Once = std::sync::Once::new();
    INSTALLED.call_once(|| {
        let done = Command::new(root().join("scripts/install-test-gh.sh")).status().unwrap();
        assert!(done.success(), "scripts/install-test-gh.sh");
    });
    root().join("target/gh").join(version).join("gh")
}

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().into()
}

/// A local forge on a unix socket; it ends with this value.
pub struct Forge {
    server: Child,
    folder: tempfile::TempDir,
}

impl Forge {
    /// Starts one with these further arguments and waits until it answers.
    pub fn start(args: &[&str]) -> Forge {
        // In the system's own folder for temporary files: a socket's path has to be short.
        let folder = tempfile::Builder::new().prefix("forge").tempdir().unwrap();
        let guard = super::spawn::FORKING.lock();
        let server = Command::new("node")
            .arg(root().join("tests/support/forge/main.js"))
            .args(["serve", "--socket"])
            .arg(folder.path().join("s"))
            .args(args)
            // So that it also ends when this process is killed.
            .arg("--until-stdin-closes")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("node");
        drop(guard);
        let mut forge = Forge { server, folder };
        wait_until("the local forge", || {
            assert!(forge.server.try_wait().unwrap().is_none(), "the local forge ended; it needs `npm ci`");
            UnixStream::connect(forge.socket()).is_ok()
        });
        forge
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("s")
    }

    /// A request to its control door (`/_forge/…`) or to the forge itself: status and body.
    pub fn request(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut stream = UnixStream::connect(self.socket()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: forge\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        parse(&answer)
    }

    /// A request to the control door that has to succeed: its JSON.
    pub fn control(&self, method: &str, path: &str, body: &str) -> serde_json::Value {
        let (status, text) = self.request(method, path, body);
        assert!((200..300).contains(&status), "{method} {path}: {status} {text}");
        serde_json::from_str(&text).unwrap_or(serde_json::Value::Null)
    }
}

impl Drop for Forge {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Status and body of one HTTP/1.1 answer, chunked or not.
fn parse(answer: &[u8]) -> (u16, String) {
    let end = answer.windows(4).position(|w| w == b"\r\n\r\n").expect("an HTTP answer");
    let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
    let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).expect("a status");
    let mut rest = &answer[end + 4..];
    if !head.contains("transfer-encoding: chunked") {
        return (status, String::from_utf8_lossy(rest).into_owned());
    }
    let mut body = Vec::new();
    while let Some(line) = rest.windows(2).position(|w| w == b"\r\n") {
        let size = usize::from_str_radix(String::from_utf8_lossy(&rest[..line]).trim(), 16).unwrap_or(0);
        if size == 0 {
            break;
        }
        body.extend_from_slice(&rest[line + 2..line + 2 + size]);
        rest = &rest[line + 2 + size + 2..];
    }
    (status, String::from_utf8_lossy(&body).into_owned())
}

/// A sandbox whose real `gh` is this version of GitHub's own, talking to `forge`.
pub fn sandbox_with_real_gh(version: &str, forge: &Forge) -> Sandbox {
    let sandbox = Sandbox::new("");
    std::fs::remove_file(sandbox.path("real/gh")).unwrap();
    place(&real_gh(version), &sandbox.path("real/gh"));
    let config = format!("http_unix_socket: {}\nprompt: disabled\n", forge.socket().display());
    sandbox.file("home/gh/config.yml", config);
    sandbox
}
