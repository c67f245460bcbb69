//! What is checked about an entry before any call is made for it (#3635): it is a file in the working
//! tree, and it will be sent with the user's token.

use super::entry::{Entry, SCHEMA, handle, id};
use super::queued::{Queued, body_file, repos_named, reread};
use super::repo::Repo;
use super::write::{Action, WriteKind, is_blank};

/// What is known about an entry besides what it says of itself.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The number in its file's name.
    pub seq: u32,
    /// Whether this machine's seal is under it.
    pub is_sealed: bool,
    /// Whether a person has said that it may go without a seal.
    pub is_accepted: bool,
    /// The path, below the queue folder, of a file of it that git tracks.
    pub tracked: Option<&'a str>,
    /// The repository that this checkout's origin names.
    pub origin: Option<&'a Repo>,
    /// The one file its body may lie in.
    pub own_body_file: &'a str,
    /// The body that lies there, or why it cannot be used.
    pub body: Result<&'a [u8], &'a str>,
    /// The key that this body gives it.
    pub key: &'a str,
}

/// An entry that passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// What it does.
    pub queued: Queued,
    /// What it does, as its command line says.
    pub action: Action,
    /// Its repository.
    pub repo: Repo,
}

/// Checks an entry.
///
/// # Errors
/// Why it is refused, as a clause about it.
pub fn check(entry: &Entry, facts: &Facts) -> Result<Passed, String> {
    if let Some(file) = facts.tracked {
        return Err(format!(
            "git tracks {file}: it came with a commit, not from a failed write on this machine"
        ));
    }
    names_agree(entry, facts.seq)?;
    let (queued, action) = command(entry)?;
    let repo = repo(entry, facts)?;
    body(entry, &action, facts)?;
    if !facts.is_sealed && !facts.is_accepted {
        return Err(format!(
            "it has no valid seal of this machine for this folder; if it is yours, read it with \
             `forge-queue show {seq}` and let it through with `forge-queue replay --apply --accept {seq}`",
            seq = facts.seq
        ));
    }
    Ok(Passed { queued, action, repo })
}

fn names_agree(entry: &Entry, seq: u32) -> Result<(), String> {
    let wanted = (entry.kind == WriteKind::Create).then(|| handle(seq));
    if entry.schema != SCHEMA {
        return Err(format!("it is no {SCHEMA} entry"));
    }
    if entry.seq != seq || entry.id != id(seq) || entry.handle != wanted {
        return Err("the number it gives itself is not the one of its file".into());
    }
    Ok(())
}

fn command(entry: &Entry) -> Result<(Queued, Action), String> {
    let what = "its command is not a queueable issue mutation (issue create, comment, edit, close or reopen)";
    let strange = "its command is not written the way the queue writes one";
    let (queued, action) = reread(&entry.argv).ok_or(what)?;
    if queued.kind != entry.kind || queued.target != entry.target {
        return Err("its command is not the kind and the target it records".into());
    }
    // What would be sent is rebuilt from what was understood; a line that says more is not ours.
    let mut kept = entry.argv.clone();
    if let Some(word) = queued.body_word {
        match kept.get_mut(word) {
            Some(path) => *path = "-".into(),
            None => return Err(strange.into()),
        }
    }
    if kept != queued.argv {
        return Err(strange.into());
    }
    Ok((queued, action))
}

fn repo(entry: &Entry, facts: &Facts) -> Result<Repo, String> {
    let origin = facts.origin.ok_or("this checkout has no origin remote that names a repository")?;
    let recorded = Repo::parse(&entry.repo, &origin.host).ok_or("the repository it records is none")?;
    if recorded != *origin {
        return Err(format!("it is for {recorded}, not for this checkout's origin ({origin})"));
    }
    for named in repos_named(&entry.argv, &origin.host) {
        if named.as_ref() != Some(origin) {
            return Err("its command names another repository than this checkout's origin".into());
        }
    }
    // The origin's own spelling is what gh gets.
    Ok(origin.clone())
}

fn body(entry: &Entry, action: &Action, facts: &Facts) -> Result<(), String> {
    let outside = "its body file is outside its own folder";
    let named = match action.body() {
        None if entry.body_file.is_some() => {
            return Err("it names a body file that its command does not use".into());
        }
        None => {
            return match entry.key == facts.key || facts.is_accepted {
                true => Ok(()),
                false => Err("its text is not the one it was queued with".into()),
            };
        }
        Some(_) => body_file(action).ok_or("its body is not in a file of its own")?,
    };
    if named != facts.own_body_file || entry.body_file.as_deref() != Some(facts.own_body_file) {
        return Err(outside.into());
    }
    facts.body.map_err(|why| format!("its body file {why}"))?;
    if entry.key != facts.key && !facts.is_accepted {
        return Err("its text is not the one it was queued with".into());
    }
    Ok(())
}

/// Whether it is an edit that would wipe an issue's body (#3186).
pub fn wipes_a_body(action: &Action, body: &[u8]) -> bool {
    matches!(action, Action::Edit { body: Some(_), .. }) && is_blank(body)
}
