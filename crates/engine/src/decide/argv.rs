//! gh's own flag grammar, read from a table: which command, which operands, which flags.
//!
//! gh parses with cobra and pflag. Two passes matter, and both are followed here to the letter: the
//! command is looked up first, level by level, by a scan that only guesses which words are flag
//! values; then the rest is parsed with the flags of the command that was found. The union of two
//! versions' tables is used (2.23.0 and 2.103.3), so a flag that either knows is known.
//!
//! Nothing is built at start-up: the table is static and sorted, a command's flags are one string,
//! and everything borrows from argv.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use super::flag_table::{HELP, Spec, Takes, by_name, by_short, child, is_group};
pub use super::flag_table::{commands, has_flag};
use super::gh_flags::COMMANDS;

/// What the words name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// No command at all: no words, or flags only (`gh`, `gh --version`).
    Nothing,
    /// A command of gh with its own action, as gh names it (`issue list`, aliases resolved).
    Command(&'static str),
    /// A command that only holds others, alone (`gh issue`): gh prints its help page.
    Group(&'static str),
    /// A group of gh followed by a word it does not know (`gh issue lst`): a newer gh's command, a
    /// user's alias, or a mistake.
    UnknownIn {
        /// The group.
        group: &'static str,
        /// Index of the word in argv.
        word: usize,
    },
    /// A first word that gh does not know by itself: an extension, a user's alias, or a mistake.
    Unknown {
        /// Index of the word in argv.
        word: usize,
    },
}

impl Named {
    /// The path as gh names it, as far as it is known; empty where gh knows none of the words.
    pub fn path(self) -> &'static str {
        match self {
            Named::Command(path) | Named::Group(path) | Named::UnknownIn { group: path, .. } => path,
            Named::Nothing | Named::Unknown { .. } => "",
        }
    }
}

/// What a flag was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A switch: `--web`, `-w`, `--web=false`.
    Switch(bool),
    /// A value, wherever it stood. For a flag whose value may be left out, the empty value when it was.
    Text(&'a OsStr),
}

/// Where a flag stands in argv, so that a value can be replaced in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The word that holds the flag.
    pub word: usize,
    /// The word that holds the value, and the byte at which the value begins in it; `None` for a
    /// switch and for a value that was left out.
    pub value: Option<(usize, usize)>,
}

/// One occurrence of a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given<'a> {
    /// Its long name, without dashes.
    pub name: &'static str,
    /// What it was given.
    pub value: Value<'a>,
    /// Where it stands.
    pub place: Place,
    /// Whether both versions of the table know it.
    pub in_both_versions: bool,
}

/// One word that is neither a flag, a flag's value nor part of the command's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand<'a> {
    /// Index in argv.
    pub word: usize,
    /// The word.
    pub text: &'a OsStr,
}

/// Why pflag refuses a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// `unknown flag: --x` or `unknown shorthand flag: 'x' in -x`.
    UnknownFlag,
    /// `flag needs an argument`: the value would be past the end of argv.
    NoValue,
    /// `bad flag syntax` (`---x`, `--=x`).
    BadSyntax,
    /// A switch with a value that is no truth value (`--web=maybe`).
    BadSwitch,
}

/// A command line as gh reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed<'a> {
    /// The command.
    pub named: Named,
    /// Its flags, in the order they were given. Empty for [`Named::Unknown`]: nobody knows that
    /// command's grammar.
    pub flags: Vec<Given<'a>>,
    /// Its operands. For [`Named::Unknown`] and [`Named::UnknownIn`], the unknown word is the first.
    pub operands: Vec<Operand<'a>>,
    /// Whether help was asked for (`--help`, `-h` where the command has no `-h` of its own).
    pub help: bool,
    /// What gh would refuse, with the word's index. gh stops at the first; all are kept.
    pub faults: Vec<(Fault, usize)>,
}

impl<'a> Parsed<'a> {
    /// The last value of a flag that takes one: pflag lets the last win.
    pub fn value(&self, name: &str) -> Option<&'a OsStr> {
        self.values(name).last()
    }

    /// Every value of a flag that takes one, in order.
    pub fn values(&self, name: &str) -> impl Iterator<Item = &'a OsStr> {
        self.flags.iter().filter(move |f| f.name == name).filter_map(|f| match f.value {
            Value::Text(text) => Some(text),
            Value::Switch(_) => None,
        })
    }

    /// Whether a switch ends up on.
    pub fn switch(&self, name: &str) -> bool {
        self.flags.iter().rev().find(|f| f.name == name).is_some_and(|f| f.value == Value::Switch(true))
    }

    /// Whether a flag was given at all, be it `--web=false`.
    pub fn given(&self, name: &str) -> bool {
        self.flags.iter().any(|f| f.name == name)
    }

    /// Whether any of these flags was given.
    pub fn given_any(&self, names: &[&str]) -> bool {
        self.flags.iter().any(|f| names.contains(&f.name))
    }

    /// Whether no flag but `-R` was given: an edit that says what, and not how, makes gh ask.
    pub fn names_no_change(&self) -> bool {
        self.flags.iter().all(|f| f.name == "repo")
    }

    /// Whether some word is a flag that neither version knows for this command.
    pub fn has_unknown_flag(&self) -> bool {
        self.faults.iter().any(|(fault, _)| *fault == Fault::UnknownFlag)
    }
}

/// Reads argv (without `gh` itself) as gh does.
pub fn parse(args: &[OsString]) -> Parsed<'_> {
    let (row, rest) = find(args);
    let mut parsed = Parsed {
        named: Named::Nothing,
        flags: Vec::new(),
        operands: Vec::new(),
        help: false,
        faults: Vec::new(),
    };
    Reader { args, spec: COMMANDS[row].2, rest: &rest, at: 0, parsed: &mut parsed }.read();
    parsed.named = match (COMMANDS[row].0, parsed.operands.first()) {
        ("", None) => Named::Nothing,
        ("", Some(first)) => Named::Unknown { word: first.word },
        (path, first) if is_group(row) => match first {
            Some(first) => Named::UnknownIn { group: path, word: first.word },
            None => Named::Group(path),
        },
        (path, _) => Named::Command(path),
    };
    if let Named::Unknown { word } = parsed.named {
        // The words belong to a grammar that is not gh's; only the plea for help is common to all.
        parsed.flags.clear();
        parsed.faults.clear();
        parsed.help = asks_for_help(args);
        parsed.operands =
            (word..args.len()).map(|word| Operand { word, text: args[word].as_os_str() }).collect();
    }
    parsed
}

fn asks_for_help(args: &[OsString]) -> bool {
    args.iter().take_while(|word| *word != "--").any(|word| word == "--help" || word == "-h")
}

/// Finds the command as cobra's `Find` does: its row, and the indices of the words that are left.
fn find(args: &[OsString]) -> (usize, Vec<usize>) {
    let mut rest: Vec<usize> = (0..args.len()).collect();
    let mut row = 0;
    while let Some(at) = first_word(args, &rest, COMMANDS[row].2) {
        let Some(next) = child(COMMANDS[row].0, &args[rest[at]]) else { break };
        rest.remove(at);
        row = next;
    }
    (row, rest)
}

/// The position in `rest` of the first word that is neither a flag nor taken for a flag's value:
/// an unknown or value-taking `--long` without `=`, and a two-character `-x` that is no switch here,
/// swallow the word behind them; with at most one word behind them they end the search.
fn first_word(args: &[OsString], rest: &[usize], spec: &'static str) -> Option<usize> {
    let mut at = 0;
    while at < rest.len() {
        let word = args[rest[at]].as_bytes();
        match word {
            b"--" => return None,
            [b'-', ..] if swallows(word, spec) => {
                if rest.len() - at <= 2 {
                    return None;
                }
                at += 1;
            }
            [b'-', ..] | [] => {}
            _ => return Some(at),
        }
        at += 1;
    }
    None
}

fn swallows(word: &[u8], spec: &'static str) -> bool {
    if word.contains(&b'=') {
        return false;
    }
    let flag = match word {
        [b'-', b'-', name @ ..] => by_name(spec, name),
        [b'-', short] => by_short(spec, *short),
        _ => return false,
    };
    !flag.is_some_and(|f| f.takes != Takes::Value)
}

/// pflag's `Parse` over the words that are left once the command's name is taken out.
struct Reader<'a, 'p> {
    args: &'a [OsString],
    spec: &'static str,
    rest: &'p [usize],
    at: usize,
    parsed: &'p mut Parsed<'a>,
}

impl<'a> Reader<'a, '_> {
    fn read(mut self) {
        while let Some(word) = self.next_word() {
            match self.args[word].as_bytes() {
                b"--" => break,
                [b'-', b'-', long @ ..] => self.long(word, long),
                [b'-', _, ..] => self.shorts(word),
                _ => self.operand(word),
            }
        }
        while let Some(word) = self.next_word() {
            self.operand(word);
        }
    }

    fn next_word(&mut self) -> Option<usize> {
        let word = self.rest.get(self.at).copied();
        self.at += 1;
        word
    }

    fn operand(&mut self, word: usize) {
        self.parsed.operands.push(Operand { word, text: &self.args[word] });
    }

    fn fault(&mut self, fault: Fault, word: usize) {
        self.parsed.faults.push((fault, word));
    }

    fn long(&mut self, word: usize, text: &'a [u8]) {
        if matches!(text, [] | [b'-' | b'=', ..]) {
            return self.fault(Fault::BadSyntax, word);
        }
        let equals = text.iter().position(|byte| *byte == b'=');
        let Some(flag) = by_name(self.spec, &text[..equals.unwrap_or(text.len())]) else {
            return self.fault(Fault::UnknownFlag, word);
        };
        match equals {
            Some(equals) => self.take(flag, word, Some((word, 2 + equals + 1))),
            None => self.take_next(flag, word),
        }
    }

    /// A word of one or more short flags: a switch leaves the rest of the word to the next flag, a
    /// flag that takes a value takes the rest of the word, or else the next word.
    fn shorts(&mut self, word: usize) {
        let text = self.args[word].as_bytes();
        let mut at = 1;
        while at < text.len() {
            let Some(flag) = by_short(self.spec, text[at]) else {
                if text[at] != b'h' {
                    return self.fault(Fault::UnknownFlag, word);
                }
                self.parsed.help = true;
                at += 1;
                continue;
            };
            let left = text.len() - at;
            if left > 2 && text[at + 1] == b'=' {
                return self.take(flag, word, Some((word, at + 2)));
            }
            if flag.takes == Takes::Value {
                return match left {
                    1 => self.take_next(flag, word),
                    _ => self.take(flag, word, Some((word, at + 1))),
                };
            }
            self.take(flag, word, None);
            at += 1;
        }
    }

    /// Takes the value from the next word where the flag wants one.
    fn take_next(&mut self, flag: Spec, word: usize) {
        if flag.takes != Takes::Value {
            return self.take(flag, word, None);
        }
        match self.next_word() {
            Some(next) => self.take(flag, word, Some((next, 0))),
            None => self.fault(Fault::NoValue, word),
        }
    }

    fn take(&mut self, flag: Spec, word: usize, at: Option<(usize, usize)>) {
        let text = at.map(|(word, byte)| OsStr::from_bytes(&self.args[word].as_bytes()[byte..]));
        let value = match (flag.takes, text) {
            (Takes::Nothing, None) => Value::Switch(true),
            (Takes::Nothing, Some(text)) => match truth(text.as_bytes()) {
                Some(on) => Value::Switch(on),
                None => return self.fault(Fault::BadSwitch, word),
            },
            (_, text) => Value::Text(text.unwrap_or_default()),
        };
        if flag.long == HELP.long {
            self.parsed.help = value == Value::Switch(true);
            return;
        }
        let place = Place { word, value: at.filter(|_| flag.takes != Takes::Nothing) };
        let in_both_versions = flag.in_both_versions;
        self.parsed.flags.push(Given { name: flag.long, value, place, in_both_versions });
    }
}

/// Go's `strconv.ParseBool`.
fn truth(text: &[u8]) -> Option<bool> {
    match text {
        b"1" | b"t" | b"T" | b"true" | b"TRUE" | b"True" => Some(true),
        b"0" | b"f" | b"F" | b"false" | b"FALSE" | b"False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
#[path = "argv_tests.rs"]
pub(super) mod tests;
