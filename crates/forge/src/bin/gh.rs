//! The `gh` that sits first on PATH.
//!
//! Without Rust's own start-up code: it would ignore SIGPIPE and open `/dev/null` on closed standard
//! descriptors, and the real gh would inherit both.
#![no_main]
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int};

use engine::process::invocation::Invocation;

/// The marker by which a shim on PATH is told from the real gh (`engine::process::find::MARKER`), in a
/// well-formed ELF note: notes stand in a file's first bytes. On macOS `scripts/build.sh` sets it.
#[cfg(not(target_os = "macos"))]
#[repr(C)]
struct Note {
    name_bytes: u32,
    content_bytes: u32,
    kind: u32,
    name: [u8; 20],
}

#[cfg(not(target_os = "macos"))]
#[used]
#[unsafe(link_section = ".note.bob-forge")]
static MARKER: Note = Note { name_bytes: 18, content_bytes: 0, kind: 1, name: *b"bob-forge-gh-shim\0\0\0" };

/// Called by the C library with the kernel's own arguments.
#[unsafe(no_mangle)]
pub extern "C" fn main(argc: c_int, argv: *const *const c_char) -> c_int {
    forge::shim::carry(&Invocation::read(argc, argv))
}
