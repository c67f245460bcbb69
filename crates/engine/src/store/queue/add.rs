//! Enqueueing: after it returns, the write survives a kill and a power cut (`RELIABILITY` 5.3).

use std::io;

use super::records::{BODY, Found, body_folder, entry_file, marker_file};
use super::{Queue, digest};
use crate::checkpoint;
use crate::control::Guard;
use crate::decide::entry::{Entry, Live, SCHEMA, SEQ_MAX, Status, handle, id};
use crate::decide::queued::Queued;
use crate::decide::repo::Repo;
use crate::decide::write::WriteKind;
use crate::store::dirty;
use crate::store::folder::Folder;
use crate::store::lock::Lock;

/// A write that is to be queued.
#[derive(Clone, Debug)]
pub struct Draft<'a> {
    /// What it does.
    pub queued: &'a Queued,
    /// Its body, where it has one.
    pub body: Option<&'a [u8]>,
    /// Where it goes.
    pub repo: &'a Repo,
    /// Why the live call did not deliver it.
    pub signal: Option<&'a str>,
    /// The live call, where there was one.
    pub live: Option<Live>,
    /// Whose write it is.
    pub caller: &'a str,
    /// The session it came from.
    pub session: &'a str,
    /// The time, in epoch seconds.
    pub now_s: u64,
}

/// Why a write was not queued. Nothing of it will be delivered.
#[derive(Debug)]
pub enum NotAdded {
    /// As many entries wait as may.
    Full {
        /// The bound.
        max: u64,
    },
    /// Every number has been given out.
    NumbersUsedUp,
    /// The files cannot be written.
    Io(io::Error),
}

impl From<io::Error> for NotAdded {
    fn from(e: io::Error) -> NotAdded {
        NotAdded::Io(e)
    }
}

/// The digest by which equal writes are known, whatever number they get.
pub fn key_of(queued: &Queued, repo: &Repo, body: Option<&[u8]>) -> String {
    let (kind, repo, argv) = (queued.kind.as_str(), repo.key(), queued.argv.join("\0"));
    let has_body = if body.is_some() { "body" } else { "" };
    digest(&[
        kind.as_bytes(),
        repo.as_bytes(),
        argv.as_bytes(),
        has_body.as_bytes(),
        body.unwrap_or_default(),
    ])
}

impl Queue {
    /// Queues a write, and says how many wait now.
    ///
    /// # Errors
    /// It is not queued; at most its number is spent.
    pub fn add(&self, draft: &Draft, max: u64) -> Result<(Entry, u64), NotAdded> {
        let lock = self.lock()?;
        let loaded = self.load()?;
        let waiting = loaded.pending().count() as u64;
        if waiting >= max {
            return Err(NotAdded::Full { max });
        }
        // Before the entry: a mark without entries costs one look, an entry without its mark would
        // wait for a person.
        let others_wait = loaded.found.iter().any(Found::is_ours);
        dirty::mark(self.state(), self.root(), others_wait)?;
        if !others_wait {
            // Others wait only where this was done. Whoever made the folders may have been killed right after it.
            Folder::sync_names(self.root())?;
        }
        checkpoint::here("after-mark");
        let seq = self.take_number(loaded.highest)?;
        checkpoint::here("after-seq");
        let entry = self.entry(draft, seq);
        match self.commit(&lock, &entry, draft.body) {
            Ok(()) => Ok((entry, waiting + 1)),
            Err(e) => {
                // Whatever cannot be removed now is an orphan, which is never delivered.
                let _ = self.forget(&lock, seq);
                let _ = self.spend(&lock, seq);
                let _ = self.folder.sync();
                Err(e.into())
            }
        }
    }

    /// The next number, taken by the one atomic step that also writers without locks respect.
    fn take_number(&self, highest: u32) -> Result<u32, NotAdded> {
        for seq in highest + 1..=SEQ_MAX {
            match self.folder.create_new(&marker_file(seq)) {
                Ok(_) => return Ok(seq),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e.into()),
            }
        }
        Err(NotAdded::NumbersUsedUp)
    }

    fn entry(&self, draft: &Draft, seq: u32) -> Entry {
        let Draft { queued, body, repo, .. } = draft;
        let body_file =
            body.map(|_| self.path().join(body_folder(seq)).join(BODY).to_string_lossy().into_owned());
        let mut argv = queued.argv.clone();
        if let (Some(word), Some(path)) = (queued.body_word, &body_file) {
            argv[word].clone_from(path);
        }
        let mut entry = Entry {
            schema: SCHEMA.into(),
            seq,
            id: id(seq),
            kind: queued.kind,
            repo: repo.to_string(),
            target: queued.target.clone(),
            handle: (queued.kind == WriteKind::Create).then(|| handle(seq)),
            key: key_of(queued, repo, *body),
            argv,
            body_file,
            enqueued_at: draft.now_s,
            status: Status::Pending,
            reason: None,
            attempts: 0,
            first_attempt_at: draft.live.map(|live| live.started_ms / 1_000),
            last_attempt_at: draft.live.map(|live| live.ended_ms / 1_000),
            result: None,
            signal: draft.signal.map(str::to_string),
            live: draft.live,
            caller: draft.caller.to_string(),
            session: draft.session.to_string(),
            seal: String::new(),
        };
        entry.seal = self.entry_seal(&entry);
        entry
    }

    /// Body, entry and folder, each on the disk before the next: the rename is what makes it count.
    fn commit(&self, _lock: &Lock, entry: &Entry, body: Option<&[u8]>) -> io::Result<()> {
        if let Some(body) = body {
            let folder = self.folder.make_new(&body_folder(entry.seq))?;
            checkpoint::here("after-body-folder");
            folder.write_new(BODY, body)?;
            folder.sync()?;
            checkpoint::here("after-body");
        }
        let name = entry_file(entry.seq);
        let aside = format!("{name}.tmp");
        let bytes = serde_json::to_vec_pretty(entry).map_err(io::Error::from)?;
        if Guard::Aside.is_off() {
            return self.folder.write_in_place(&name, &bytes);
        }
        self.folder.write_new(&aside, &bytes)?;
        checkpoint::here("after-aside");
        self.folder.sync()?;
        self.folder.rename(&aside, &name)?;
        checkpoint::here("after-rename");
        self.folder.sync()
    }
}
