//! `forge budget measure`: counts every call exactly, and nothing about the command changes.

use std::fs;

use serde_json::{Value, json};

use crate::support::command::Call;
use crate::support::sandbox::Sandbox;
use crate::support::spawn::Exit;
use crate::support::streams::Stdin;

const QUOTA: &str = r#"{"resources":{"graphql":{"limit":5000,"used":USED,"remaining":4000,"reset":2000000000},"core":{"limit":5000,"used":1,"remaining":4999,"reset":2000000000}}}"#;

/// A gh that answers anything, the first and the second look at the quota among it.
fn answering() -> Sandbox {
    let quota = |used: &str| QUOTA.replace("USED", used);
    Sandbox::new(&format!(
        "on api rate_limit #1\n out {}\n exit 0\non api rate_limit\n out {}\n exit 0\n\
         on issue view\n err gh says no\\n\n exit 1\non *\n out an answer\\n\n exit 0\n",
        quota("10"),
        quota("17")
    ))
}

/// `forge budget measure FLAGS -- sh -c SCRIPT`, with the shim first on PATH and the system's programs last.
fn measure<'s>(sandbox: &'s Sandbox, flags: &[&str], script: &str) -> Call<'s> {
    let words = [&["budget", "measure"], flags, &["--", "sh", "-c", script]].concat();
    let (bin, real) = (sandbox.path("bin"), sandbox.path("real"));
    sandbox.forge(&words).search_path(&[&bin, &real, "/usr/bin".as_ref(), "/bin".as_ref()])
}

fn measured(sandbox: &Sandbox, script: &str) -> Value {
    let run = measure(sandbox, &["--json"], script).run();
    serde_json::from_str(&run.out()).unwrap_or_else(|_| panic!("{} {}", run.out(), run.err()))
}

#[test]
fn every_call_is_counted_and_the_tokens_spend_is_read_before_and_after() {
    let sandbox = answering();
    let document = measured(
        &sandbox,
        "gh issue list; gh issue view 1; gh issue view 2; gh --version; gh search issues x",
    );
    assert_eq!(document["schema"], "bob-forge-measure/1");
    assert_eq!(document["calls"], 5);
    assert_eq!(document["byCommand"], json!({"issue view": 2, "issue list": 1, "search issues": 1, "-": 1}));
    assert_eq!(document["byQuota"], json!({"graphql": 3, "core": 0, "search": 1, "none": 1}));
    assert_eq!(document["points"], json!({"graphql": 7, "core": 0, "search": null}));
    assert_eq!(document["exit"], 0);
    // The shim behind the recorder has recorded them as ever.
    assert_eq!(sandbox.observations().len(), 4);
}

#[test]
fn the_command_keeps_its_output_its_input_and_its_exit_code() {
    let sandbox = answering();
    let script = "cat; gh issue view 1; echo rc=$?; exit 7";
    let run = measure(&sandbox, &[], script).stdin(Stdin::Bytes(b"typed\n".to_vec())).run();
    assert_eq!(run.exit, Exit::Code(7));
    assert!(run.out().starts_with("typed\nrc=1\nmeasured: sh -c "), "{}", run.out());
    assert!(run.out().contains("gh calls: 1 (issue view 1)"), "{}", run.out());
    assert_eq!(run.err(), "gh says no\n");
    // With --json, standard output is the document and nothing else.
    let run = measure(&sandbox, &["--json"], "echo hello; exit 5").run();
    assert_eq!((run.exit, run.err().as_str()), (Exit::Code(5), "hello\n"));
    assert_eq!(serde_json::from_str::<Value>(&run.out()).unwrap()["exit"], 5);
}

#[test]
fn gh_sees_no_difference_but_the_variables_of_the_measurement() {
    let sandbox = answering();
    let words = ["issue", "comment", "7", "--body", "with \"quotes\" and\nlines"];
    let quoted = "gh issue comment 7 --body 'with \"quotes\" and\nlines'";
    let call = |script: &str| measured(&sandbox, script);
    call(quoted);
    let calls = sandbox.calls();
    let record = calls.iter().find(|call| call.words().contains(&"comment".to_string())).unwrap();
    assert_eq!(record.words()[..], words.map(String::from));
    assert_eq!(record.argv0, b"gh");
    assert_eq!(record.var("BOB_FORGE_DEPTH").as_deref(), Some("1"));
}

#[test]
fn a_command_that_is_killed_ends_the_measurement_the_same_way() {
    let sandbox = answering();
    let run = measure(&sandbox, &[], "gh issue list; kill -TERM $$").run();
    assert_eq!(run.exit, Exit::Signal(libc::SIGTERM));
    assert!(run.out().contains("killed by signal 15"), "{}", run.out());
}

#[test]
fn a_signal_to_the_measurement_reaches_the_command() {
    let sandbox = answering();
    let script = "trap 'echo asked to end; exit 9' TERM; echo ready; while :; do sleep 0.05; done";
    let running = measure(&sandbox, &[], script).start();
    running.stdout().wait_for(b"ready\n");
    running.send(libc::SIGTERM);
    let run = running.finish();
    assert_eq!(run.exit, Exit::Code(9));
    assert!(run.out().contains("asked to end\nmeasured: "), "{}", run.out());
}

#[test]
fn nested_measurements_and_calls_of_calls_are_counted_in_each() {
    let sandbox = answering();
    let nested = sandbox.shell("nested", "gh issue list; gh issue list");
    sandbox.script(&format!(
        "on api rate_limit\n out {}\n exit 0\non outer\n exec {}\non *\n exit 0\n",
        QUOTA.replace("USED", "1"),
        nested.display()
    ));
    let forge = crate::support::sandbox::forge_command();
    let inner =
        format!("{} budget measure --json -- sh -c 'gh issue view 1; gh outer' >inner.json", forge.display());
    let outer = measured(&sandbox, &format!("gh label list; {inner}"));
    let inner: Value = serde_json::from_slice(&fs::read(sandbox.path("work/inner.json")).unwrap()).unwrap();
    assert_eq!((&inner["calls"], &outer["calls"]), (&json!(4), &json!(5)), "{inner} {outer}");
}

#[test]
fn a_command_that_puts_the_shim_first_again_is_counted_all_the_same() {
    let sandbox = answering();
    let script = format!("PATH={}:$PATH; gh issue list; gh issue view 1", sandbox.path("bin").display());
    assert_eq!(measured(&sandbox, &script)["calls"], 2);
}

#[test]
fn without_a_shim_on_path_the_recorder_stands_in_front_of_gh_itself() {
    let sandbox = answering();
    let real = sandbox.path("real");
    let run = measure(&sandbox, &["--json"], "gh issue list; gh issue view 1")
        .search_path(&[&real, "/usr/bin".as_ref(), "/bin".as_ref()])
        .run();
    assert_eq!(serde_json::from_str::<Value>(&run.out()).unwrap()["calls"], 2);
    assert_eq!(run.exit, Exit::Code(1));
    assert_eq!(sandbox.observations().len(), 0);
}

#[test]
fn nothing_is_left_behind_and_what_cannot_be_measured_is_said() {
    let sandbox = answering();
    measured(&sandbox, "gh issue list");
    let left: Vec<_> = fs::read_dir(sandbox.state()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with("measure")), "{left:?}");
    let run = sandbox.forge(&["budget", "measure", "--", "nosuchcommand"]).run();
    assert_eq!(run.exit, Exit::Code(2));
    assert!(run.err().contains("cannot run nosuchcommand"), "{}", run.err());
    // A quota that cannot be read is unknown; the calls are counted all the same.
    sandbox.script("on api rate_limit\n err error connecting to api.github.com\\n\n exit 1\non *\n exit 0\n");
    let document = measured(&sandbox, "gh issue list");
    assert_eq!((&document["calls"], &document["points"]["graphql"]), (&json!(1), &Value::Null));
}

#[test]
fn a_command_that_was_run_is_never_told_as_one_that_was_not() {
    let sandbox = answering();
    for flags in [&[][..], &["--json"]] {
        let script = "gh issue view 1 2>/dev/null; /bin/rm -f \"$BOB_FORGE_MEASURE\"/*; exit 7";
        let run = measure(&sandbox, flags, script).run();
        assert_eq!((run.exit, run.out()), (Exit::Code(7), String::new()), "{flags:?}: {}", run.err());
        assert!(run.err().contains("a command that has been run"), "{}", run.err());
    }
}
