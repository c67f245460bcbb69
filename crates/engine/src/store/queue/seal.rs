//! The seal under every entry and every line of the replay log: an HMAC with a key that never leaves the
//! machine's state folder, so that nothing that came with a checkout can pass for this machine's work
//! (`RELIABILITY` D11).

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use crate::checkpoint::step;
use crate::control::Guard;
use crate::store::folder::Folder;
use crate::store::private;

const KEY_BYTES: usize = 32;
const KEY_FILE: &str = "queue.key";

/// This machine's key.
#[derive(Clone)]
pub struct Key([u8; KEY_BYTES]);

impl Key {
    /// The key in this state folder, made on first use.
    pub fn open(state: &Path) -> io::Result<Key> {
        match Key::read(state)? {
            Some(key) => Ok(key),
            None => Key::make(state),
        }
    }

    /// The key in this state folder, where there is one.
    pub fn read(state: &Path) -> io::Result<Option<Key>> {
        let path = state.join(KEY_FILE);
        let mut file = match private::open(fs::OpenOptions::new().read(true), &path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e),
        };
        let mut key = [0; KEY_BYTES];
        file.read_exact(&mut key)?;
        Ok(Some(Key(key)))
    }

    fn make(state: &Path) -> io::Result<Key> {
        private::ensure_folder(state)?;
        let mut key = [0; KEY_BYTES];
        fs::File::open("/dev/urandom")?.read_exact(&mut key)?;
        let aside = state.join(format!("{KEY_FILE}.{}.tmp", std::process::id()));
        let _ = fs::remove_file(&aside);
        let mut file = private::open(fs::OpenOptions::new().write(true).create_new(true), &aside)?;
        let linked = io::Write::write_all(&mut file, &key)
            .and_then(|()| step("key: sync"))
            .and_then(|()| if Guard::Sync.is_off() { Ok(()) } else { file.sync_all() })
            // Whoever finds the key may go by its folder being on the disk: recorded calls make it without a sync.
            .and_then(|()| private::sync_names_above(state))
            // A link, unlike a rename, never replaces the key that another process made meanwhile.
            .and_then(|()| step("key: link"))
            .and_then(|()| fs::hard_link(&aside, state.join(KEY_FILE)));
        let _ = fs::remove_file(&aside);
        match linked {
            Ok(()) => Folder::root(state)?.sync().map(|()| Key(key)),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                Key::read(state)?.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
            }
            Err(e) => Err(e),
        }
    }

    /// The seal under these parts: each is preceded by its length, so that no two lists share one.
    pub fn seal(&self, parts: &[&[u8]]) -> String {
        // A key of any length is taken.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else { return String::new() };
        for part in parts {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        hex(&mac.finalize().into_bytes())
    }
}

/// The SHA-256 of some parts, each preceded by its length.
pub fn digest(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hex(&hash.finalize())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_and_its_seals_depend_on_every_part() {
        let home = tempfile::tempdir().unwrap();
        let state = home.path().join("forge");
        assert!(Key::read(&state).unwrap().is_none());
        let key = Key::open(&state).unwrap();
        let again = Key::open(&state).unwrap();
        let seal = key.seal(&[b"a", b"bc"]);
        assert_eq!((seal.len(), &seal), (64, &again.seal(&[b"a", b"bc"])));
        assert_ne!(seal, key.seal(&[b"ab", b"c"]));
        let other = Key::open(&home.path().join("other")).unwrap();
        assert_ne!(seal, other.seal(&[b"a", b"bc"]));
        assert_eq!(fs::read_dir(&state).unwrap().count(), 1, "no debris");
    }

    #[test]
    fn a_digest_is_sha_256() {
        let empty = hex(&Sha256::digest(b""));
        assert_eq!(empty, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}
