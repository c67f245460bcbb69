//! The end-to-end suite: both binaries, a scripted fake `gh`, nothing but this machine.
#![allow(
    unsafe_code,
    missing_docs,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "tests play whole processes, and show the scene when they fail"
)]
#![allow(dead_code, reason = "not every helper is used on every platform")]

mod budget;
mod cache;
mod concurrency;
mod crash;
mod deploy;
mod finding;
mod health;
mod measure;
mod observed;
mod queue;
mod queue_hostile;
mod queue_races;
mod queue_standing;
mod replay;
mod sandbox_itself;
mod shipped;
mod support;
mod transparency;

/// A file that is not named here, or in the file of its folder's name, would never run.
#[test]
fn every_file_of_the_suite_is_part_of_it() {
    let root = support::forge::root().join("tests");
    let folders = ["", "budget", "cache", "transparency"].map(|name| root.join(name));
    for path in folders.iter().flat_map(|folder| rust_files(folder)) {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let parent = path.parent().unwrap();
        let owner = if parent == root.join("") { root.join("suite.rs") } else { parent.with_extension("rs") };
        let is_named = std::fs::read_to_string(&owner).unwrap().contains(&format!("\nmod {name};\n"));
        // Programs of their own, with their modules in a folder of their name.
        let is_program = ["suite", "reliability", "soak"].contains(&name);
        assert!(is_named || is_program, "{} is not in {}", path.display(), owner.display());
    }
}

fn rust_files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|e| e == "rs")).collect()
}
