//! One caller: what it types, and what it is told.

use std::time::Duration;

use serde_json::Value;

use crate::model::{Answer, Told, What};
use crate::support::command::Call;
use crate::support::dice::Dice;
use crate::support::running::Run;
use crate::support::spawn::Exit;
use crate::support::streams::Stdin;
use crate::weather::pause;
use crate::{COMMON, Stage};

/// The sandbox's environment for the real cycle: git is found, and the waits are short.
pub fn environment<'s>(stage: &'s Stage, call: Call<'s>) -> Call<'s> {
    let paths = ["bin", "real", "tools"].map(|name| stage.sandbox.path(name));
    let call = call
        .search_path(&[&paths[0], &paths[1], &paths[2]])
        .env("BOB_FORGE_QUEUE_SETTLE", "1")
        .env("BOB_FORGE_REPLAY_SPACING_MS", "0")
        .env("BOB_FORGE_SLEEP", "/bin/true");
    match std::env::var_os("FORGE_CONTROL") {
        Some(off) => call.env("FORGE_CONTROL", off),
        None => call,
    }
}

/// An issue of this caller's own: how it names it, and by which body it is known.
struct Own {
    name: String,
    key: String,
}

/// Types one command after the other until it is over.
pub fn live(stage: &Stage, caller: u64, mut dice: Dice) {
    let mut own: Vec<Own> = Vec::new();
    for n in 0.. {
        if stage.is_over() {
            return;
        }
        let key = format!("c{caller}n{n}");
        let target = match dice.below(3) {
            0 => None,
            _ => own.get(dice.below(own.len().max(1) as u64) as usize),
        };
        match dice.below(11) {
            0..=2 => read(stage, &mut dice, target),
            3 | 4 => own.extend(create(stage, &mut dice, &key)),
            5..=7 => comment(stage, &mut dice, &key, target),
            8 => label(stage, &mut dice, target),
            9 => rename(stage, &mut dice, &key, target),
            _ => close(stage, &mut dice, target),
        }
        // Slow enough for the queue to empty in calm weather, on two processors.
        pause(stage, dice.below(5_000));
    }
}

/// How the call is typed: its environment, its streams, and whether its caller kills it.
fn typed(stage: &Stage, dice: &mut Dice, words: &[&str], stdin: &str) -> (Run, bool) {
    let mut call = environment(stage, stage.sandbox.gh(words)).stdin(Stdin::Bytes(stdin.into()));
    call = call.env("BOB_FORGE_BUDGET", if dice.once_in(2) { "1" } else { "0" });
    if dice.once_in(4) {
        call = call.env("BOB_FORGE_BACKGROUND", "1");
    }
    let is_merged = dice.once_in(3);
    if is_merged {
        call = call.merged();
    }
    let running = call.start();
    if dice.once_in(8) {
        std::thread::sleep(Duration::from_millis(dice.below(700)));
        running.send(*dice.one_of(&[libc::SIGTERM, libc::SIGKILL, libc::SIGHUP]));
    }
    (running.finish(), is_merged)
}

/// Types a write and notes what was said.
fn write(stage: &Stage, dice: &mut Dice, words: &[&str], stdin: &str, what: What) -> (Answer, String) {
    let started = stage.began.elapsed();
    let (run, _) = typed(stage, dice, words, stdin);
    let is_spooled = (run.out() + &run.err()).contains("Spooled as q");
    let answer = match run.exit {
        Exit::Code(0) if is_spooled => Answer::Queued,
        Exit::Code(0) => Answer::Done,
        _ if is_spooled => Answer::Queued,
        Exit::Code(_) => Answer::Failed,
        _ => Answer::Killed,
    };
    stage.told(Told { what, answer, started, ended: stage.began.elapsed(), said: run.err() });
    (answer, run.out())
}

fn create(stage: &Stage, dice: &mut Dice, key: &str) -> Option<Own> {
    let title = format!("title of {key}");
    let (words, stdin): (Vec<&str>, &str) = match dice.below(2) {
        0 => (vec!["issue", "create", "--title", &title, "--body", key], ""),
        _ => (vec!["issue", "create", "--title", &title, "--body-file", "-"], key),
    };
    let (answer, out) = write(stage, dice, &words, stdin, What::Create { key: key.into() });
    let url = out.lines().find(|line| line.contains("/issues/"))?;
    let name = url.rsplit('/').next()?.trim().to_string();
    matches!(answer, Answer::Done | Answer::Queued).then(|| Own { name, key: key.into() })
}

/// The name on the command line, and the key by which the model knows it.
fn aim(dice: &mut Dice, own: Option<&Own>) -> (String, String) {
    match own {
        Some(own) => (own.name.clone(), own.key.clone()),
        None => {
            let number = 1 + dice.below(COMMON);
            (number.to_string(), format!("common {number}"))
        }
    }
}

fn comment(stage: &Stage, dice: &mut Dice, key: &str, own: Option<&Own>) {
    let (name, on) = aim(dice, own);
    let (words, stdin): (Vec<&str>, &str) = match dice.below(2) {
        0 => (vec!["issue", "comment", &name, "--body", key], ""),
        _ => (vec!["issue", "comment", &name, "-F", "-"], key),
    };
    write(stage, dice, &words, stdin, What::Comment { on, key: key.into() });
}

fn label(stage: &Stage, dice: &mut Dice, own: Option<&Own>) {
    let Some(own) = own else { return };
    let label = format!("l{}", dice.below(5));
    let words = ["issue", "edit", &own.name, "--add-label", &label];
    write(stage, dice, &words, "", What::Label { on: own.key.clone(), label: label.clone() });
}

fn rename(stage: &Stage, dice: &mut Dice, key: &str, own: Option<&Own>) {
    let Some(own) = own else { return };
    let title = format!("renamed by {key}");
    let words = ["issue", "edit", &own.name, "--title", &title];
    write(stage, dice, &words, "", What::Title { on: own.key.clone(), title: title.clone() });
}

fn close(stage: &Stage, dice: &mut Dice, own: Option<&Own>) {
    let Some(own) = own else { return };
    write(stage, dice, &["issue", "close", &own.name], "", What::Close { on: own.key.clone() });
}

fn read(stage: &Stage, dice: &mut Dice, own: Option<&Own>) {
    let (name, on) = aim(dice, own);
    let started = stage.began.elapsed();
    let words: Vec<&str> = match dice.below(2) {
        0 => vec!["issue", "list", "--limit", "200", "--json", "number,title"],
        _ => vec!["issue", "view", &name, "--json", "title,body,state"],
    };
    let (run, is_merged) = typed(stage, dice, &words, "");
    let about = (words[1] == "view").then_some((on.as_str(), started));
    stage.model.lock().unwrap().read(&words.join(" "), about, &run, is_merged);
}

/// Somebody replays by hand now and then, and does not always let it finish.
pub fn replay_by_hand(stage: &Stage, mut dice: Dice) {
    while !stage.is_over() {
        pause(stage, 1_000 + dice.below(4_000));
        let running = environment(stage, stage.sandbox.forge(&["queue", "replay", "--apply"])).start();
        if dice.once_in(2) {
            std::thread::sleep(Duration::from_millis(dice.below(2_500)));
            running.send(*dice.one_of(&[libc::SIGKILL, libc::SIGTERM]));
        }
        running.finish();
        stage.model.lock().unwrap().replays += 1;
    }
}

/// Asks for the verdict, and holds it to the log that it is derived from.
pub fn ask_for_verdicts(stage: &Stage, mut dice: Dice) {
    while !stage.is_over() {
        pause(stage, 200 + dice.below(1_000));
        let before = evidence(stage);
        let run = environment(stage, stage.sandbox.forge(&["health", "--no-probe", "--json"])).run();
        let state = serde_json::from_slice::<Value>(&run.stdout).unwrap_or_default()["state"].clone();
        // The same ten lines, not only the same ten signals: between two looks many calls may end.
        if let Some(newest) = before.filter(|before| evidence(stage).as_ref() == Some(before)) {
            let signals: Vec<&str> = newest.iter().map(|line| line[3].as_str()).collect();
            stage.model.lock().unwrap().verdict(&signals, state.as_str().unwrap_or("none"));
        }
    }
}

/// The ten newest lines that say something; `None` where there are fewer.
fn evidence(stage: &Stage) -> Option<Vec<Vec<String>>> {
    let lines = stage.sandbox.observations();
    let says = |line: &&Vec<String>| line.get(3).is_some_and(|signal| signal != "other");
    let newest: Vec<Vec<String>> = lines.iter().rev().filter(says).take(10).cloned().collect();
    (newest.len() == 10).then_some(newest)
}
