//! Replay against a `gh` that keeps what it was given, and can lose its answers: every queued comment has to be
//! there once, in order, whatever happened on the way.

use std::fs;
use std::time::Duration;

use super::breaking::{Done, Operation};
use super::scene::Scene;
use super::tally::{Bad, Tally};
use crate::support::command::Call;
use crate::support::dice::Dice;
use crate::support::queued::{checkout, settle};
use crate::support::running::Run;
use crate::support::sandbox::{Sandbox, forge_command};
use crate::support::spawn::Exit;
use crate::support::streams::Stdin;

/// Posts comments into a folder, and shows them as GitHub's list does. `modes` has one letter for each attempt
/// to post: `n` nobody is reached, `d` down, `r` refused, `l` the comment lands and the answer is lost; past its end all is well.
pub const POSTING_GH: &str = r#"
PATH=/usr/bin:/bin
d=$(dirname "$0")/forge
head() { printf 'HTTP/2.0 200 OK\nDate: %s\n\n' "$(LC_ALL=C date -u '+%a, %d %b %Y %H:%M:%S GMT')"; }
case "$*" in
*"issue comment"*)
    cat > "$d/in"
    echo x >> "$d/attempts"
    mode=$(cut -c"$(wc -l < "$d/attempts")" "$d/modes" 2>/dev/null)
    [ "$mode" = n ] && { echo 'error connecting to api.github.com' >&2; exit 1; }
    [ "$mode" = r ] && { echo 'GraphQL: Body is too long (addComment)' >&2; exit 1; }
    [ "$mode" = d ] && { echo 'HTTP 503: Service Unavailable' >&2; exit 1; }
    n=$(ls "$d/posted" | wc -l)
    printf '{"html_url":"https://github.com/acme/widget/issues/5#issuecomment-%s","user":{"login":"me"},"created_at":"%s","body":"%s"}' \
        "$n" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$(cat "$d/in")" > "$d/new"
    mv "$d/new" "$d/posted/$(printf %04d "$n")"
    [ "$mode" = l ] && { echo 'Post "https://api.github.com/graphql": unexpected EOF' >&2; exit 1; }
    echo "https://github.com/acme/widget/issues/5#issuecomment-$n" ;;
*comments?*) head; printf '['; sep=; for c in "$d"/posted/*; do [ -f "$c" ] && { printf '%s' "$sep"; cat "$c"; sep=,; }; done; printf ']' ;;
*user*) head; printf '{"login":"me"}' ;;
*) head; printf '{"state":"open"}' ;;
esac
"#;

pub const COMMENT: [&str; 5] = ["issue", "comment", "5", "--body-file", "-"];

/// A checkout where these comments wait.
pub fn waiting(bodies: &[&str], without: &'static str) -> Scene {
    // The live call reached nobody, so nothing but the log of attempts says that there is something to look for.
    let sandbox = Sandbox::new("on *\n stdin\n err error connecting to api.github.com\\n\n exit 1\n");
    checkout(&sandbox);
    let scene = Scene::of(sandbox, without);
    for body in bodies {
        let run = gh(&scene, &COMMENT).stdin(Stdin::Bytes(body.as_bytes().into())).run();
        assert!(run.err().contains("Spooled as"), "{}", run.err());
    }
    take_posts(&scene);
    scene.keep();
    scene
}

/// From now on `gh` posts, into an empty forge.
pub fn take_posts(scene: &Scene) {
    fs::remove_file(scene.sandbox.path("real/gh")).unwrap();
    scene.sandbox.shell("real/gh", POSTING_GH);
    forget(scene);
}

pub fn gh<'s>(scene: &'s Scene, args: &[&str]) -> Call<'s> {
    settle(&scene.sandbox, scene.sandbox.gh(args))
}

/// Replays by hand.
pub fn replay(scene: &Scene) -> Run {
    scene.guarded(settle(&scene.sandbox, scene.sandbox.forge(&["queue", "replay", "--apply"]))).run()
}

/// Empties the forge.
pub fn forget(scene: &Scene) {
    let folder = scene.sandbox.path("real/forge");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("posted")).unwrap();
}

/// The bodies on the forge, oldest first.
pub fn posted(scene: &Scene) -> Vec<String> {
    let mut paths: Vec<_> =
        fs::read_dir(scene.sandbox.path("real/forge/posted")).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    let body = |text: String| {
        text.split("\"body\":\"").nth(1).unwrap_or_default().trim_end_matches("\"}").to_string()
    };
    paths.iter().map(|path| body(fs::read_to_string(path).unwrap())).collect()
}

/// Replays until nothing is left, as a person would.
fn until_done(scene: &Scene) -> Run {
    for _ in 0..40 {
        let run = replay(scene);
        if run.exit == Exit::Code(0) {
            return run;
        }
        // Another one's delivery may still be under way.
        std::thread::sleep(Duration::from_millis(20));
    }
    replay(scene)
}

pub fn judge(scene: &Scene, bodies: &[&str], what: &str, tally: &mut Tally) {
    let last = until_done(scene);
    tally.expect(last.exit == Exit::Code(0), Bad::Wrong, || {
        format!("{:?} {} {}: {what}", last.exit, last.out(), last.err())
    });
    let posted = posted(scene);
    for body in bodies {
        let (here, wanted) =
            (posted.iter().filter(|b| b == body).count(), bodies.iter().filter(|b| *b == body).count());
        tally.expect(here >= wanted, Bad::Lost, || {
            format!("{body} is there {here} times, not {wanted}: {what}")
        });
        tally.expect(here <= wanted, Bad::Doubled, || {
            format!("{body} is there {here} times, not {wanted}: {what}")
        });
    }
    let in_order = posted == bodies || posted.len() != bodies.len();
    tally.expect(in_order, Bad::Wrong, || format!("{posted:?} is another order: {what}"));
}

/// A replay of two comments, killed and failed everywhere.
pub fn every_call(tally: &mut Tally) {
    let bodies = ["one", "two"];
    let scene = waiting(&bodies, tally.without);
    let judge = |_: &Run, _: Done, what: &str, tally: &mut Tally| {
        judge(&scene, &bodies, what, tally);
        forget(&scene);
    };
    let (bin, real, tools) =
        (scene.sandbox.path("bin"), scene.sandbox.path("real"), scene.sandbox.path("tools"));
    let path = std::env::join_paths([bin, real, tools]).unwrap();
    let operation = Operation {
        scene: &scene,
        program: forge_command(),
        args: &["queue", "replay", "--apply"],
        shape: &|call| quickly(call).env("PATH", &path),
        judge: &judge,
        // Thousands of runs otherwise: a replay makes many calls, and each run is two of them.
        in_every_way: false,
        again: &|| forget(&scene),
    };
    operation.break_everywhere(tally);
}

fn quickly(call: Call<'_>) -> Call<'_> {
    call.env("BOB_FORGE_QUEUE_SETTLE", "0")
        .env("BOB_FORGE_REPLAY_SPACING_MS", "0")
        .env("BOB_FORGE_CACHE", "0")
}

/// Comments, twins among them, whose deliveries fail before or after they land, at random.
pub fn lost_answers(tally: &mut Tally) {
    let bodies = ["one", "twin", "twin", "two", "three", "one"];
    let scene = waiting(&bodies, tally.without);
    let mut dice = Dice::new(tally.seed);
    for _ in 0..tally.rounds(15) {
        scene.restore();
        forget(&scene);
        let modes: String = (0..12).map(|_| *dice.one_of(&['d', 'l', 'l', '.', '.'])).collect();
        fs::write(scene.sandbox.path("real/forge/modes"), &modes).unwrap();
        tally.runs += 1;
        tally.faults += modes.bytes().filter(|mode| *mode != b'.').count() as u64;
        judge(&scene, &bodies, &modes, tally);
        if tally.is_settled() {
            return;
        }
    }
}
