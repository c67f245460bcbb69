//! The end-to-end suite: both binaries, a scripted fake `gh`, nothing but this machine.
#![allow(
    unsafe_code,
    missing_docs,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "tests play whole processes, and show the scene when they fail"
)]
#![allow(dead_code, reason = "not every helper is used on every platform")]

mod health;
mod sandbox_itself;
mod support;

/// A file that is not named here would never run.
#[test]
fn every_file_of_the_suite_is_part_of_it() {
    let suite = include_str!("suite.rs");
    for entry in std::fs::read_dir(support::forge::root().join("tests")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if path.extension().is_some_and(|e| e == "rs") && name != "suite" {
            assert!(suite.contains(&format!("\nmod {name};\n")), "tests/{name}.rs is not in tests/suite.rs");
        }
    }
}
