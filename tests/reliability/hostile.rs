//! Files that somebody else put there, clocks that were moved, and a secret that must not be written down.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::replay::{posted, replay, waiting};
use super::scene::Scene;
use super::tally::{Bad, Tally};
use crate::support::command::Call;
use crate::support::queued::settle;
use crate::support::spawn::Exit;
use crate::support::streams::Stdin;

const DOWN: &str = "on *\n err HTTP 503: Service Unavailable (https://api.github.com/graphql)\\n\n exit 1\n";
/// No call may take longer because of a file that is not what it should be.
const LONG_S: u64 = 8;

/// What stands in a file's place.
const DISGUISES: [&str; 6] =
    ["a FIFO", "a symlink", "a hard link", "a sparse giant", "a folder", "open to all"];

fn disguise(path: &Path, how: &str, secret: &Path) {
    let _ = fs::remove_file(path);
    match how {
        "a FIFO" => drop(Command::new("/usr/bin/mkfifo").args(["-m", "600"]).arg(path).status().unwrap()),
        "a symlink" => symlink(secret, path).unwrap(),
        "a hard link" => fs::hard_link(secret, path).unwrap(),
        "a folder" => fs::create_dir(path).unwrap(),
        "a sparse giant" => fs::File::create(path).unwrap().set_len(1 << 40).unwrap(),
        _ => {
            fs::copy(secret, path).unwrap();
            fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
        }
    }
}

/// Nothing in the stores that this machine did not write there is served, sent or waited for.
pub fn files(tally: &mut Tally) {
    cached(tally);
    foreign_entries(tally);
    swapped_bodies(tally);
}

fn cached(tally: &mut Tally) {
    for how in DISGUISES {
        let scene = Scene::new("on *\n out an answer\\n\n exit 0\n", tally.without);
        scene.gh(&["issue", "list"]).run();
        let folder = scene.sandbox.path("work/.claude/forge/cache");
        let entry = file_ending(&folder, ".entry");
        let secret = scene.sandbox.path("home/secret");
        fs::copy(&entry, &secret).unwrap();
        disguise(&entry, how, &secret);
        scene.sandbox.script(DOWN);
        let run = scene.gh(&["issue", "list"]).run();
        tally.runs += 1;
        tally.expect(run.exit == Exit::Code(1) && run.out().is_empty(), Bad::Wrong, || {
            format!("{how} was served: {}", run.out())
        });
        tally.expect(run.took.as_secs() < LONG_S, Bad::Wrong, || format!("{how} took {:?}", run.took));
        disguise(&folder.join("lock"), how, &secret);
        scene.sandbox.script("on *\n out an answer\\n\n exit 0\n");
        let run = scene.gh(&["issue", "list"]).run();
        let same = run.out() == "an answer\n" && run.took.as_secs() < LONG_S;
        tally.expect(same, Bad::Wrong, || format!("{how} for a lock: {:?} after {:?}", run.exit, run.took));
    }
}

fn file_ending(folder: &Path, end: &str) -> PathBuf {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.into_iter().find(|path| path.to_string_lossy().ends_with(end)).expect("the file")
}

/// Entries that came with a checkout, in a folder whose configuration runs a program when git looks at it.
fn foreign_entries(tally: &mut Tally) {
    for planted in ["from another machine", "without a seal", "with a changed body", "under another number"] {
        let scene = waiting(&["planted"], tally.without);
        let queue = scene.sandbox.path("work/.claude/forge/queue");
        let (entry, body) = (queue.join("000001.json"), queue.join("000001.d/body.md"));
        match planted {
            "from another machine" => fs::write(scene.sandbox.state().join("queue.key"), [7; 32]).unwrap(),
            "without a seal" => {
                let mut value: Value = serde_json::from_slice(&fs::read(&entry).unwrap()).unwrap();
                value["seal"] = Value::from("");
                fs::write(&entry, value.to_string()).unwrap();
            }
            "with a changed body" => fs::write(&body, "posted by somebody else").unwrap(),
            _ => {
                let text = fs::read_to_string(&entry).unwrap().replace("\"5\"", "\"1\"");
                fs::write(&entry, text).unwrap();
            }
        }
        let tripwire = scene.sandbox.path("home/tripwire");
        let hook = scene.sandbox.shell("tools/hook", &format!("echo ran >> {}", tripwire.display()));
        let config = scene.sandbox.path("work/.git/config");
        let text = fs::read_to_string(&config).unwrap()
            + &format!(
                "[core]\n\tfsmonitor = {}\n\thooksPath = {}\n",
                hook.display(),
                scene.sandbox.path("tools").display()
            );
        fs::write(&config, text).unwrap();
        let run = replay(&scene);
        tally.runs += 1;
        tally.expect(posted(&scene).is_empty(), Bad::Wrong, || format!("{planted}: sent, {}", run.out()));
        tally
            .expect(!tripwire.exists(), Bad::Wrong, || format!("{planted}: a program of the checkout's ran"));
        tally.expect(run.exit == Exit::Code(3), Bad::Wrong, || {
            format!("{planted}: {:?} {}", run.exit, run.err())
        });
    }
}

/// An entry of ours whose body is no plain file any more.
fn swapped_bodies(tally: &mut Tally) {
    for how in DISGUISES {
        let scene = waiting(&["own"], tally.without);
        let secret = scene.sandbox.file("home/secret", "what nobody may read");
        disguise(&scene.sandbox.path("work/.claude/forge/queue/000001.d/body.md"), how, &secret);
        let run = replay(&scene);
        tally.runs += 1;
        tally.expect(posted(&scene).is_empty(), Bad::Wrong, || format!("{how}: sent {:?}", posted(&scene)));
        tally.expect(run.took.as_secs() < LONG_S, Bad::Wrong, || format!("{how} took {:?}", run.took));
    }
}

/// Files from another time: nothing is believed longer, and nobody is held up longer, than the settings say.
pub fn clocks(tally: &mut Tally) {
    let now = engine::process::clock::now_s();
    for shift in [-86_400_i64, -3_600, 3_600, 86_400, 30 * 86_400] {
        let then = now.checked_add_signed(shift).unwrap();
        verdict_of(then, now, tally);
        let scene = sleepless(tally.without);
        let rows: String = (0..80).map(|n| format!("{}\tgraphql\tfg\n", then + n % 50)).collect();
        scene.sandbox.file("bob/forge/rate.log", rows);
        held(&scene, 61, &format!("a ledger moved by {shift} s"), tally);
        let scene = sleepless(tally.without);
        let text = format!(
            "schema=bob-forge-hold/1\ngraphql_closed_until_ms={0}000\ngraphql_line_ms={0}000\n",
            then
        );
        scene.sandbox.file("bob/forge/hold.env", text);
        held(&scene, 3_900, &format!("a hold moved by {shift} s"), tally);
        let scene = sleepless(tally.without);
        let (at, reset) = (then, then + 3_000);
        let text = format!(
            "schema=bob-forge-budget/1\nfetched_at={at}\ngraphql_limit=5000\ngraphql_remaining=0\ngraphql_used=5000\ngraphql_reset={reset}\n"
        );
        scene.sandbox.file("bob/forge/budget.env", text);
        let lock = scene.sandbox.state().join("budget.lock");
        fs::create_dir_all(&lock).unwrap();
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(then);
        fs::File::open(&lock).unwrap().set_modified(time).unwrap();
        held(&scene, 3_900, &format!("a quota and an older shim's lock moved by {shift} s"), tally);
        tally.expect(!lock.exists(), Bad::Wrong, || format!("a lock moved by {shift} s is immortal"));
    }
}

/// A verdict that was stored `then` is not repeated now.
fn verdict_of(then: u64, now: u64, tally: &mut Tally) {
    let scene = Scene::new("on *\n exit 0\n", tally.without);
    let row = |n: u64| format!("{}\t1\t5\tserver\tissue list\tgraphql\t1\tw\t-\n", now - 30 + n);
    scene.sandbox.file("bob/forge/observations.log", (0..10).map(row).collect::<String>());
    let ask = || -> Value {
        let run = scene.forge(&["health", "--no-probe", "--json"]).run();
        serde_json::from_slice(&run.stdout).unwrap_or_default()
    };
    ask();
    let stored = scene.sandbox.state().join("health.json");
    let mut value: Value = serde_json::from_slice(&fs::read(&stored).unwrap()).unwrap();
    value["checked_at"] = Value::from(then);
    fs::write(&stored, value.to_string()).unwrap();
    let source = ask()["source"].clone();
    tally.runs += 1;
    tally.expect(source == "observations", Bad::Wrong, || {
        format!("a verdict of {then} is repeated at {now}: {source}")
    });
}

const ANSWERING: &str = "on api rate_limit\n out {\"resources\":{\"graphql\":{\"limit\":5000,\"remaining\":4000,\"used\":1000,\"reset\":RESET}}}\n\
                         on *\n out answer\\n\n exit 0\n";

/// A scene where sleeping is written down.
fn sleepless(without: &'static str) -> Scene {
    let reset = engine::process::clock::now_s() + 3_000;
    let scene = Scene::new(&ANSWERING.replace("RESET", &reset.to_string()), without);
    let sleeps = scene.sandbox.path("home/sleeps");
    scene.sandbox.shell("tmp/sleeper", &format!("echo \"$1\" >> {}", sleeps.display()));
    scene
}

fn held(scene: &Scene, most_s: u64, what: &str, tally: &mut Tally) {
    let sleeper = scene.sandbox.path("tmp/sleeper");
    let call = scene.gh(&["pr", "list"]).env("BOB_FORGE_BUDGET", "1").env("BOB_FORGE_SLEEP", sleeper);
    let run = call.run();
    let sleeps = fs::read_to_string(scene.sandbox.path("home/sleeps")).unwrap_or_default();
    let slept: f64 = sleeps.lines().filter_map(|line| line.parse::<f64>().ok()).sum();
    tally.runs += 1;
    tally.expect(run.out() == "answer\n", Bad::Wrong, || format!("{what}: {:?} {}", run.exit, run.err()));
    tally.expect(slept <= most_s as f64, Bad::Wrong, || {
        format!("{what} holds a call for {slept} s: {sleeps:?}")
    });
}

/// A token in the environment, secrets in argv and in what gh says: none of them may be on the disk but in the
/// entry that has to hold it.
pub fn canary(tally: &mut Tally) {
    const TOKEN: &str = "ghp_canaryTOKENcanary";
    let script = "on issue list\n out row of ghp_canaryANSWER\\n\n exit 0\n\
                  on issue comment\n stdin\n err HTTP 503 for ghp_canarySAID\\n\n exit 1\n\
                  on *\n err gh: ghp_canarySAID (HTTP 401)\\n\n exit 1\n";
    for umask in [0o000, 0o077] {
        let scene = Scene::new(script, tally.without);
        let calls: [&[&str]; 6] = [
            &["issue", "list", "--search", "ghp_canaryARGV"],
            &["issue", "comment", "5", "--body-file", "-"],
            &["pr", "view", "ghp_canaryARGV"],
            &["api", "repos/ghp_canaryARGV/x", "-H", "Authorization: ghp_canaryARGV"],
            &["issue", "close", "ghp_canaryARGV"],
            &["run", "watch", "ghp_canaryARGV"],
        ];
        let shape = |call: Call<'_>| {
            call.env("GH_TOKEN", TOKEN)
                .env("GITHUB_TOKEN", TOKEN)
                .env("BOB_FORGE_BUDGET", "1")
                .env("BOB_FORGE_SLEEP", "/bin/true")
                .umask(umask)
                .run()
        };
        for words in calls {
            shape(scene.gh(words).stdin(Stdin::Bytes(b"ghp_canaryBODY".into())));
        }
        for words in
            [&["health"][..], &["queue", "status"], &["queue", "replay", "--apply"], &["cache", "status"]]
        {
            shape(scene.forge(words));
        }
        tally.runs += 10;
        for root in ["bob", "work/.claude"] {
            scan(&scene.sandbox.path(root), tally);
        }
    }
}

fn scan(folder: &Path, tally: &mut Tally) {
    use std::os::unix::fs::PermissionsExt;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        if path.is_dir() {
            // Above the stores lies a folder of the user's own.
            scan(&path, tally);
            continue;
        }
        tally.expect(mode & 0o077 == 0 || path.ends_with(".gitignore"), Bad::Wrong, || {
            format!("{} has mode {mode:o}", path.display())
        });
        let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        for (secret, may_hold) in
            [("TOKEN", ""), ("SAID", ""), ("ARGV", "/cache/"), ("ANSWER", "/cache/"), ("BODY", "/queue/")]
        {
            let is_there = text.contains(&format!("canary{secret}"));
            let may = !may_hold.is_empty() && path.to_string_lossy().contains(may_hold);
            tally.expect(!is_there || may, Bad::Wrong, || format!("{secret} is in {}", path.display()));
        }
    }
}
