//! `make bench`, the processes: what a call costs through the shim, over calling gh directly, as a
//! ratio to what a minimal C program costs that only spawns and waits. All variants take turns in one
//! run, so that whatever else the machine does falls on each of them alike; medians are compared.
//!
//! Reads the programs' paths from `BENCH_SHIM` (the deployed build of `gh`), `BENCH_C` and
//! `BENCH_CHILD` (built from `scripts/bench/*.c`). Exits with 1 when a bound is missed.
#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::exit, missing_docs)]

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 800;

/// A way to make one call.
struct Variant {
    name: &'static str,
    program: PathBuf,
    args: &'static [&'static str],
    /// Whether the call passes the budget's gate.
    gated: bool,
    took: Vec<Duration>,
}

struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn lay(shim: &Path, child: &Path) -> Scene {
        let scene = Scene { folder: tempfile::tempdir().unwrap() };
        for (folder, from) in [("shim", shim), ("real", child)] {
            std::fs::create_dir(scene.path(folder)).unwrap();
            std::fs::copy(from, scene.path(folder).join("gh")).unwrap();
        }
        std::fs::create_dir_all(scene.path("project/.git")).unwrap();
        let remote = "[remote \"origin\"]\n\turl = https://github.com/acme/widget.git\n";
        std::fs::write(scene.path("project/.git/config"), remote).unwrap();
        std::fs::create_dir(scene.path("state")).unwrap();
        std::fs::write(scene.path("state/budget.env"), quota()).unwrap();
        scene
    }

    /// One call, stderr into a file of its own: the shim has to divert and to classify it.
    fn call(&self, variant: &Variant) -> Duration {
        let mut command = Command::new(&variant.program);
        let path = format!("{}:{}", self.path("shim").display(), self.path("real").display());
        command.arg0("gh").args(variant.args).current_dir(self.path("project"));
        command.env_clear().env("PATH", path).env("HOME", self.folder.path());
        command.env("BOB_FORGE_STATE", self.path("state")).env("BENCH_REAL", self.path("real/gh"));
        // No call has to wait: a short window keeps as many calls in the ledger as a busy minute does.
        command.env("BOB_FORGE_BUDGET", if variant.gated { "1" } else { "0" });
        command.env("BOB_FORGE_RATE_WINDOW", "1").env("BOB_FORGE_RATE_CORE", "100000");
        command.env("BOB_FORGE_BUDGET_TTL", "100000");
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(std::fs::File::create(self.path("stderr")).unwrap());
        let start = Instant::now();
        let status = command.status().unwrap();
        let took = start.elapsed();
        assert!(status.success(), "{}: {status}", variant.name);
        took
    }
}

/// A reading of quotas that are far from any line.
fn quota() -> String {
    let now_s = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let of = |name: &str| {
        let reset = now_s + 3_000;
        format!("{name}_limit=5000\n{name}_remaining=4000\n{name}_used=1000\n{name}_reset={reset}\n")
    };
    format!("schema=bob-forge-budget/1\nfetched_at={now_s}\n{}{}{}", of("graphql"), of("core"), of("search"))
}

fn main() {
    let from = |name: &str| {
        PathBuf::from(std::env::var_os(name).unwrap_or_else(|| panic!("{name}: run `make bench`")))
    };
    let (shim, c, child) = (from("BENCH_SHIM"), from("BENCH_C"), from("BENCH_CHILD"));
    let scene = Scene::lay(&shim, &child);
    let (real, shim) = (scene.path("real/gh"), scene.path("shim/gh"));
    let variant = |name, program: &PathBuf, args| Variant {
        name,
        program: program.clone(),
        args,
        gated: false,
        took: vec![],
    };
    let mut variants = [
        variant("the real binary, directly", &real, &["api", "user"]),
        variant("minimal C: spawn and wait", &c, &["api", "user"]),
        variant("shim, recorded call", &shim, &["api", "user"]),
        variant("shim, offline call", &shim, &["--version"]),
        variant("shim, recorded, 4 KiB", &shim, &["pr", "list"]),
        variant("shim, stored, 4 KiB", &shim, &["issue", "list"]),
        Variant { gated: true, ..variant("shim, gated call", &shim, &["api", "user"]) },
    ];
    for round in 0..ROUNDS + 20 {
        for variant in &mut variants {
            let took = scene.call(variant);
            if round >= 20 {
                variant.took.push(took);
            }
        }
    }
    report(&mut variants);
}

fn report(variants: &mut [Variant]) {
    let median = |variant: &mut Variant| {
        variant.took.sort();
        variant.took[variant.took.len() / 2].as_secs_f64() * 1e6
    };
    let medians: Vec<f64> = variants.iter_mut().map(median).collect();
    let (direct, c) = (medians[0], medians[1]);
    println!("{:<28} {:>10} {:>14} {:>12}", "one call", "median", "over direct", "ratio to C");
    for (variant, median) in variants.iter().zip(&medians) {
        let over = median - direct;
        println!("{:<28} {median:>7.0} us {over:>11.0} us {:>12.2}", variant.name, over / (c - direct));
    }
    let recorded = bound("recorded call, of spawn and wait", (medians[2] - direct) / (c - direct), 1.4);
    let stored = bound("cacheable read, of a recorded call", medians[5] / medians[4], 1.25);
    let gated = bound("gated call, of a recorded call", medians[6] / medians[2], 1.15);
    if !(recorded && stored && gated) {
        std::process::exit(1);
    }
}

fn bound(what: &str, ratio: f64, most: f64) -> bool {
    let met = ratio <= most;
    println!("{what}: {ratio:.2} (bound {most:.2}): {}", if met { "met" } else { "MISSED" });
    met
}
