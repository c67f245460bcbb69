//! The checkout's remotes, out of git's own configuration files: what `git remote -v` would print,
//! without ever starting git (that alone would cost more than the rest of a call).
//!
//! Read are the system's file, the user's, the checkout's and the worktree's, with their includes; a
//! condition on remote URLs is judged by those that were read before it.

use std::fs;
use std::path::{Path, PathBuf};

use super::{private, project};
use crate::decide::git_config::{self, Entry, Item};
use crate::decide::git_include;
use crate::decide::repo::Remote;
use crate::settings::{self, Lookup};

/// Past this a configuration file is none that a person or git wrote.
const READ_MAX: u64 = 1 << 20;
/// git's own bound on includes in includes.
const DEPTH_MAX: u32 = 10;

/// The remotes of the checkout around `cwd` (or of `GIT_DIR`); none outside one, and none when git
/// would refuse a file of its configuration.
pub fn read(cwd: &Path, env: &impl Lookup) -> Vec<Remote> {
    let given = path(env, settings::GIT_DIR).map(|dir| cwd.join(dir));
    let Some(git_dir) = given.or_else(|| project::git_dir(cwd)) else { return Vec::new() };
    let mut reader =
        Reader { home: path(env, settings::HOME), git_dir: git_dir.clone(), entries: Vec::new() };
    match reader.everything(&git_dir, env) {
        Some(()) => git_config::remotes(&reader.entries),
        None => Vec::new(),
    }
}

fn path(env: &impl Lookup, name: &str) -> Option<PathBuf> {
    env.nonempty(name).map(PathBuf::from)
}

struct Reader {
    home: Option<PathBuf>,
    git_dir: PathBuf,
    entries: Vec<Entry>,
}

impl Reader {
    fn everything(&mut self, git_dir: &Path, env: &impl Lookup) -> Option<()> {
        if env.var(settings::GIT_CONFIG_NOSYSTEM).is_none_or(|value| value == *"0" || value == *"") {
            self.file(Path::new("/etc/gitconfig"), 0)?;
        }
        match env.var(settings::GIT_CONFIG_GLOBAL) {
            Some(global) => self.file(Path::new(&global), 0)?,
            None => {
                let xdg = path(env, settings::XDG_CONFIG_HOME);
                let xdg = xdg.or_else(|| self.home.as_ref().map(|home| home.join(".config")));
                let own = self.home.as_ref().map(|home| home.join(".gitconfig"));
                for file in [xdg.map(|folder| folder.join("git/config")), own].into_iter().flatten() {
                    self.file(&file, 0)?;
                }
            }
        }
        self.file(&project::common_dir(git_dir).join("config"), 0)?;
        if self.has_worktree_config() {
            self.file(&git_dir.join("config.worktree"), 0)?;
        }
        Some(())
    }

    fn has_worktree_config(&self) -> bool {
        let is_it = |e: &&Entry| e.section == "extensions" && e.key == "worktreeconfig";
        let value =
            self.entries.iter().rev().find(is_it).map(|entry| entry.value.as_deref().unwrap_or("true"));
        value.is_some_and(|value| ["true", "yes", "on", "1"].contains(&value.to_ascii_lowercase().as_str()))
    }

    /// Reads one file and what it includes. A missing file has nothing to say; `None` for one that git
    /// itself refuses.
    fn file(&mut self, file: &Path, depth: u32) -> Option<()> {
        let Some(text) = text(file) else { return Some(()) };
        for item in git_config::parse(&text).ok()? {
            match item {
                Item::Entry(entry) => self.entries.push(entry),
                Item::Include { condition, path } => {
                    if depth < DEPTH_MAX && condition.is_none_or(|it| self.holds(&it, file)) {
                        self.file(&self.resolve(&path, file)?, depth + 1)?;
                    }
                }
            }
        }
        Some(())
    }

    /// A path as git writes it in a configuration file: `~/…`, absolute, or beside that file.
    fn resolve(&self, written: &str, beside: &Path) -> Option<PathBuf> {
        match (written.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => Some(home.join(rest)),
            (Some(_), None) => None,
            (None, _) => Some(beside.parent()?.join(written)),
        }
    }

    fn holds(&self, condition: &str, file: &Path) -> bool {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let real = |path: &Path| text(&fs::canonicalize(path).unwrap_or_else(|_| path.into()));
        let git_dirs = [real(&self.git_dir), text(&self.git_dir)];
        let home = self.home.as_deref().map(text).unwrap_or_default();
        let config_dir = file.parent().map(real).unwrap_or_default();
        let head = text_of(&self.git_dir.join("HEAD"));
        let is_url = |entry: &&Entry| entry.section == "remote" && entry.key == "url";
        let urls = self.entries.iter().filter(is_url).filter_map(|entry| entry.value.as_deref());
        let scene = git_include::Scene {
            git_dirs: &[&git_dirs[0], &git_dirs[1]],
            home: &home,
            config_dir: &config_dir,
            branch: head.trim().strip_prefix("ref: refs/heads/"),
            remote_urls: &urls.collect::<Vec<_>>(),
        };
        git_include::applies(condition, &scene)
    }
}

fn text_of(file: &Path) -> String {
    String::from_utf8_lossy(&text(file).unwrap_or_default()).into_owned()
}

fn text(file: &Path) -> Option<Vec<u8>> {
    private::read_foreign(file, READ_MAX)
}

/// The text of gh's `hosts.yml`: which hosts it knows, and as whom; empty where there is none.
pub fn hosts(env: &impl Lookup) -> String {
    let folder = path(env, settings::GH_CONFIG_DIR)
        .or_else(|| path(env, settings::XDG_CONFIG_HOME).map(|xdg| xdg.join("gh")))
        .or_else(|| path(env, settings::HOME).map(|home| home.join(".config/gh")));
    folder.map(|folder| text_of(&folder.join("hosts.yml"))).unwrap_or_default()
}

/// An environment of a few variables, for tests.
#[cfg(test)]
pub(crate) fn given(pairs: &[(&str, &Path)]) -> impl Lookup + use<> {
    let pairs: Vec<(String, std::ffi::OsString)> =
        pairs.iter().map(|(name, value)| (name.to_string(), value.as_os_str().into())).collect();
    move |name: &str| pairs.iter().find(|(n, _)| n == name).map(|(_, value)| value.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    struct Scene {
        home: PathBuf,
        _folder: tempfile::TempDir,
    }

    impl Scene {
        fn new() -> Scene {
            let folder = tempfile::tempdir().unwrap();
            Scene { home: fs::canonicalize(folder.path()).unwrap(), _folder: folder }
        }

        fn at(&self, name: &str) -> PathBuf {
            self.home.join(name)
        }

        fn write(&self, name: &str, text: &str) {
            fs::create_dir_all(self.at(name).parent().unwrap()).unwrap();
            fs::write(self.at(name), text).unwrap();
        }

        fn git(&self, folder: &str, args: &[&str]) -> String {
            let mut git = Command::new("git");
            git.args(["-c", "user.name=t", "-c", "user.email=t@localhost"]).args(args);
            git.current_dir(self.at(folder)).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
            git.env("HOME", &self.home).env("GIT_CONFIG_NOSYSTEM", "1");
            let done = git.output().unwrap();
            assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
            String::from_utf8(done.stdout).unwrap()
        }

        fn ours(&self, folder: &str) -> String {
            let env = given(&[("HOME", &self.home), ("GIT_CONFIG_NOSYSTEM", Path::new("1"))]);
            read(&self.at(folder), &env)
                .iter()
                .map(|r| {
                    let push = r.push_url.as_ref().unwrap_or(&r.url);
                    format!("{0}\t{1} (fetch)\n{0}\t{push} (push)\n", r.name, r.url)
                })
                .collect()
        }
    }

    #[test]
    fn remotes_are_those_that_git_names() {
        let scene = Scene::new();
        scene.write(
            ".gitconfig",
            "[url \"https://github.com/\"]\n insteadOf = gh:\n[include]\n path = more\n",
        );
        scene.write(
            "more",
            "[includeIf \"gitdir:~/work/\"]\n path = ~/at-work\n[includeIf \"gitdir:b/\"]\n path = at-b\n",
        );
        scene.write("at-work", "[url \"ssh://git@work.example/\"]\n insteadOf = w:\n");
        scene.write("at-b", "[url \"https://b.example/\"]\n insteadOf = w:\n");
        for name in ["work/a", "b", "c/d"] {
            fs::create_dir_all(scene.at(name)).unwrap();
            scene.git(name, &["init", "-q"]);
            scene.git(name, &["remote", "add", "origin", "gh:acme/widget"]);
            scene.git(name, &["remote", "add", "other", "w:acme/other"]);
            assert_eq!(scene.ours(name), scene.git(name, &["remote", "-v"]), "{name}");
        }
        assert!(scene.ours("work/a").contains("work.example") && scene.ours("b").contains("b.example"));
        assert!(scene.ours("c/d").contains("w:acme"));
        scene.git("b", &["commit", "-q", "--allow-empty", "-m", "x"]);
        scene.git("b", &["worktree", "add", "-q", "../linked"]);
        scene.git("b", &["config", "extensions.worktreeConfig", "true"]);
        scene.git("linked", &["config", "--worktree", "remote.mine.url", "gh:me/widget"]);
        assert_eq!(scene.ours("linked"), scene.git("linked", &["remote", "-v"]));
        assert!(scene.ours("linked").contains("github.com/me/widget"));
        assert_eq!(scene.ours("b"), scene.git("b", &["remote", "-v"]));
        let env = given(&[("HOME", &scene.home), ("GIT_DIR", &scene.at("b/.git"))]);
        assert_eq!(read(&scene.at("c"), &env).len(), 2);
        assert_eq!(read(&scene.home, &given(&[])), Vec::new());
    }

    #[test]
    fn a_configuration_that_git_refuses_has_no_remotes() {
        let scene = Scene::new();
        fs::create_dir_all(scene.at("p")).unwrap();
        scene.git("p", &["init", "-q"]);
        scene.git("p", &["remote", "add", "origin", "https://github.com/acme/widget"]);
        assert_eq!(scene.ours("p").lines().count(), 2);
        let config = fs::read_to_string(scene.at("p/.git/config")).unwrap();
        scene.write("p/.git/config", &(config + "[remote \"x\"\n"));
        assert_eq!(scene.ours("p"), "");
    }
}
