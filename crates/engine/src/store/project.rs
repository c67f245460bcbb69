//! Which project a working directory belongs to, read from `.git` without ever starting git.

use std::fs;
use std::path::{Path, PathBuf};

use super::private;

/// Past this a pointer file is none that git wrote.
const POINTER_MAX: u64 = 16 << 10;

/// The git top level above `cwd`; inside a linked worktree the main worktree's, because a queue must
/// outlive a removed worktree. `None` outside a checkout.
pub fn root(cwd: &Path) -> Option<PathBuf> {
    cwd.ancestors().find_map(|folder| {
        let found = fs::metadata(folder.join(".git")).ok()?;
        if found.is_dir() {
            return Some(folder.to_path_buf());
        }
        Some(main_worktree(folder).unwrap_or_else(|| folder.to_path_buf()))
    })
}

/// `folder/.git` is a file: `gitdir: PATH`. A linked worktree's folder has a `commondir` that leads to
/// the main worktree's `.git`; a submodule's has none and is a project of its own.
fn main_worktree(folder: &Path) -> Option<PathBuf> {
    let git_dir = pointed_at(folder)?;
    let common = text(&git_dir.join("commondir"))?;
    let common = fs::canonicalize(git_dir.join(common.trim())).ok()?;
    // A bare repository's worktrees have no main worktree to go to.
    let is_dot_git = common.file_name().is_some_and(|name| name == ".git");
    if is_dot_git { common.parent().map(Path::to_path_buf) } else { None }
}

/// The git folder of the checkout around `cwd`: `.git`, or what the file `.git` of a linked worktree
/// or a submodule points at.
pub fn git_dir(cwd: &Path) -> Option<PathBuf> {
    cwd.ancestors().find_map(|folder| {
        let dot_git = folder.join(".git");
        match fs::metadata(&dot_git).ok()?.is_dir() {
            true => Some(dot_git),
            false => pointed_at(folder),
        }
    })
}

/// The git folder that a linked worktree's shares with its main worktree; otherwise itself.
pub fn common_dir(git_dir: &Path) -> PathBuf {
    match text(&git_dir.join("commondir")) {
        Some(common) => git_dir.join(common.trim()),
        None => git_dir.to_path_buf(),
    }
}

fn pointed_at(folder: &Path) -> Option<PathBuf> {
    let pointer = text(&folder.join(".git"))?;
    Some(folder.join(pointer.strip_prefix("gitdir:")?.trim()))
}

fn text(path: &Path) -> Option<String> {
    String::from_utf8(private::read_foreign(path, POINTER_MAX)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn git(folder: &Path, args: &[&str]) {
        let identity =
            ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "protocol.file.allow=always"];
        let done = Command::new("git").args(identity).args(args).current_dir(folder).output().unwrap();
        assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    }

    #[test]
    fn a_checkout_a_worktree_and_a_submodule_each_name_their_project() {
        let home = tempfile::tempdir().unwrap();
        let home = fs::canonicalize(home.path()).unwrap();
        let main = home.join("main");
        fs::create_dir_all(main.join("deep/er")).unwrap();
        git(&main, &["init", "-q"]);
        git(&main, &["commit", "-q", "--allow-empty", "-m", "x"]);
        git(&main, &["worktree", "add", "-q", "../linked"]);
        git(&home, &["clone", "-q", "main", "other"]);
        git(&main, &["submodule", "--quiet", "add", "../other", "sub"]);
        assert_eq!(root(&main.join("deep/er")), Some(main.clone()));
        assert_eq!(root(&home.join("linked")), Some(main.clone()));
        assert_eq!(root(&main.join("sub")), Some(main.join("sub")));
        git(&home, &["clone", "-q", "--bare", "main", "bare.git"]);
        git(&home.join("bare.git"), &["worktree", "add", "-q", "../of-bare"]);
        assert_eq!(root(&home.join("of-bare")), Some(home.join("of-bare")));
        assert_eq!(root(Path::new("/")), None);
    }
}
