//! `replay.log` and `handles.json`: what was attempted, and what the handles stand for (#1750).
//!
//! Each line ends with this machine's seal over it and its project, so that a line that came with a
//! checkout says nothing. A torn last line is ended before the next one is written, and is skipped.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use super::Queue;
use crate::checkpoint::step;
use crate::control::Guard;
use crate::decide::entry;
use crate::decide::journal::{Event, Line};
use crate::decide::queued::Step;
use crate::store::folder::Unfit;
use crate::store::lock::Lock;

pub(super) const LOG: &str = "replay.log";
pub(super) const HANDLES: &str = "handles.json";
/// Past this the log is written anew without what nobody needs.
const COMPACT_BYTES: u64 = 1 << 20;
/// Past this it is not one of ours.
const READ_MAX: u64 = 16 << 20;
/// How long a landed write keeps its claim and its handle.
const KEPT_MS: u64 = 90 * 86_400 * 1_000;
const TAG: usize = 16;

/// The log as one reading found it.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// The lines of this machine, oldest first.
    pub lines: Vec<Line>,
    /// Lines that are torn, damaged or of another origin.
    pub bad_lines: usize,
}

impl Queue {
    /// Reads the log; a log that does not exist is an empty one.
    ///
    /// # Errors
    /// What stands in its place is not this machine's, or cannot be read.
    pub fn log(&self) -> Result<Log, Unfit> {
        let bytes = match self.folder.read(LOG, READ_MAX) {
            Ok(bytes) => bytes,
            Err(Unfit::Missing) => return Ok(Log::default()),
            Err(unfit) => return Err(unfit),
        };
        let mut log = Log::default();
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            match std::str::from_utf8(line).ok().and_then(|line| self.unseal_line(line)) {
                Some(line) => log.lines.push(line),
                None => log.bad_lines += 1,
            }
        }
        Ok(log)
    }

    /// Appends events; they are on the disk when this returns.
    pub fn append(&self, _lock: &Lock, lines: &[Line]) -> io::Result<()> {
        let mut file = self.folder.open_or_create(LOG)?;
        let size = file.metadata()?.len();
        let mut last = [b'\n'];
        if size > 0 {
            file.read_exact_at(&mut last, size - 1)?;
        }
        let mut text = if last == *b"\n" { String::new() } else { "\n".to_string() };
        for line in lines {
            text.push_str(&self.seal_line(line));
        }
        // Before the first line: whoever finds lines in it may go by its name being on the disk.
        if size == 0 {
            self.folder.sync()?;
        }
        step("log: append")?;
        let written = file.write(text.as_bytes())?;
        if written < text.len() {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        step("log: sync")?;
        if !Guard::Sync.is_off() {
            file.sync_data()?;
        }
        Ok(())
    }

    /// Writes `handles.json` anew from the log, where it differs.
    pub fn write_handles(&self, _lock: &Lock, log: &Log) -> io::Result<()> {
        let handles = handles(&log.lines);
        let text = serde_json::to_string_pretty(&handles).unwrap_or_default() + "\n";
        match self.folder.read(HANDLES, READ_MAX) {
            Ok(old) if old == text.as_bytes() => Ok(()),
            Err(Unfit::Missing) if handles.is_empty() => Ok(()),
            _ => self.folder.replace(HANDLES, text.as_bytes()),
        }
    }

    /// Writes a log that has grown too long anew, without the lines that nobody needs any more.
    pub fn compact(&self, _lock: &Lock, live: &[u32], now_ms: u64) -> io::Result<()> {
        let long = self.folder.stat(LOG).is_some_and(|(size, _)| size > COMPACT_BYTES);
        let Some(log) = long.then(|| self.log().ok()).flatten() else { return Ok(()) };
        let is_needed = |line: &&Line| {
            let landed = matches!(line.event, Event::Delivered(_) | Event::Found(_));
            live.contains(&line.seq) || (landed && line.at_ms.saturating_add(KEPT_MS) > now_ms)
        };
        let text: String = log.lines.iter().filter(is_needed).map(|line| self.seal_line(line)).collect();
        self.folder.replace(LOG, text.as_bytes())
    }

    fn seal_line(&self, line: &Line) -> String {
        let text = line.to_text();
        format!("{text}\t{}\n", self.tag(&text))
    }

    fn unseal_line(&self, line: &str) -> Option<Line> {
        let (text, tag) = line.rsplit_once('\t')?;
        (tag == self.tag(text)).then(|| Line::parse(text))?
    }

    fn tag(&self, text: &str) -> String {
        let mut seal = self.seal(&[b"line", text.as_bytes()]);
        seal.truncate(TAG);
        seal
    }
}

/// Every handle whose create has landed, and its number.
pub fn handles(lines: &[Line]) -> BTreeMap<String, u64> {
    let landed = |line: &Line| match &line.event {
        Event::Delivered(url) | Event::Found(url) if line.step == Some(Step::Create) => {
            Some((entry::handle(line.seq), entry::number_in_url(url)?))
        }
        _ => None,
    };
    lines.iter().filter_map(landed).collect()
}
