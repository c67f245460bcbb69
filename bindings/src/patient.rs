//! `scripts/forge/patient.js`.

use std::ffi::OsString;

use engine::decide::patient::Outcome;
use engine::ops::patient;
use napi_derive::napi;

use crate::convert::{Call, whole};

/// How an attempt ended.
#[napi(object)]
pub struct PatientOutcome {
    /// gh's exit code, where there is one.
    pub exit: Option<i32>,
    /// Its standard error.
    pub stderr: String,
    /// Its time was up.
    pub timed_out: bool,
    /// It was ended by SIGKILL.
    pub was_cut_off: bool,
    /// Milliseconds.
    pub elapsed: f64,
    /// What the gate would have made it wait, in seconds.
    pub wait: f64,
}

/// Room for an attempt: `{timeout, wait, env}`.
#[napi(catch_unwind)]
pub fn patient_attempt(
    call: Call,
    args: Vec<String>,
    timeout: Option<f64>,
    caller: Option<String>,
    is_again: bool,
) -> String {
    patient::attempt(&call.into(), &words(args), whole(timeout), caller, is_again).to_json()
}

/// Whether the call is run once more.
#[napi(catch_unwind)]
pub fn patient_again(call: Call, args: Vec<String>, outcome: PatientOutcome) -> bool {
    let PatientOutcome { exit, stderr, timed_out, was_cut_off, elapsed, wait } = outcome;
    let (elapsed_ms, wait_s) = (elapsed as u64, wait as u64);
    let outcome = Outcome { exit, stderr, timed_out, was_cut_off, elapsed_ms, wait_s };
    patient::again(&call.into(), &words(args), &outcome)
}

fn words(args: Vec<String>) -> Vec<OsString> {
    args.into_iter().map(Into::into).collect()
}
