//! What is shipped has none of the switches that tests use.

use crate::support::forge::root;
use crate::support::sandbox::fake;
use std::fs;
use std::path::Path;

/// Names of variables by which a test switches a guard off, or kills a program at a step.
const SWITCHES: [&str; 4] =
    ["FORGE_CONTROL", "BOB_FORGE_TEST_KILL_AT", "BOB_FORGE_TEST_BREAK", "BOB_FORGE_TEST_STEPS"];

fn holds(program: &Path, name: &str) -> bool {
    let bytes = fs::read(program).unwrap_or_else(|e| panic!("{}: {e} (make build)", program.display()));
    bytes.windows(name.len()).any(|window| window == name.as_bytes())
}

#[test]
fn no_shipped_program_has_a_switch_of_the_tests() {
    for program in ["gh", "forge", "forge.node"] {
        for name in SWITCHES {
            assert!(!holds(&root().join("target/deploy").join(program), name), "{program} reads {name}");
        }
    }
    // The search finds what is there: this build has them.
    let own: &Path = env!("CARGO_BIN_EXE_gh").as_ref();
    assert!(SWITCHES.iter().all(|name| holds(own, name)));
    assert!(!holds(&fake(), SWITCHES[0]));
}
