//! `scripts/forge/health.js`.

use engine::decide::signal::{self, Ended, Signal};
use engine::decide::verdict::{State, classify_outcomes};
use engine::error::Error;
use engine::ops::health::{self, Options, Report, Row};
use napi_derive::napi;

use crate::convert::{Call, Result, thrown, whole};

/// How a status is wanted.
#[napi(object)]
pub struct HealthOptions {
    /// Whether the forge may be asked.
    pub probe: bool,
    /// Seconds a verdict is reused.
    pub ttl: Option<f64>,
    /// Seconds back that an observation is evidence.
    pub window: Option<f64>,
}

impl From<HealthOptions> for Options {
    fn from(options: HealthOptions) -> Options {
        Options { probe: options.probe, ttl_s: whole(options.ttl), window_s: whole(options.window) }
    }
}

/// A call that went past the shim.
#[napi(object)]
pub struct HealthReport {
    /// gh's exit code.
    pub rc: i32,
    /// Latency in milliseconds.
    pub ms: f64,
    /// The outcome's name.
    pub signal: Option<String>,
    /// Command and subcommand.
    pub sub: Option<String>,
}

/// The state as far as it is known without starting anything; null when a probe is needed.
#[napi(catch_unwind)]
pub fn health_known_state(call: Call, options: HealthOptions) -> Option<&'static str> {
    health::known_state(&call.into(), &options.into()).map(State::as_str)
}

/// The status as far as it is known without starting anything; null when a probe is needed.
#[napi(catch_unwind)]
pub fn health_known(call: Call, options: HealthOptions) -> Option<String> {
    health::known(&call.into(), &options.into()).map(|status| status.to_json())
}

/// The status; asks the forge when there is no evidence, with the environment of `call`.
#[napi(catch_unwind)]
pub fn health_status(call: Call, options: HealthOptions) -> String {
    health::status(&call.into(), &options.into()).to_json()
}

/// The verdict over `[[epoch or null, signal], …]`.
#[napi(catch_unwind)]
pub fn health_classify(outcomes: String, now: Option<f64>, window: f64) -> Result<String> {
    let usage = |e: serde_json::Error| thrown(Error::usage(e.to_string()));
    let named: Vec<(Option<u64>, String)> = serde_json::from_str(&outcomes).map_err(usage)?;
    let outcomes = named.into_iter().map(|(at, name)| Ok((at, parse(&name)?))).collect::<Result<Vec<_>>>()?;
    Ok(classify_outcomes(&outcomes, whole(now), window as u64).to_json())
}

/// The signal of one call; without an exit code it was killed.
#[napi(catch_unwind)]
pub fn health_classify_signal(exit: Option<i32>, stderr: String, args: Vec<String>) -> &'static str {
    let args: Vec<_> = args.into_iter().map(Into::into).collect();
    let ended = exit.map_or(Ended::Signal(0), Ended::Code);
    signal::classify(ended, stderr.as_bytes(), &args).signal.as_str()
}

/// Records a call and returns the observation.
#[napi(catch_unwind)]
pub fn health_record(call: Call, report: HealthReport) -> Result<String> {
    let signal = report.signal.as_deref().map(parse).transpose()?;
    let report = Report { rc: report.rc, ms: report.ms as u64, signal, sub: report.sub };
    health::record(&call.into(), &report).map(|row| Row::from(&row).to_json()).map_err(thrown)
}

/// The evidence inside the window, as `bob-forge-observations/1`.
#[napi(catch_unwind)]
pub fn health_observations(call: Call, window: Option<f64>) -> Result<String> {
    health::observations(&call.into(), whole(window)).map(|evidence| evidence.to_json()).map_err(thrown)
}

/// Forgets all evidence.
#[napi(catch_unwind)]
pub fn health_reset(call: Call) -> Result<()> {
    health::reset(&call.into()).map_err(thrown)
}

/// Asks the forge now, with the environment of `call`, and returns the observation.
#[napi(catch_unwind)]
pub fn health_probe(call: Call) -> Result<String> {
    health::probe(&call.into()).map(|row| Row::from(&row).to_json()).map_err(thrown)
}

/// The names of states and of signals, in the order of the specification's tables.
#[napi(object, object_from_js = false)]
pub struct HealthNames {
    /// States.
    pub states: Vec<&'static str>,
    /// An object: each state's exit code.
    pub exit_codes: String,
    /// Signals.
    pub signals: Vec<&'static str>,
}

/// The names that verdicts and observations use.
#[napi(catch_unwind)]
pub fn health_names() -> HealthNames {
    let codes = State::ALL.map(|state| (state.as_str().to_string(), state.exit_code().into()));
    HealthNames {
        states: State::ALL.map(State::as_str).to_vec(),
        exit_codes: serde_json::Value::Object(codes.into_iter().collect()).to_string(),
        signals: Signal::ALL.map(Signal::as_str).to_vec(),
    }
}

fn parse(name: &str) -> Result<Signal> {
    let names = || Signal::ALL.map(Signal::as_str).join(", ");
    let unknown = || thrown(Error::usage(format!("{name:?} is no signal; it is one of {}", names())));
    Signal::parse(name).ok_or_else(unknown)
}
