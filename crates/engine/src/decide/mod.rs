//! The decisions. PURE: values in, values out; no files, clock, environment, processes, printing.

pub mod argv;
pub mod backoff;
pub mod batch;
pub mod cache_key;
pub mod check;
mod commands;
pub mod entry;
pub mod fallback;
mod flag_table;
pub mod gate;
mod gh_flags;
pub mod git_config;
pub mod git_include;
pub mod hosts;
pub mod journal;
pub mod keep;
pub mod measure;
pub mod patient;
pub mod plan;
pub mod queued;
pub mod quota;
pub mod reach;
pub mod reading;
pub mod replay;
pub mod repo;
pub mod resource;
pub mod signal;
pub mod verdict;
pub mod write;

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // it reads the sources that it judges
mod tests {
    use std::path::Path;

    /// Words by which code reaches out of itself.
    const REACHES_OUT: [&str; 12] = [
        "std::fs",
        "std::process",
        "std::env",
        "std::net",
        "std::io",
        "SystemTime",
        "Instant",
        "libc::",
        "println!",
        "crate::store",
        "crate::process",
        "crate::ops",
    ];

    fn offences(folder: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                offences(&path, found);
                continue;
            }
            // Tests may set up what they like.
            if path.to_string_lossy().ends_with("tests.rs") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split_once("\nmod tests {").map_or(&*text, |(code, _)| code);
            let uses =
                |word: &&&str| code.lines().any(|l| !l.trim_start().starts_with("//") && l.contains(**word));
            found.extend(REACHES_OUT.iter().filter(uses).map(|word| format!("{}: {word}", path.display())));
        }
    }

    #[test]
    fn no_decision_reaches_out_of_itself() {
        let mut found = Vec::new();
        offences(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/decide"), &mut found);
        assert_eq!(found, Vec::<String>::new());
    }
}
