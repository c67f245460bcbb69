//! What a stored answer answers: the question's identity, and as whom it was asked (#1749).
//!
//! The key is the exact argv, the repository gh would use and the host (`CONTRACT` section 3), and the
//! few variables that change the bytes gh prints off a terminal (colour, width, time zone): an answer
//! that was shaped for somebody else would not be the bytes the caller would have got.
//!
//! gh's own version is not part of it: an upgrade in the middle of an outage must not make everything
//! that is known unknown, and what it would change is the layout of text for people.
//!
//! The account is beside the key, not in it: see [`Account`].

use std::ffi::{OsStr, OsString};
use std::hash::Hasher;

use super::hosts::Host;

/// A question that was asked of the forge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(Vec<u8>);

/// What a key is made of, as it can be shown to people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The host.
    pub host: String,
    /// `host/owner/name`; empty for a search, which has none.
    pub repo: String,
    /// The variables that shape the answer, as `NAME=value`.
    pub shape: Vec<String>,
    /// gh's argv.
    pub args: Vec<String>,
}

impl Key {
    /// The key of one call. `repo` is `host/owner/name` in lower case; `shape` the variables that are
    /// set, in a fixed order.
    pub fn new(args: &[OsString], repo: Option<&str>, host: &str, shape: &[(&str, OsString)]) -> Key {
        let mut bytes = Vec::with_capacity(256);
        field(&mut bytes, host.as_bytes());
        field(&mut bytes, repo.unwrap_or_default().as_bytes());
        bytes.extend_from_slice(&(shape.len() as u32).to_le_bytes());
        for (name, value) in shape {
            field(&mut bytes, &[name.as_bytes(), b"=", value.as_encoded_bytes()].concat());
        }
        args.iter().for_each(|word| field(&mut bytes, word.as_encoded_bytes()));
        Key(bytes)
    }

    /// Exactly this question's bytes: two keys are the same question only if they are equal.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// A name for the question, 32 hexadecimal digits.
    pub fn name(&self) -> String {
        let half = |seed: u64| {
            let mut hasher = sip(seed, !seed);
            hasher.write(&self.0);
            hasher.finish()
        };
        format!("{:016x}{:016x}", half(1), half(2))
    }

    /// What these key bytes say; `None` when they are none of a key.
    pub fn show(bytes: &[u8]) -> Option<Shown> {
        let mut rest = bytes;
        let (host, repo) = (text(&mut rest)?, text(&mut rest)?);
        let shape = (0..number(&mut rest)?).map(|_| text(&mut rest)).collect::<Option<_>>()?;
        let mut args = Vec::new();
        while !rest.is_empty() {
            args.push(text(&mut rest)?);
        }
        Some(Shown { host, repo, shape, args })
    }
}

fn field(bytes: &mut Vec<u8>, value: &[u8]) {
    bytes.extend_from_slice(&(value.len() as u32).to_le_bytes());
    bytes.extend_from_slice(value);
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    let (digits, more) = rest.split_first_chunk()?;
    *rest = more;
    Some(u32::from_le_bytes(*digits))
}

fn text(rest: &mut &[u8]) -> Option<String> {
    let length = number(rest)? as usize;
    let (value, more) = rest.split_at_checked(length)?;
    *rest = more;
    Some(String::from_utf8_lossy(value).into_owned())
}

/// As whom a question was asked, as a fingerprint of 32 bits: enough to tell two accounts of one person
/// apart, and far too little to say anything about a token.
///
/// It is compared when an answer is served and is not part of the key, because an answer outlives the
/// credentials it was asked with: a call that has none at all, or that the forge does not accept (401),
/// is nobody's, and gets what was known last. A call of another account does not: `@me` would be
/// somebody else, and what one account sees another may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account(pub u32);

impl Account {
    /// Nobody in particular.
    pub const UNKNOWN: Account = Account(0);

    /// As whom gh asks `host`: the first token that is set, else the active account in `hosts.yml`.
    pub fn of(host: &str, tokens: &[Option<OsString>], hosts: &[Host]) -> Account {
        let is_set = |token: &&OsString| !token.is_empty();
        if let Some(token) = tokens.iter().flatten().find(is_set) {
            return Account::fingerprint(b"token", token);
        }
        let known = hosts.iter().find(|known| known.name == host);
        match known.map(|known| (&known.user, &known.token)) {
            Some((Some(user), _)) => Account::fingerprint(b"user", OsStr::new(user)),
            Some((None, Some(token))) => Account::fingerprint(b"token", OsStr::new(token)),
            _ => Account::UNKNOWN,
        }
    }

    fn fingerprint(kind: &[u8], value: &OsStr) -> Account {
        let mut hasher = sip(3, 4);
        hasher.write(kind);
        hasher.write(value.as_encoded_bytes());
        Account((hasher.finish() as u32).max(1))
    }
}

/// SipHash-2-4. It is deprecated in favour of one whose results may change between releases of Rust,
/// which what is written to disk must not.
#[allow(deprecated)]
pub fn sip(k0: u64, k1: u64) -> impl Hasher {
    std::hash::SipHasher::new_with_keys(k0, k1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    fn key(line: &str, repo: &str, host: &str, shape: &[(&str, &str)]) -> Key {
        let shape: Vec<_> = shape.iter().map(|(name, value)| (*name, OsString::from(value))).collect();
        Key::new(&words(line), Some(repo), host, &shape)
    }

    #[test]
    fn every_part_makes_another_key() {
        let keys = [
            key("issue list", "github.com/o/r", "github.com", &[]),
            key("issue ls", "github.com/o/r", "github.com", &[]),
            key("issue list -L 5", "github.com/o/r", "github.com", &[]),
            key("issue list -L5", "github.com/o/r", "github.com", &[]),
            key("issue list", "github.com/o/other", "github.com", &[]),
            key("issue list", "github.com/o/r", "ghe.example", &[]),
            key("issue list", "github.com/o/r", "github.com", &[("TZ", "UTC")]),
            key("issue list", "github.com/o/r", "github.com", &[("TZ", "CET")]),
            key("issue list", "", "github.com/o/r", &[]),
        ];
        for (n, one) in keys.iter().enumerate() {
            assert_eq!(one.name().len(), 32);
            for other in &keys[n + 1..] {
                assert!(one != other && one.name() != other.name());
            }
        }
        // Words that only differ in where one ends and the next begins.
        let split = |a: &str, b: &str| Key::new(&[a.into(), b.into()], None, "h", &[]);
        assert_ne!(split("ab", "c"), split("a", "bc"));
    }

    #[test]
    fn a_name_never_changes_between_versions() {
        assert_eq!(
            key("issue list", "github.com/o/r", "github.com", &[]).name(),
            "680be5361514d64520499761e28b7fb4"
        );
    }

    #[test]
    fn a_key_can_be_shown_and_noise_cannot() {
        let key = key("issue view 5", "github.com/o/r", "github.com", &[("TZ", "UTC")]);
        let shown = Key::show(key.bytes()).unwrap();
        assert_eq!((shown.host.as_str(), shown.repo.as_str()), ("github.com", "github.com/o/r"));
        assert_eq!(
            (shown.shape, shown.args),
            (vec!["TZ=UTC".into()], ["issue", "view", "5"].map(String::from).to_vec())
        );
        for cut in 0..key.bytes().len() {
            // A cut between two words is a shorter argv; any other is noise. None of them panics.
            let _ = Key::show(&key.bytes()[..cut]);
        }
        assert_eq!(Key::show(&[0xff; 9]), None);
    }

    #[test]
    fn an_account_is_its_token_or_its_name_and_never_readable() {
        let mona = Host { name: "github.com".into(), user: Some("mona".into()), token: Some("t".into()) };
        let (token, other) = (Some(OsString::from("t")), Some(OsString::from("u")));
        let of = |tokens: &[Option<OsString>]| Account::of("github.com", tokens, std::slice::from_ref(&mona));
        assert_eq!(of(&[None, token.clone()]), of(&[Some("".into()), token.clone()]));
        assert_ne!(of(std::slice::from_ref(&token)), of(std::slice::from_ref(&other)));
        assert_ne!(of(&[token]), of(&[]));
        assert_eq!(
            of(&[]),
            Account::of("github.com", &[], &[Host { token: Some("new".into()), ..mona.clone() }])
        );
        assert_eq!(Account::of("ghe.example", &[], &[mona]), Account::UNKNOWN);
    }
}
