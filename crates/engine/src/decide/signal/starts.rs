//! Where in a line a message may start: at its beginning, after a timestamp or a level, and after each
//! `: ` of the prefixes that gh puts in front (`failed to get runs: HTTP 502…`); never inside quotes,
//! where the user's words are.

/// The text after what loggers put first: non-ASCII icons and spinners, times, `[tags]`, levels,
/// workflow commands.
pub(super) fn after_decoration(line: &[u8]) -> &[u8] {
    let mut rest = line;
    loop {
        let before = rest.len();
        while rest.first().is_some_and(|&b| !b.is_ascii() || b == b' ') {
            rest = &rest[1..];
        }
        for word in [&b"##[error]"[..], b"::error::", b"ERROR ", b"ERRO ", b"FATAL ", b"FATA "] {
            rest = rest.strip_prefix(word).unwrap_or(rest);
        }
        let word_len = rest.iter().position(|&b| b == b' ').unwrap_or(0);
        let word = &rest[..word_len];
        let is_tag = word.len() > 2 && word.starts_with(b"[") && word.ends_with(b"]");
        if is_tag || is_time(word) {
            rest = &rest[word_len..];
        }
        if rest.len() == before {
            return rest;
        }
    }
}

/// Whether a word is a date or a time of day, as loggers write them.
fn is_time(word: &[u8]) -> bool {
    let digits = word.iter().filter(|b| b.is_ascii_digit()).count();
    digits >= 4
        && word.iter().any(|b| b"/:-".contains(b))
        && word.iter().all(|b| b.is_ascii_digit() || b"/:-.,TZ+[]".contains(b))
}

/// Walks over a line and stops wherever a message may start.
pub(super) struct Starts<'a> {
    text: &'a [u8],
    at: usize,
    /// How many of a title's brackets are open.
    depth: usize,
    titled: bool,
    /// Quote characters (`"`, `'`, `` ` ``) that no later byte closes: looked for once only.
    unclosed: [bool; 3],
}

impl<'a> Iterator for Starts<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        while self.at < self.text.len() {
            let here = self.at;
            let rest = &self.text[here..];
            self.at += 1;
            match rest[0] {
                b'"' if is_log_field(&self.text[..here]) => return Some(&rest[1..]),
                b'"' | b'\'' | b'`' => self.skip_quoted(here),
                b'(' if self.titled => self.depth += 1,
                b')' => self.depth = self.depth.saturating_sub(1),
                _ if self.depth > 0 => {}
                b':' if rest.get(1) == Some(&b' ') => return Some(rest[1..].trim_ascii_start()),
                // The full-width colon of Chinese and Japanese git.
                0xef if rest.starts_with("：".as_bytes()) => return Some(rest[3..].trim_ascii_start()),
                _ => {}
            }
        }
        None
    }
}

impl<'a> Starts<'a> {
    /// All starts but the line's own. `titled`: what stands in round brackets is a title.
    pub(super) fn new(text: &'a [u8], titled: bool) -> Self {
        Starts { text, at: 0, depth: 0, titled, unclosed: [false; 3] }
    }

    fn skip_quoted(&mut self, open: usize) {
        let kind = match self.text[open] {
            b'"' => 0,
            b'\'' => 1,
            _ => 2,
        };
        if self.unclosed[kind] || !may_open(self.text, open) {
            return;
        }
        match closing(self.text, open) {
            Some(close) => self.at = close + 1,
            None => self.unclosed[kind] = true,
        }
    }
}

/// Whether a quote opens here: inside a word it is an apostrophe.
pub(super) fn may_open(text: &[u8], open: usize) -> bool {
    text[..open].last().is_none_or(|b| b.is_ascii() && !b.is_ascii_alphanumeric())
}

/// Where the quote that opens at `open` closes: not behind a backslash, and not inside a word.
pub(super) fn closing(text: &[u8], open: usize) -> Option<usize> {
    let quote = text[open];
    let mut at = open + 1;
    while at < text.len() {
        if text[at] == b'\\' && quote == b'"' {
            at += 1;
        } else if text[at] == quote
            && (quote != b'\'' || !text.get(at + 1).is_some_and(u8::is_ascii_alphanumeric))
        {
            return Some(at);
        }
        at += 1;
    }
    None
}

/// Whether the text ends with the key of a structured log's message (`msg="`, `err="`).
fn is_log_field(before: &[u8]) -> bool {
    [&b"msg="[..], b"err=", b"error="].iter().any(|key| before.ends_with(key))
}
