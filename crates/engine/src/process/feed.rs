//! What a child of ours is to read, laid ready before the child is there.
//!
//! gh takes the end of its input for the end of the text: fed while it runs, a gh whose feeder is killed would
//! post half a text, or an issue without any. So it gets all of it at once, or is not started.

use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};

use super::sys;

/// A descriptor from which exactly these bytes can be read: a pipe where they fit into one, as most do, else a
/// file without a name.
///
/// # Errors
/// No descriptor is left, or no memory.
pub(super) fn ready(bytes: &[u8]) -> io::Result<OwnedFd> {
    let (its_end, into) = sys::pipe()?;
    sys::set_nonblocking(&into)?;
    match sys::write(into.as_raw_fd(), bytes) {
        Ok(n) if n == bytes.len() => Ok(its_end),
        _ => nameless(bytes),
    }
}

fn nameless(bytes: &[u8]) -> io::Result<OwnedFd> {
    let mut file = std::fs::File::from(sys::nameless_file()?);
    file.write_all(bytes)?;
    io::Seek::rewind(&mut file)?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn every_length_can_be_read_to_its_end_and_no_further() {
        for length in [1, 4_096, 65_536, 65_537, 3 << 20] {
            let bytes: Vec<u8> = (0..length).map(|n| n as u8).collect();
            let mut read = Vec::new();
            std::fs::File::from(ready(&bytes).unwrap()).read_to_end(&mut read).unwrap();
            assert!(read == bytes, "{length}");
        }
    }
}
