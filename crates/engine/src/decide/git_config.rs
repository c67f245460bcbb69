//! git's configuration text → its entries, and from them the remotes as `git remote -v` shows them.
//!
//! Starting `git` would cost more than the rest of a call, so the files are read instead. This part
//! reads their text; which files there are, and what an include adds, is for the caller to find.
//! Settings in `GIT_CONFIG_COUNT` and the old `.git/remotes` and `.git/branches` files are not read.

use super::repo::Remote;

/// One setting. Section and key are in lower case, as git compares them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// `remote` in `[remote "origin"]`; empty above the first header.
    pub section: String,
    /// `origin` in `[remote "origin"]`, case kept.
    pub subsection: Option<String>,
    /// The key.
    pub key: String,
    /// The value; `None` for a key alone, which git reads as true.
    pub value: Option<String>,
}

/// What stands at one place of a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A setting.
    Entry(Entry),
    /// Another file, whose items belong at this very place.
    Include {
        /// `includeIf`'s condition (`gitdir:~/work/`); `None` for a plain include.
        condition: Option<String>,
        /// The path as it is written: absolute, `~/…`, or relative to the including file's folder.
        path: String,
    },
}

/// A line that git refuses too (`bad config line N`): then `git`, and so `gh`, reads nothing at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadLine(
    /// Its number, from 1.
    pub usize,
);

/// Reads one file's text. Bytes that are no UTF-8 are replaced.
pub fn parse(text: &[u8]) -> Result<Vec<Item>, BadLine> {
    let text = String::from_utf8_lossy(text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text));
    let text = text.replace("\r\n", "\n");
    let mut reader = Reader { chars: text.chars(), line: 1, section: (String::new(), None) };
    let mut items = Vec::new();
    while let Some(c) = reader.next() {
        match c {
            '#' | ';' => reader.comment(),
            '[' => reader.section = reader.header()?,
            c if is_space(c) => {}
            c if c.is_ascii_alphabetic() => items.push(item(reader.setting(c)?)),
            _ => return reader.bad(),
        }
    }
    Ok(items)
}

fn item(entry: Entry) -> Item {
    let condition = match (entry.section.as_str(), &entry.subsection) {
        ("include", None) => None,
        ("includeif", Some(condition)) => Some(condition.clone()),
        _ => return Item::Entry(entry),
    };
    match entry {
        Entry { key, value: Some(path), .. } if key == "path" => Item::Include { condition, path },
        other => Item::Entry(other),
    }
}

/// C's `isspace`, as git uses it.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

struct Reader<'a> {
    chars: std::str::Chars<'a>,
    line: usize,
    section: (String, Option<String>),
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.chars.next();
        self.line += usize::from(c == Some('\n'));
        c
    }

    /// The next character; the end of the file counts as the end of a line.
    fn next_or_end(&mut self) -> char {
        self.next().unwrap_or('\n')
    }

    fn bad<T>(&self) -> Result<T, BadLine> {
        Err(BadLine(self.line))
    }

    fn comment(&mut self) {
        while self.next().is_some_and(|c| c != '\n') {}
    }

    /// `[section]`, `[section "subsection"]`, or the old `[section.subsection]`; after the `[`.
    fn header(&mut self) -> Result<(String, Option<String>), BadLine> {
        let mut name = String::new();
        loop {
            match self.next_or_end() {
                ']' if name.is_empty() => return self.bad(),
                ']' => break,
                ' ' | '\t' => {
                    let subsection = self.quoted_subsection()?;
                    return Ok(split_name(&name, Some(subsection)));
                }
                c if c.is_ascii_alphanumeric() || c == '-' || c == '.' => name.push(c.to_ascii_lowercase()),
                _ => return self.bad(),
            }
        }
        Ok(split_name(&name, None))
    }

    fn quoted_subsection(&mut self) -> Result<String, BadLine> {
        let mut c = self.next_or_end();
        while c == ' ' || c == '\t' {
            c = self.next_or_end();
        }
        if c != '"' {
            return self.bad();
        }
        let mut name = String::new();
        loop {
            match self.next_or_end() {
                '\n' => return self.bad(),
                '"' => break,
                '\\' => match self.next_or_end() {
                    '\n' => return self.bad(),
                    c => name.push(c),
                },
                c => name.push(c),
            }
        }
        if self.next_or_end() == ']' { Ok(name) } else { self.bad() }
    }

    /// `key = value` or `key`, from the key's first letter.
    fn setting(&mut self, first: char) -> Result<Entry, BadLine> {
        let (section, subsection) = self.section.clone();
        let mut key = String::from(first.to_ascii_lowercase());
        let mut c = self.next_or_end();
        while c.is_ascii_alphanumeric() || c == '-' {
            key.push(c.to_ascii_lowercase());
            c = self.next_or_end();
        }
        while c == ' ' || c == '\t' {
            c = self.next_or_end();
        }
        let value = match c {
            '\n' => None,
            '=' => Some(self.value()?),
            _ => return self.bad(),
        };
        Ok(Entry { section, subsection, key, value })
    }

    fn value(&mut self) -> Result<String, BadLine> {
        let mut value = String::new();
        // What is left of the value when unquoted white space at its end is dropped.
        let mut kept = 0;
        let mut quoted = false;
        loop {
            match self.next_or_end() {
                '\n' if quoted => return self.bad(),
                '\n' => break,
                c if is_space(c) && !quoted => {
                    if !value.is_empty() {
                        value.push(c);
                    }
                    continue;
                }
                '#' | ';' if !quoted => {
                    self.comment();
                    break;
                }
                '\\' => match self.escaped()? {
                    Some(c) => value.push(c),
                    None => continue,
                },
                '"' => quoted = !quoted,
                c => value.push(c),
            }
            kept = value.len();
        }
        value.truncate(kept);
        Ok(value)
    }

    /// What a backslash stands for; `None` for a line that goes on.
    fn escaped(&mut self) -> Result<Option<char>, BadLine> {
        Ok(match self.next_or_end() {
            '\n' => None,
            't' => Some('\t'),
            'b' => Some('\u{8}'),
            'n' => Some('\n'),
            c @ ('\\' | '"') => Some(c),
            _ => return self.bad(),
        })
    }
}

/// The old `[section.subsection]` splits at its first dot; a quoted subsection adds to it.
fn split_name(name: &str, quoted: Option<String>) -> (String, Option<String>) {
    match (name.split_once('.'), quoted) {
        (None, quoted) => (name.to_string(), quoted),
        (Some((section, rest)), None) => (section.to_string(), Some(rest.to_string())),
        (Some((section, rest)), Some(quoted)) => (section.to_string(), Some(format!("{rest}.{quoted}"))),
    }
}

/// The remotes as `git remote -v` shows them, sorted by name, with `url.<base>.insteadOf` and
/// `pushInsteadOf` applied. `entries` are those of every file git reads, in its order.
pub fn remotes(entries: &[Entry]) -> Vec<Remote> {
    let mut names: Vec<&str> = in_section(entries, "remote").map(|(name, ..)| name).collect();
    names.retain(|name| !name.is_empty() && !name.starts_with('/'));
    names.sort_unstable();
    names.dedup();
    names.into_iter().filter_map(|name| remote(entries, name)).collect()
}

fn remote(entries: &[Entry], name: &str) -> Option<Remote> {
    let urls = list(entries, name, "url");
    let push_urls = list(entries, name, "pushurl");
    // An own push URL is rewritten like any other; without one, the URLs that `pushInsteadOf`
    // matches are the only ones pushed to. gh keeps the last line that git prints.
    let push_url = match (push_urls.last(), urls.last()) {
        (None, None) => return None,
        (Some(push_url), _) => rewrite(entries, push_url),
        (None, Some(last)) => {
            let for_push = urls.iter().rev().find_map(|url| rewritten(entries, "pushinsteadof", url));
            for_push.unwrap_or_else(|| rewrite(entries, last))
        }
    };
    let url = urls.first().map(|url| rewrite(entries, url)).unwrap_or_default();
    let resolved = of(entries, name, "gh-resolved").last().flatten().map(str::to_string);
    let push_url = (push_url != url).then_some(push_url);
    Some(Remote { name: name.to_string(), url, push_url, resolved })
}

/// `(subsection, key, value)` of a section's entries.
fn in_section<'a>(
    entries: &'a [Entry],
    section: &'a str,
) -> impl Iterator<Item = (&'a str, &'a str, Option<&'a str>)> {
    entries
        .iter()
        .filter(move |entry| entry.section == section)
        .filter_map(|entry| Some((entry.subsection.as_deref()?, entry.key.as_str(), entry.value.as_deref())))
}

fn of<'a>(entries: &'a [Entry], remote: &'a str, key: &'a str) -> impl Iterator<Item = Option<&'a str>> {
    in_section(entries, "remote").filter(move |(r, k, _)| *r == remote && *k == key).map(|(.., value)| value)
}

/// A list of URLs; an empty value clears what came before it.
fn list<'a>(entries: &'a [Entry], remote: &'a str, key: &'a str) -> Vec<&'a str> {
    let mut urls = Vec::new();
    for url in of(entries, remote, key).flatten() {
        match url {
            "" => urls.clear(),
            url => urls.push(url),
        }
    }
    urls
}

fn rewrite(entries: &[Entry], url: &str) -> String {
    rewritten(entries, "insteadof", url).unwrap_or_else(|| url.to_string())
}

/// The URL with its longest matching prefix replaced; the first of equals wins.
fn rewritten(entries: &[Entry], key: &str, url: &str) -> Option<String> {
    let mut best: Option<(&str, &str)> = None;
    for (base, k, value) in in_section(entries, "url") {
        let Some(prefix) = value.filter(|prefix| k == key && url.starts_with(prefix)) else { continue };
        if best.is_none_or(|(_, longest)| longest.len() < prefix.len()) {
            best = Some((base, prefix));
        }
    }
    best.map(|(base, prefix)| format!("{base}{}", &url[prefix.len()..]))
}
