//! Whether an `includeIf` of git's configuration applies: a work identity's `insteadOf` often stands
//! behind one.

/// What a condition is judged by.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scene<'a> {
    /// The git folder (`/home/me/work/r/.git`; a linked worktree's own), absolute. git tries it with
    /// symlinks followed, then as it was named.
    pub git_dirs: &'a [&'a str],
    /// The user's home folder, for `~/`.
    pub home: &'a str,
    /// The folder of the file that holds the condition, symlinks followed, for `./`.
    pub config_dir: &'a str,
    /// The branch that is checked out (`main`); `None` where none is.
    pub branch: Option<&'a str>,
    /// Every remote URL in the files, before `insteadOf`.
    pub remote_urls: &'a [&'a str],
}

/// Whether the condition holds. One that this version does not know does not, as in git.
pub fn applies(condition: &str, scene: &Scene<'_>) -> bool {
    let Some((keyword, pattern)) = condition.split_once(':') else { return false };
    match keyword {
        "gitdir" => in_folder(pattern, scene, false),
        "gitdir/i" => in_folder(pattern, scene, true),
        "onbranch" => scene.branch.is_some_and(|branch| wild(&with_tail(pattern), branch)),
        "hasconfig" => pattern
            .strip_prefix("remote.*.url:")
            .is_some_and(|glob| scene.remote_urls.iter().any(|url| wild(glob, url))),
        _ => false,
    }
}

fn in_folder(pattern: &str, scene: &Scene<'_>, any_case: bool) -> bool {
    let fold = |text: &str| if any_case { text.to_ascii_lowercase() } else { text.to_string() };
    // A pattern beside the file: the file's folder is literal, the rest is the pattern.
    let (folder, pattern) = match (pattern.strip_prefix("./"), pattern.strip_prefix("~/")) {
        (Some(rest), _) => (format!("{}/", scene.config_dir.trim_end_matches('/')), rest.to_string()),
        (_, Some(rest)) => (String::new(), format!("{}/{rest}", scene.home.trim_end_matches('/'))),
        _ if pattern.starts_with('/') => (String::new(), pattern.to_string()),
        _ => (String::new(), format!("**/{pattern}")),
    };
    let (folder, pattern) = (fold(&folder), fold(&with_tail(&pattern)));
    let holds = |dir: &&str| fold(dir).strip_prefix(&folder).is_some_and(|rest| wild(&pattern, rest));
    scene.git_dirs.iter().any(holds)
}

/// A pattern that ends in `/` means everything below.
fn with_tail(pattern: &str) -> String {
    let tail = if pattern.ends_with('/') { "**" } else { "" };
    format!("{pattern}{tail}")
}

/// git's `wildmatch` over paths: `*`, `?` and `[…]` stop at a slash, `**` between slashes does not.
fn wild(pattern: &str, text: &str) -> bool {
    matches_from(pattern.as_bytes(), 0, text.as_bytes())
}

fn matches_from(pattern: &[u8], mut at: usize, mut text: &[u8]) -> bool {
    while let Some(&byte) = pattern.get(at) {
        if byte == b'*' {
            return star(pattern, at, text);
        }
        let Some((&first, rest)) = text.split_first() else { return false };
        match byte {
            b'?' if first != b'/' => at += 1,
            b'[' => match class(&pattern[at..], first) {
                Some(length) => at += length,
                None => return false,
            },
            b'\\' if pattern.get(at + 1) == Some(&first) => at += 2,
            literal if literal == first && literal != b'?' && literal != b'\\' => at += 1,
            _ => return false,
        }
        text = rest;
    }
    text.is_empty()
}

fn star(pattern: &[u8], at: usize, text: &[u8]) -> bool {
    let stars = pattern[at..].iter().take_while(|byte| **byte == b'*').count();
    let next = at + stars;
    let starts_part = at == 0 || pattern[at - 1] == b'/';
    let crosses = stars > 1 && starts_part && matches!(pattern.get(next), None | Some(b'/'));
    // `**/` also stands for no folder at all.
    if crosses && pattern.get(next) == Some(&b'/') && matches_from(pattern, next + 1, text) {
        return true;
    }
    let reach = match crosses {
        true => text.len(),
        false => text.iter().position(|byte| *byte == b'/').unwrap_or(text.len()),
    };
    (0..=reach).any(|end| matches_from(pattern, next, &text[end..]))
}

/// The length of the `[…]` at the start of `pattern` if `byte` is in it; a slash never is.
fn class(pattern: &[u8], byte: u8) -> Option<usize> {
    let negated = matches!(pattern.get(1), Some(b'!' | b'^'));
    let start = 1 + usize::from(negated);
    let mut at = start;
    let mut found = false;
    loop {
        let low = *pattern.get(at)?;
        if low == b']' && at > start {
            break;
        }
        match (pattern.get(at + 1), pattern.get(at + 2)) {
            (Some(b'-'), Some(&high)) if high != b']' => {
                found |= (low..=high).contains(&byte);
                at += 3;
            }
            _ => {
                found |= low == byte;
                at += 1;
            }
        }
    }
    (found != negated && byte != b'/').then_some(at + 1)
}
