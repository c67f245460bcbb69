//! The reader of git's configuration, held to git itself on written and on random files.
#![allow(clippy::disallowed_methods)] // it writes files and runs git

use std::fs;
use std::path::Path;
use std::process::Command;

use engine::decide::git_config::{Entry, Item, parse, remotes};
use engine::decide::git_include::{Scene, applies};

fn git(folder: &Path, args: &[&str]) -> Option<Vec<u8>> {
    let out = Command::new("git")
        .args(args)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .expect("git runs");
    out.status.success().then_some(out.stdout)
}

/// `git config --list -z`: what git reads in a file; `None` where it refuses the file.
fn git_list(folder: &Path, text: &[u8]) -> Option<String> {
    fs::write(folder.join("f"), text).expect("written");
    git(folder, &["config", "-f", "f", "--no-includes", "--list", "-z"])
        .map(|out| String::from_utf8_lossy(&out).into_owned())
}

fn our_list(text: &[u8]) -> Option<String> {
    let mut out = String::new();
    for item in parse(text).ok()? {
        let entry = match item {
            Item::Entry(entry) => entry,
            Item::Include { condition, path } => Entry {
                section: if condition.is_some() { "includeif" } else { "include" }.to_string(),
                subsection: condition,
                key: "path".to_string(),
                value: Some(path),
            },
        };
        out += &entry.section;
        if let Some(subsection) = entry.subsection {
            out += &format!(".{subsection}");
        }
        // git writes no dot in front of a key that stands above the first header.
        out += if out.is_empty() || out.ends_with('\0') { "" } else { "." };
        out += &entry.key;
        if let Some(value) = entry.value {
            out += &format!("\n{value}");
        }
        out.push('\0');
    }
    Some(out)
}

const WRITTEN: &[&str] = &[
    "",
    "[core]\n\tbare = false\n",
    "[Core] Bare=false ; why\n# note\n",
    "[a]\nk\n",
    "[a]\nk",
    "[a]\nk =\n",
    "[a]\nk = \"\"\n",
    "[a]\nk = v # c\nl = v;c\nm = \"v # c\" ; d\n",
    "[a]\nk = one \\\n  two\n",
    "[a]\nk = \"one \\\n  two\"\n",
    "[a]\nk = one \t two  \n",
    "[a]\nk = \"  padded  \"  \n",
    "[a]\nk = a\"b c\"d\n",
    "[a]\nk = \\t\\n\\\\\\\"x\n",
    "[a]\nk = \\q\n",
    "[a]\nk = \"open\n",
    "[a \"Sub Sec\"]\nk = v\n",
    "[a \"q\\\"\\\\x\"]\nk = v\n",
    "[a.Sub]\nk = v\n",
    "[a.sub \"More\"]\nk = v\n",
    "[a\t\"s\"]\nk=v\n",
    "[a \"s\" ]\nk=v\n",
    "[a s]\nk=v\n",
    "[a\nk=v\n",
    "[]\nk=v\n",
    "[ \"x\"]\nk=v\n",
    "[.]\nk=v\n[a.]\nk=v\n[.b]\nk=v\n[. \"x\"]\nk=1\n[a..b]\nk=1",
    "[.\"x\"]\nk=v\n",
    "k = v\n",
    "[a]\n1k = v\n",
    "[a]\nk_x = v\n",
    "[a]\nk-X = v\n",
    "[a]\nk ; c\n",
    "[a] k = v\n[b] [c] k = w\n",
    "[a]\r\nk = v\r\n",
    "[a]\r\nk = v \\\r\n  w\r\n",
    "[a]\nk = v\r",
    "\u{feff}[a]\nk = v\n",
    "[a]\nk = é\u{1f600}\n",
    "[include]\npath = ~/x\n[includeIf \"gitdir:~/w/\"]\npath = y\n",
];

#[test]
fn every_written_file_reads_as_git_reads_it() {
    let folder = tempfile::tempdir().expect("a folder");
    for text in WRITTEN {
        assert_eq!(our_list(text.as_bytes()), git_list(folder.path(), text.as_bytes()), "{text:?}");
    }
}

/// A small generator with a seed, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % end
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

#[test]
fn every_random_file_reads_as_git_reads_it() {
    const PARTS: &[&str] = &[
        "[a]\n",
        "[b \"x\"]\n",
        "[b.y]\n",
        "k = ",
        "k",
        "v",
        " ",
        "\t",
        "\n",
        "\n",
        "\"",
        "\\",
        "\\\n",
        "\\t",
        "#",
        ";",
        "=",
        "\r\n",
        "\r",
        "[",
        "]",
    ];
    let folder = tempfile::tempdir().expect("a folder");
    let mut random = Random(1750);
    let mut accepted = 0;
    for _ in 0..400 {
        let mut text = String::from("[a]\n");
        for _ in 0..random.below(14) {
            text += random.pick(PARTS);
        }
        let expected = git_list(folder.path(), text.as_bytes());
        accepted += usize::from(expected.is_some());
        assert_eq!(our_list(text.as_bytes()), expected, "{text:?}");
    }
    assert!((50..350).contains(&accepted), "{accepted}");
}

/// `git remote -v` as gh reads it: the first fetch line and the last push line of each remote.
fn git_remotes(folder: &Path) -> Vec<(String, String, String)> {
    let out = git(folder, &["remote", "-v"]).expect("git remote -v");
    let mut found: Vec<(String, String, String)> = Vec::new();
    for line in String::from_utf8(out).expect("text").lines() {
        let Some((name, rest)) = line.split_once('\t') else { continue };
        if let Some(url) = rest.strip_suffix(" (push)") {
            if found.last().is_none_or(|last| last.0 != name) {
                found.push((name.to_string(), String::new(), String::new()));
            }
            found.last_mut().expect("just made").2 = url.to_string();
        } else if let Some((url, _)) = rest.split_once(" (fetch)") {
            found.push((name.to_string(), url.to_string(), String::new()));
        }
    }
    found
}

fn our_remotes(text: &str) -> Vec<(String, String, String)> {
    let entries: Vec<Entry> = parse(text.as_bytes())
        .expect("a good file")
        .into_iter()
        .filter_map(|item| match item {
            Item::Entry(entry) => Some(entry),
            Item::Include { .. } => None,
        })
        .collect();
    remotes(&entries)
        .into_iter()
        .map(|remote| {
            let push_url = remote.push_url.unwrap_or_else(|| remote.url.clone());
            (remote.name, remote.url, push_url)
        })
        .collect()
}

#[test]
fn the_remotes_are_those_that_git_shows() {
    let folder = tempfile::tempdir().expect("a folder");
    git(folder.path(), &["init", "-q"]).expect("git init");
    let mut random = Random(3635);
    for _ in 0..150 {
        let mut text = String::from("[core]\n\trepositoryformatversion = 0\n\tbare = false\n");
        for _ in 0..1 + random.below(8) {
            let url =
                random.pick(&["gh:o/r", "https://github.com/o/r.git", "git@github.com:o/r", "work:o/r"]);
            text += &match random.below(5) {
                0 | 1 => {
                    format!("[remote \"{}\"]\nurl = {url}\n", random.pick(&["origin", "Up stream", "a.b"]))
                }
                2 => format!("[remote \"{}\"]\npushurl = {url}\n", random.pick(&["origin", "a.b"])),
                3 => format!(
                    "[url \"{}\"]\ninsteadOf = {}\n",
                    random.pick(&["https://github.com/", "ssh://git@ghe.example.com/"]),
                    random.pick(&["gh:", "work:", "git@github.com:", "https://"])
                ),
                _ => format!(
                    "[url \"{}\"]\npushInsteadOf = {}\n",
                    random.pick(&["git@github.com:", "ssh://git@push.example.com/"]),
                    random.pick(&["https://github.com/", "gh:", "https://"])
                ),
            };
        }
        fs::write(folder.path().join(".git/config"), &text).expect("written");
        assert_eq!(our_remotes(&text), git_remotes(folder.path()), "{text}");
    }
}

/// Whether git, in the repository at `folder`, includes under this condition.
fn git_includes(folder: &Path, home: &Path, condition: &str) -> bool {
    let config = "[core]\nrepositoryformatversion = 0\n[remote \"origin\"]\nurl = git@github.com:o/r.git\n";
    let quoted = condition.replace('\\', "\\\\").replace('"', "\\\"");
    let text = format!("{config}[includeIf \"{quoted}\"]\npath = extra\n");
    fs::write(folder.join(".git/config"), text).expect("written");
    fs::write(folder.join(".git/extra"), "[probe]\nhit = 1\n").expect("written");
    let out = Command::new("git")
        .args(["config", "--get", "probe.hit"])
        .current_dir(folder)
        .env("HOME", home)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .expect("git runs");
    out.status.success()
}

#[test]
fn an_include_applies_where_git_says_so() {
    let home = tempfile::tempdir().expect("a folder");
    let home = fs::canonicalize(home.path()).expect("its real path");
    let folder = home.join("Work/client/repo-1");
    fs::create_dir_all(&folder).expect("made");
    git(&folder, &["init", "-q", "-b", "feature/x"]).expect("git init");
    let text = |path: &Path| path.to_str().expect("text").to_string();
    let (home_text, git_dir) = (text(&home), text(&folder.join(".git")));
    let scene = Scene {
        git_dirs: &[&git_dir],
        home: &home_text,
        config_dir: &git_dir,
        branch: Some("feature/x"),
        remote_urls: &["git@github.com:o/r.git"],
    };
    let absolute = format!("gitdir:{home_text}/Work/");
    let conditions = [
        absolute.as_str(),
        "gitdir:~/Work/",
        "gitdir:~/Work",
        "gitdir:~/work/",
        "gitdir/i:~/work/",
        "gitdir/i:~/WORK/**/.GIT",
        "gitdir:~/Work/*",
        "gitdir:~/Work/*/*/.git",
        "gitdir:~/Work/**/.git",
        "gitdir:~/Work/**",
        "gitdir:~/Work**/.git",
        "gitdir:~/Work/client/repo-1/.git",
        "gitdir:~/Work/client/repo-?/.git",
        "gitdir:~/Work/client/repo-[0-9]/.git",
        "gitdir:~/Work/client/repo-[!0-9]/.git",
        "gitdir:~/Work/client/repo-[]1]/.git",
        "gitdir:~/Work/client/repo\\-1/.git",
        "gitdir:~/Work?client/",
        "gitdir:~/Work[/]client/",
        "gitdir:client/",
        "gitdir:Work/client/",
        "gitdir:client",
        "gitdir:**/.git",
        "gitdir:.git",
        "gitdir:repo-1/.git",
        "gitdir:./",
        "gitdir:/",
        "gitdir:",
        "onbranch:feature/x",
        "onbranch:feature/",
        "onbranch:feature",
        "onbranch:feature/*",
        "onbranch:*",
        "onbranch:**",
        "onbranch:main",
        "hasconfig:remote.*.url:git@github.com:*/**",
        "hasconfig:remote.*.url:git@github.com:**",
        "hasconfig:remote.*.url:https://**",
        "hasconfig:remote.origin.url:git@github.com:o/r.git",
        "unknown:x",
        "x",
        "",
    ];
    let mut applied = 0;
    for condition in conditions {
        let expected = git_includes(&folder, &home, condition);
        applied += usize::from(expected);
        assert_eq!(applies(condition, &scene), expected, "{condition}");
    }
    assert!(applied > 10 && applied < conditions.len() - 10, "{applied}");
}
