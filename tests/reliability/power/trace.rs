//! The calls of one run as strace wrote them down, every byte that was written among them.

use std::fs;
use std::path::Path;

use crate::scene::strace;
use crate::support::command::Call;
use crate::support::sandbox::Sandbox;

/// One call that returned.
#[derive(Clone, Debug)]
pub struct Step {
    pub name: String,
    pub args: Vec<Arg>,
    pub result: i64,
    /// As strace shows it, shortened.
    pub line: String,
}

/// One argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arg {
    /// `5</a/path>`, or `AT_FDCWD</a/path>` (−1).
    Fd(i32, String),
    /// A string, whole.
    Text(Vec<u8>),
    /// Flags, numbers, structures.
    Other(String),
}

impl Step {
    pub fn fd(&self, nth: usize) -> Option<(i32, &str)> {
        match self.args.get(nth)? {
            Arg::Fd(fd, path) => Some((*fd, path)),
            _ => None,
        }
    }

    pub fn text(&self, nth: usize) -> Option<&[u8]> {
        match self.args.get(nth)? {
            Arg::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn other(&self, nth: usize) -> &str {
        match self.args.get(nth) {
            Some(Arg::Other(text)) => text,
            _ => "",
        }
    }

    /// The path that a descriptor's argument and the string behind it name together.
    pub fn path_at(&self, nth: usize) -> Option<String> {
        let (_, folder) = self.fd(nth)?;
        let name = String::from_utf8_lossy(self.text(nth + 1)?).into_owned();
        Some(if name.starts_with('/') { name } else { format!("{folder}/{name}") })
    }

    /// A path that stands alone.
    pub fn path(&self, nth: usize) -> Option<String> {
        Some(String::from_utf8_lossy(self.text(nth)?).into_owned())
    }
}

/// `program` under strace, which leaves out what only reads and shows the rest whole.
pub fn traced<'s>(sandbox: &'s Sandbox, program: &Path, args: &[&str], inject: Option<&str>) -> Call<'s> {
    let mut words: Vec<std::ffi::OsString> =
        ["-qq", "-y", "-s", "4194304", "-e", "trace=!read,pread64,readv,preadv", "-o"].map(Into::into).into();
    words.push(sandbox.path("tmp/power").into());
    if let Some(inject) = inject {
        words.extend(["-e".into(), format!("inject={inject}").into()]);
    }
    words.push(program.into());
    words.extend(args.iter().map(Into::into));
    sandbox.program(strace(), &words)
}

/// What the last traced run did.
pub fn steps(sandbox: &Sandbox) -> Vec<Step> {
    let bytes = fs::read(sandbox.path("tmp/power")).unwrap_or_default();
    bytes.split(|byte| *byte == b'\n').filter_map(step).collect()
}

fn step(line: &[u8]) -> Option<Step> {
    let open = line.iter().position(|byte| *byte == b'(')?;
    let name = std::str::from_utf8(&line[..open]).ok()?;
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return None;
    }
    let (args, end) = arguments(&line[open + 1..]);
    let rest = String::from_utf8_lossy(&line[open + 1 + end..]).into_owned();
    let result = rest.split("= ").nth(1)?;
    let digits = result.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(result.len());
    // `?`: it never returned.
    let result = result[..digits].parse().ok()?;
    let shown = String::from_utf8_lossy(&line[..line.len().min(140)]).into_owned();
    Some(Step { name: name.into(), args, result, line: shown })
}

/// The arguments up to the closing parenthesis, and where that stands.
fn arguments(text: &[u8]) -> (Vec<Arg>, usize) {
    let (mut args, mut start, mut depth, mut at) = (Vec::new(), 0, 0_usize, 0);
    while at < text.len() {
        match text[at] {
            b'"' => at += quoted(&text[at..]),
            b'<' => at += text[at..].iter().position(|byte| *byte == b'>').unwrap_or(0),
            b'{' | b'[' | b'(' => depth += 1,
            b')' if depth == 0 => break,
            b'}' | b']' | b')' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                args.push(argument(&text[start..at]));
                start = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    args.push(argument(&text[start..at.min(text.len())]));
    (args, at)
}

/// How far the closing quote is.
fn quoted(text: &[u8]) -> usize {
    let mut at = 1;
    while at < text.len() && text[at] != b'"' {
        at += if text[at] == b'\\' { 2 } else { 1 };
    }
    at
}

fn argument(text: &[u8]) -> Arg {
    let text = text.trim_ascii();
    if text.first() == Some(&b'"') && text.len() == quoted(text) + 1 {
        return Arg::Text(unescape(&text[1..text.len() - 1]));
    }
    let text = String::from_utf8_lossy(text).into_owned();
    let fd = text.split_once('<').and_then(|(number, path)| {
        let number = if number == "AT_FDCWD" { -1 } else { number.parse().ok()? };
        Some(Arg::Fd(number, path.split('>').next()?.to_string()))
    });
    fd.unwrap_or(Arg::Other(text))
}

/// C's escapes, as strace writes them.
fn unescape(text: &[u8]) -> Vec<u8> {
    let (mut bytes, mut at) = (Vec::with_capacity(text.len()), 0);
    while at < text.len() {
        if text[at] != b'\\' {
            bytes.push(text[at]);
            at += 1;
            continue;
        }
        let octal = text[at + 1..].iter().take(3).take_while(|b| (b'0'..=b'7').contains(b)).count();
        if octal > 0 {
            let digits = &text[at + 1..=at + octal];
            bytes.push(digits.iter().fold(0_u32, |sum, digit| sum * 8 + u32::from(digit - b'0')) as u8);
            at += 1 + octal;
            continue;
        }
        bytes.push(match text.get(at + 1) {
            Some(b'n') => b'\n',
            Some(b't') => b'\t',
            Some(b'r') => b'\r',
            Some(b'v') => 0x0b,
            Some(b'f') => 0x0c,
            Some(other) => *other,
            None => b'\\',
        });
        at += 2;
    }
    bytes
}
