//! Files that are swapped, again and again, while they are looked at and used.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::replay::waiting;
use super::scene::Scene;
use super::swapper::{SECRET, Swapper, while_swapping};
use super::tally::{Bad, Tally};
use crate::support::command::Call;
use crate::support::queued::{folder, settle};
use crate::support::running::Run;
use crate::support::sandbox::forge_command;
use crate::support::spawn::Exit;

/// No call may take longer because of what stands in a file's place.
const LONG_S: u64 = 8;

/// A call that is killed when it hangs, and what may come of it: none of the secret, and no long time.
fn within<'s>(scene: &'s Scene, program: &Path, words: &[&str]) -> Call<'s> {
    let limit = LONG_S.to_string();
    let all = [&["-s", "KILL", &limit, program.to_str().unwrap()], words].concat();
    scene.guarded(scene.sandbox.program("/usr/bin/timeout", &all))
}

fn judge_quiet(run: &Run, what: &str, tally: &mut Tally) {
    tally.expect(run.took.as_secs() < LONG_S, Bad::Wrong, || format!("{what} took {:?}", run.took));
    let said = run.out() + &run.err();
    tally.expect(!said.contains("canarySWAP"), Bad::Wrong, || format!("{what} shows a secret: {said:.200}"));
    tally.expect(!said.contains("panicked"), Bad::Wrong, || format!("{what}: {said:.200}"));
}

/// Swaps that never, or always, come in time show nothing.
fn both_happened(times: u64, what: &str, tally: &mut Tally) {
    let (runs, is_control) = (tally.runs, tally.is_control());
    tally.expect(is_control || (times > 0 && times < runs), Bad::Wrong, || {
        format!("{times} of {runs} {what}: the swaps did not meet them")
    });
}

const TEXT: &str = "the original";
const SENT: &str = "issue comment 5 --repo github.com/acme/widget --body-file -\nthe original";

/// Writes down what it is told to post, word for word.
const NOTING_GH: &str = r#"
PATH=/usr/bin:/bin
d=${0%/*}/forge
case "$*" in
*issue*) { printf '%s\n' "$*"; cat; } > "$d/new.$$"; mv "$d/new.$$" "$d/posted/$$"; echo https://github.com/acme/widget/issues/5#issuecomment-1 ;;
*) printf 'HTTP/2.0 200 OK\nDate: %s\n\n[]' "$(LC_ALL=C date -u '+%a, %d %b %Y %H:%M:%S GMT')" ;;
esac
"#;

/// A queued comment's files are swapped for foreign ones while replays run: the forge gets the text that was
/// queued, once, or nothing.
pub fn entries(tally: &mut Tally) {
    let scene = waiting(&[TEXT], tally.without);
    fs::remove_file(scene.sandbox.path("real/gh")).unwrap();
    scene.sandbox.shell("real/gh", NOTING_GH);
    let queue = folder(&scene.sandbox);
    let (entry, own) = (queue.join("000001.json"), queue.join("000001.d"));
    let body = own.join("body.md");
    let original = fs::read(&entry).unwrap();
    let foreign = changed_entries(&original);
    let swap = |swapper: &mut Swapper| {
        let other = swapper.dice.one_of(&["something else", "not yours at all, longer"]).as_bytes();
        let strange = swapper.dice.one_of(&foreign).clone();
        match swapper.dice.below(16) {
            0 => swapper.put(&body, other),
            1 => swapper.exchange(&body, other),
            2 => swapper.rewrite(&body, other, TEXT.as_bytes()),
            3 => swapper.disguise(&body),
            4 => swapper.swap_folder(&own, "body.md", other, false),
            5 => swapper.put(&entry, &strange),
            6 => swapper.exchange(&entry, &strange),
            7 => swapper.rewrite(&entry, &strange, &original),
            8 => swapper.disguise(&entry),
            _ => {
                swapper.swap_folder(&own, "body.md", TEXT.as_bytes(), true);
                swapper.put(&entry, &original);
                swapper.pause(12_000);
            }
        }
        swapper.pause(300);
    };
    let (mut sent, mut since) = (0, 0);
    while_swapping(&scene, tally, (400, Duration::from_secs(12)), swap, |gate, tally| {
        let call = settle(&scene.sandbox, within(&scene, &forge_command(), &["queue", "replay", "--apply"]));
        judge_quiet(&call.run(), "a replay", tally);
        let posted = take_posted(&scene);
        since += posted.len();
        sent += posted.len();
        for text in posted.iter().filter(|text| *text != SENT) {
            tally.bad(Bad::Wrong, format!("the forge got {text:.200}"));
        }
        tally.expect(since <= 1, Bad::Doubled, || format!("the comment was sent {since} times"));
        if since > 0 {
            // Nobody swaps while another one is queued.
            let _turn = gate.write();
            scene.restore();
            since = 0;
        }
    });
    both_happened(sent as u64, "replays sent something", tally);
}

/// Entries that say something else under the same number.
fn changed_entries(original: &[u8]) -> Vec<Vec<u8>> {
    let changes: [fn(&mut Value); 5] = [
        |entry| entry["argv"][2] = json!("9"),
        |entry| entry["body_file"] = json!("/etc/hostname"),
        |entry| entry["caller"] = json!("somebody"),
        |entry| entry["argv"] = json!(["issue", "close", "5"]),
        |entry| entry["repo"] = json!("github.com/evil/other"),
    ];
    let change = |change: &fn(&mut Value)| {
        let mut entry: Value = serde_json::from_slice(original).unwrap();
        change(&mut entry);
        entry.to_string().into_bytes()
    };
    changes.iter().map(change).chain([original[..original.len() / 2].to_vec()]).collect()
}

/// What the forge got since the last look.
fn take_posted(scene: &Scene) -> Vec<String> {
    let take = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry.unwrap().path();
        let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        fs::remove_file(path).unwrap();
        text
    };
    fs::read_dir(scene.sandbox.path("real/forge/posted")).unwrap().map(take).collect()
}

/// A stored answer is swapped while it is served: the caller gets it as it was stored, or gh's own failure.
pub fn answers(tally: &mut Tally) {
    const UP: &str =
        "on issue list closed\n out of another question\\n\n exit 0\non *\n out an answer\\n\n exit 0\n";
    let scene = Scene::new(UP, tally.without);
    let stored = scene.sandbox.path("work/.claude/forge/cache");
    let entries = || -> Vec<PathBuf> {
        let paths = fs::read_dir(&stored).unwrap().map(|entry| entry.unwrap().path());
        paths.filter(|path| path.to_string_lossy().ends_with(".entry")).collect()
    };
    scene.gh(&["issue", "list"]).run();
    let entry = entries().remove(0);
    scene.gh(&["issue", "list", "--state", "closed"]).run();
    let another = fs::read(entries().into_iter().find(|path| *path != entry).unwrap()).unwrap();
    let original = fs::read(&entry).unwrap();
    let changed = String::from_utf8_lossy(&original).replace("an answer", "an untrue").into_bytes();
    let foreign = [another, changed, original[..original.len() / 2].to_vec()];
    scene.sandbox.script("on *\n err HTTP 503: Service Unavailable\\n\n exit 1\n");
    let swap = |swapper: &mut Swapper| {
        let strange = swapper.dice.one_of(&foreign).clone();
        match swapper.dice.below(8) {
            0 => swapper.put(&entry, &strange),
            1 => swapper.exchange(&entry, &strange),
            2 => swapper.rewrite(&entry, &strange, &original),
            3 => swapper.disguise(&entry),
            _ => {
                swapper.put(&entry, &original);
                swapper.pause(3_000);
            }
        }
        swapper.pause(300);
    };
    let mut served = 0;
    let shim = scene.sandbox.path("bin/gh");
    while_swapping(&scene, tally, (600, Duration::from_secs(6)), swap, |_, tally| {
        let run = within(&scene, &shim, &["issue", "list"]).run();
        judge_quiet(&run, "a read", tally);
        match (run.exit, run.out().as_str()) {
            (Exit::Code(0), "an answer\n") => served += 1,
            (Exit::Code(1), "") => {}
            (exit, out) => tally.bad(Bad::Wrong, format!("{exit:?} with {out:.100?}")),
        }
    });
    both_happened(served, "reads were served", tally);
}

/// The machine's own state files are swapped for hostile ones: no call waits for them, shows them, or ends
/// otherwise.
pub fn state(tally: &mut Tally) {
    let reset = engine::process::clock::now_s() + 3_000;
    let quota = format!("{{\"limit\":5000,\"remaining\":4000,\"used\":1000,\"reset\":{reset}}}");
    let script = format!(
        "on api rate_limit\n out {{\"resources\":{{\"graphql\":{quota}}}}}\non *\n out answer\\n\n exit 0\n"
    );
    let scene = Scene::new(&script, tally.without);
    let state = scene.sandbox.state();
    fs::create_dir_all(&state).unwrap();
    let hostile = [
        SECRET.to_string(),
        format!(
            "schema=bob-forge-budget/1\nfetched_at={0}\ngraphql_limit=1\ngraphql_remaining=0\ngraphql_reset={reset}\nnote=$(cat)\n{SECRET}",
            reset - 3_000
        ),
        format!("{{\"schema\":\"bob-forge-verdict/1\",\"state\":\"{}\"}}", SECRET.trim()),
        "\u{1b}]0;title\u{7}\0\n".repeat(3),
    ];
    let names = ["budget.env", "health.json", "hold.env", "queue-dirty"];
    let swap = |swapper: &mut Swapper| {
        let at = state.join(*swapper.dice.one_of(&names));
        let text = swapper.dice.one_of(&hostile).clone();
        match swapper.dice.below(6) {
            0 => swapper.put(&at, text.as_bytes()),
            1 => swapper.exchange(&at, text.as_bytes()),
            2 => swapper.rewrite(&at, text.as_bytes(), b""),
            3 => drop(fs::remove_file(&at)),
            _ => swapper.disguise(&at),
        }
        swapper.pause(1_000);
    };
    let (shim, forge) = (scene.sandbox.path("bin/gh"), forge_command());
    let calls: [(&Path, &[&str]); 5] = [
        (&shim, &["pr", "list"]),
        (&forge, &["health", "--no-probe", "--json"]),
        (&shim, &["pr", "list"]),
        (&forge, &["budget"]),
        (&forge, &["queue", "status", "--json"]),
    ];
    let mut next = 0;
    while_swapping(&scene, tally, (400, Duration::from_secs(5)), swap, |_, tally| {
        let (program, words) = calls[next % calls.len()];
        next += 1;
        let call = within(&scene, program, words);
        let run = call.env("BOB_FORGE_BUDGET", "1").env("BOB_FORGE_SLEEP", "/bin/true").run();
        judge_quiet(&run, &words.join(" "), tally);
        let is_same = program != shim || (run.exit, run.out().as_str()) == (Exit::Code(0), "answer\n");
        tally.expect(is_same, Bad::Wrong, || format!("gh {words:?}: {:?} {}", run.exit, run.err()));
    });
}
