//! The shim's second mode: a recorder that stands in front of whatever gh is next on PATH.
//!
//! `forge budget measure` makes a folder with the shim in it as `gh` and an empty record beside it, and
//! puts that folder first on PATH. A shim that finds a record beside itself notes the call and becomes the
//! next `gh`: same process, same everything. A command that puts the shim's own folder first again meets
//! the shim before the recorder; then the shim notes the call.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::find;
use super::sys::Block;
use crate::decide::measure::Call;
use crate::settings::MEASURE;

/// The record's name.
pub const RECORD: &str = "measured-calls";

/// What stands behind the folder's name once a recorder has noted the call.
const NOTED: &[u8] = b":noted";

/// What the variable [`MEASURE`] says.
pub struct Measuring {
    folder: PathBuf,
    is_noted: bool,
}

impl Measuring {
    /// Reads the variable's value.
    pub fn parse(value: &OsStr) -> Measuring {
        let bytes = value.as_bytes();
        let folder = bytes.strip_suffix(NOTED).unwrap_or(bytes);
        Measuring { folder: OsStr::from_bytes(folder).into(), is_noted: folder.len() < bytes.len() }
    }

    /// Notes a call in the command's record, unless a recorder has done it.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn note(&self, call: &Call) -> io::Result<()> {
        if self.is_noted { Ok(()) } else { note(&self.folder, call) }
    }
}

/// The folder of this process's program, if a record lies beside it: then this is a recorder.
pub fn own_folder() -> Option<PathBuf> {
    let folder = find::own_program()?.parent()?.to_path_buf();
    folder.join(RECORD).is_file().then_some(folder)
}

/// Adds one line to the record in `folder`, in one write.
///
/// # Errors
/// There is no record, or it cannot be written.
pub fn note(folder: &Path, call: &Call) -> io::Result<()> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let mut record = File::options().append(true).custom_flags(flags).open(folder.join(RECORD))?;
    record.write_all(call.line().as_bytes())
}

/// Becomes the first `gh` on PATH behind the recorder's own folder. Returns only when there is none.
pub fn become_next(argv: &[OsString], own: &Path, measuring: &OsStr) -> io::Error {
    let path = super::invocation::variable(crate::settings::PATH);
    let Some(next) = find::gh_behind(path.as_deref(), own) else {
        return io::Error::new(io::ErrorKind::NotFound, "there is no other gh on PATH");
    };
    let mut value = Measuring::parse(measuring).folder.into_os_string();
    value.push(OsStr::from_bytes(NOTED));
    super::exit::become_program(&next, argv, &Block::environment_with(MEASURE, &value.to_string_lossy()))
}
