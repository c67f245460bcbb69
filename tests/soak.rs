//! `make soak`: thirty callers with the real gh, a forge that keeps failing, and at the end the question whether
//! the forge holds exactly what every caller was told.
//!
//! `SOAK_SECONDS` (600), `SOAK_CALLERS` (30), `FORGE_SEED`. The figures go to `target/soak.json`. The control arm:
//! `FORGE_CONTROL=attempt,lock SOAK_SECONDS=60 make soak-control` has to go red.
#![allow(
    unsafe_code,
    missing_docs,
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::exit,
    reason = "a program that runs programs and prints a table"
)]
#![allow(dead_code, reason = "of the suite's helpers it needs a part")]

#[path = "soak/caller.rs"]
mod caller;
#[path = "soak/model.rs"]
mod model;
mod support;
#[path = "soak/weather.rs"]
mod weather;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use model::{Model, Told};
use serde_json::json;
use support::dice::{self, Dice};
use support::forge::{Forge, REAL_GH, root, sandbox_with_real_gh};
use support::queued::checkout;
use support::sandbox::Sandbox;
use support::spawn::Exit;

/// What all threads share.
pub struct Stage {
    pub sandbox: Sandbox,
    pub forge: Forge,
    pub model: Mutex<Model>,
    pub is_over: AtomicBool,
    pub began: Instant,
}

/// Issues that are there from the start, on which everybody comments.
pub const COMMON: u64 = 12;

fn main() {
    let seconds = dice::times("SOAK_SECONDS", 600);
    let callers = dice::times("SOAK_CALLERS", 30);
    let seed = dice::seed();
    let version = REAL_GH[seed as usize % REAL_GH.len()];
    println!("FORGE_SEED={seed} SOAK_SECONDS={seconds} SOAK_CALLERS={callers}, gh {version}");
    let forge = Forge::start(&["--repo", "acme/widget"]);
    let issues: Vec<_> = (1..=COMMON)
        .map(|n| json!({"title": format!("common {n}"), "body": format!("common {n}")}))
        .collect();
    let labels: Vec<String> = (0..5).map(|n| format!("l{n}")).collect();
    forge.control(
        "POST",
        "/_forge/seed",
        &json!({"repo": "acme/widget", "issues": issues, "labels": labels}).to_string(),
    );
    let sandbox = sandbox_with_real_gh(version, &forge);
    checkout(&sandbox);
    let stage = Stage {
        sandbox,
        forge,
        model: Mutex::default(),
        is_over: AtomicBool::new(false),
        began: Instant::now(),
    };
    std::thread::scope(|scope| {
        for n in 0..callers {
            let stage = &stage;
            scope.spawn(move || caller::live(stage, n, Dice::new(seed.wrapping_mul(1_000).wrapping_add(n))));
        }
        scope.spawn(|| weather::make(&stage, Dice::new(seed ^ 0xf00d)));
        scope.spawn(|| caller::replay_by_hand(&stage, Dice::new(seed ^ 0xbeef)));
        scope.spawn(|| caller::ask_for_verdicts(&stage, Dice::new(seed ^ 0xcafe)));
        std::thread::sleep(Duration::from_secs(seconds));
        stage.is_over.store(true, Ordering::SeqCst);
        // Whoever hangs on a hanging forge has to end.
        stage.forge.control("DELETE", "/_forge/faults", "");
    });
    let drained = drain(&stage);
    let mut model = stage.model.lock().unwrap();
    if let Some(why) = drained {
        model.wrong(why);
    }
    let state = stage.forge.control("GET", "/_forge/state", "");
    let figures = model.compare(&state["repos"]["acme/widget"]["issues"], seed);
    println!("{}", model.text(&figures));
    std::fs::write(root().join("target/soak.json"), format!("{figures:#}\n")).unwrap();
    std::process::exit(i32::from(!model.is_good()));
}

/// Calm weather: everything that was promised arrives. Returns why it did not.
fn drain(stage: &Stage) -> Option<String> {
    let until = Instant::now() + Duration::from_secs(900);
    loop {
        stage.forge.control("DELETE", "/_forge/faults", "");
        let run =
            caller::environment(stage, stage.sandbox.forge(&["queue", "replay", "--apply", "--batch", "25"]))
                .run();
        if run.exit == Exit::Code(0) {
            return None;
        }
        let status = caller::environment(stage, stage.sandbox.forge(&["queue", "status"])).run();
        if Instant::now() > until || status.out().contains("nothing pending") {
            return Some(format!(
                "the queue is not delivered: {}\n{}\n{}",
                run.out(),
                run.err(),
                status.out()
            ));
        }
        std::thread::sleep(Duration::from_millis(300));
    }
}

impl Stage {
    pub fn told(&self, told: Told) {
        self.model.lock().unwrap().told.push(told);
    }

    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }
}
