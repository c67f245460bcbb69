//! Which lines of a stderr are gh's own words.
//!
//! A gh call's stderr also carries text that proves nothing about the forge: request logs (`GH_DEBUG`),
//! usage text, the shell's trace, success lines with an issue's title in them, and what git says
//! about commits. This module leaves those out, so that the grammar only meets error messages.

use super::texts::{ECHOED, LOCAL};

/// One line that matters.
pub(super) enum Line<'a> {
    /// Something gh, git or an extension says. After a failure icon (`X`) the text may hold a title
    /// in round brackets, so `titled` lines are read outside brackets only.
    Own { text: &'a [u8], titled: bool },
    /// A line of a response that `GH_DEBUG=api` dumped, without its `< `.
    Header(&'a [u8]),
    /// Everything so far was the rest of a request log whose beginning was cut off.
    CutLog,
}

/// Hands every line that matters to `each`, with the raw bytes that follow it.
///
/// The caller may have kept only the end of a long stderr, so a log may start in the middle; and a
/// killed gh may have left one open, so its lines are read after all when it never closes.
pub(super) fn each_line(stderr: &[u8], each: &mut dyn FnMut(Line, &[u8])) {
    if let Some(open_log) = pass(stderr, true, each) {
        pass(&stderr[open_log..], false, each);
    }
}

/// One pass. With `logs`, request logs are left out whole; the result is where an unclosed one began.
fn pass(stderr: &[u8], logs: bool, each: &mut dyn FnMut(Line, &[u8])) -> Option<usize> {
    let (mut open_log, mut log_seen, mut usage) = (None, false, false);
    let mut plain = Vec::new();
    let mut at = 0;
    while at < stderr.len() {
        let start = at;
        let end = stderr[at..].iter().position(|&b| b == b'\n').map_or(stderr.len(), |n| at + n);
        at = end + 1;
        let following = stderr.get(at..).unwrap_or_default();
        // A carriage return inside a line is a progress display writing over itself.
        for part in stderr[start..end].split(|&b| b == b'\r') {
            let line = without_ansi(part, &mut plain);
            if logs && line.starts_with(b"* Request ") {
                if !line.starts_with(b"* Request took ") {
                    open_log.get_or_insert(start);
                } else if open_log.take().is_none() && !log_seen {
                    each(Line::CutLog, following);
                }
                log_seen = true;
            } else if let Some(header) = line.strip_prefix(b"< ") {
                each(Line::Header(header), following);
            } else if open_log.is_none()
                && !in_usage(line, &mut usage)
                && let Some((text, titled)) = own(line)
            {
                each(Line::Own { text, titled }, following);
            }
        }
    }
    open_log
}

/// Whether a line belongs to a usage text: from `Usage:` on, headings, empty and indented lines.
fn in_usage(line: &[u8], usage: &mut bool) -> bool {
    if line.starts_with(b"Usage:") || line.starts_with(b"USAGE") {
        *usage = true;
    } else if *usage {
        let heading = line.ends_with(b":") || line.iter().all(|b| b.is_ascii_uppercase() || *b == b' ');
        *usage = heading || line[0].is_ascii_whitespace();
    }
    *usage
}

/// The words of a line that is gh's own, and whether they may hold a title in brackets.
fn own(line: &[u8]) -> Option<(&[u8], bool)> {
    let line = line.trim_ascii();
    // A table on a pipe: its fields are the forge's data, not errors.
    let is_table = line.iter().filter(|&&b| b == b'\t').count() >= 2;
    if line.is_empty() || is_table || ECHOED.iter().any(|p| line.starts_with(p)) || is_local(line) {
        return None;
    }
    for icon in [&b"X "[..], "✗".as_bytes(), "✘".as_bytes(), "✖".as_bytes(), "×".as_bytes()] {
        if let Some(text) = line.strip_prefix(icon) {
            return Some((text.trim_ascii_start(), true));
        }
    }
    Some((line, false))
}

/// Errors that gh raises before or without any request. They quote what the user typed.
fn is_local(line: &[u8]) -> bool {
    LOCAL.iter().any(|p| line.starts_with(p))
        || (line.ends_with(b"no such file or directory") && !line.windows(5).any(|w| w == b"dial "))
}

/// The line without terminal escape sequences; copied into `plain` only when it has any.
fn without_ansi<'a>(line: &'a [u8], plain: &'a mut Vec<u8>) -> &'a [u8] {
    const ESC: u8 = 0x1b;
    if !line.contains(&ESC) {
        return line;
    }
    plain.clear();
    let mut rest = line;
    while let Some(&byte) = rest.first() {
        if byte == ESC {
            rest = &rest[escape_len(rest).min(rest.len())..];
        } else {
            plain.push(byte);
            rest = &rest[1..];
        }
    }
    plain
}

/// How many bytes the escape sequence at the start of `text` takes.
fn escape_len(text: &[u8]) -> usize {
    let up_to = |from: usize, last: fn(u8) -> bool| {
        text.iter().skip(from).position(|&b| last(b)).map_or(text.len(), |n| from + n + 1)
    };
    match text.get(1) {
        Some(b'[') => up_to(2, |b| (0x40..=0x7e).contains(&b)),
        // A title or a hyperlink; ended by BEL or by ESC \, whose backslash comes last.
        Some(b']') => up_to(2, |b| b == 0x07 || b == b'\\'),
        _ => 2,
    }
}
