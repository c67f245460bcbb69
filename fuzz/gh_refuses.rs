//! Whether gh's own table of flags refuses a command line: an oracle apart from the engine's grammar, written
//! from `tests/golden/gh-flags.json` (what `gh … --help` of two versions prints) and pflag's rules.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::sync::LazyLock;

use serde_json::Value;

/// Long name → whether it takes a value, and short name → long name.
#[derive(Default)]
struct Flags {
    takes_value: HashMap<String, bool>,
    shorts: HashMap<u8, String>,
}

static WRITES: LazyLock<HashMap<&str, Flags>> = LazyLock::new(|| {
    let table: Value = serde_json::from_str(include_str!("../tests/golden/gh-flags.json")).unwrap();
    let names = ["create", "comment", "edit", "close", "reopen"];
    names.into_iter().map(|name| (name, flags(&table, name))).collect()
});

/// The union of what the versions know: what either takes, somebody's gh takes.
fn flags(table: &Value, name: &str) -> Flags {
    let mut known = Flags::default();
    for version in table.as_object().unwrap().values() {
        let command = &version[format!("issue {name}")];
        for (long, flag) in
            ["flags", "inherited"].iter().filter_map(|kind| command[kind].as_object()).flatten()
        {
            known.takes_value.insert(long.clone(), !flag["value"].is_null());
            if let Some(short) = flag["short"].as_str() {
                known.shorts.insert(short.as_bytes()[0], long.clone());
            }
        }
    }
    known
}

/// Why gh would refuse `args`; `None` where it would not, or where this oracle cannot tell (the command is not
/// written as `issue <verb> …`).
pub fn why(args: &[OsString]) -> Option<String> {
    let [issue, verb, rest @ ..] = args else { return None };
    let known = WRITES.get(verb.to_str()?).filter(|_| issue == "issue")?;
    let mut operands = 0;
    let mut words = rest.iter().map(|word| word.as_bytes());
    while let Some(word) = words.next() {
        match word {
            b"--" => {
                operands += words.by_ref().count();
            }
            [b'-', b'-', long @ ..] => {
                let (name, value) = match long.iter().position(|b| *b == b'=') {
                    Some(at) => (&long[..at], Some(&long[at + 1..])),
                    None => (long, None),
                };
                let name = std::str::from_utf8(name).ok().unwrap_or("\0");
                match known.takes_value.get(name) {
                    None => return Some(format!("unknown flag: --{name}")),
                    Some(true) if value.is_none() && words.next().is_none() => {
                        return Some("flag needs an argument".into());
                    }
                    Some(false) if value.is_some_and(|value| !is_truth(value)) => {
                        return Some("invalid argument".into());
                    }
                    Some(_) => {}
                }
            }
            [b'-', shorts @ ..] if !shorts.is_empty() => {
                if let Err(refusal) = read_shorts(known, shorts, &mut words) {
                    return Some(refusal);
                }
            }
            _ => operands += 1,
        }
    }
    let wanted = if verb == "create" { 0 } else { 1 };
    // An edit takes several issues in newer versions.
    (operands != wanted && !(verb == "edit" && operands > 1))
        .then(|| format!("accepts {wanted} arg(s), received {operands}"))
}

fn read_shorts<'a>(
    known: &Flags,
    mut shorts: &[u8],
    words: &mut impl Iterator<Item = &'a [u8]>,
) -> Result<(), String> {
    while let Some((first, rest)) = shorts.split_first() {
        if *first == b'h' && !known.shorts.contains_key(&b'h') {
            return Ok(());
        }
        let Some(long) = known.shorts.get(first) else {
            return Err(format!("unknown shorthand flag: {first}"));
        };
        if known.takes_value[long] {
            return match rest.is_empty() && words.next().is_none() {
                true => Err("flag needs an argument".into()),
                false => Ok(()),
            };
        }
        if let [b'=', value @ ..] = rest {
            return if is_truth(value) { Ok(()) } else { Err("invalid argument".into()) };
        }
        shorts = rest;
    }
    Ok(())
}

/// What Go's `strconv.ParseBool` takes.
fn is_truth(value: &[u8]) -> bool {
    const TRUTHS: [&[u8]; 12] =
        [b"1", b"t", b"T", b"true", b"TRUE", b"True", b"0", b"f", b"F", b"false", b"FALSE", b"False"];
    TRUTHS.contains(&value)
}
