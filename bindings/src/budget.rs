//! `scripts/forge/budget.js`.

use engine::decide::resource::Resource;
use engine::ops::Context;
use engine::ops::budget;
use engine::ops::measure::{self, Came};
use napi_derive::napi;

use crate::convert::{Call, Result, thrown};

/// The line for `bob doctor`.
#[napi(object, object_from_js = false)]
pub struct BudgetDoctorLine {
    /// INFO or WARN.
    pub level: &'static str,
    /// The line.
    pub text: String,
}

/// The report, as `bob-forge-quota/1`.
#[napi(catch_unwind)]
pub fn budget_document(call: Call) -> Result<String> {
    budget::document(&call.into()).map(|document| document.to_string()).map_err(thrown)
}

/// Its compact form.
#[napi(catch_unwind)]
pub fn budget_compact(call: Call) -> Result<String> {
    budget::compact(&call.into()).map(|document| document.to_string()).map_err(thrown)
}

/// The line for `bob doctor`.
#[napi(catch_unwind)]
pub fn budget_doctor_line(call: Call) -> Result<BudgetDoctorLine> {
    let (level, text) = budget::doctor_line(&call.into()).map_err(thrown)?;
    Ok(BudgetDoctorLine { level: level.as_str(), text })
}

/// Reads the quota now, with the environment of `call`.
#[napi(catch_unwind)]
pub fn budget_refresh(call: Call) -> Result<bool> {
    budget::refresh(&call.into()).map_err(thrown)
}

/// The quota that argv spends; null for none.
#[napi(catch_unwind)]
pub fn budget_resource_for(call: Call, args: Vec<String>) -> Option<&'static str> {
    let args: Vec<_> = args.into_iter().map(Into::into).collect();
    budget::resource_for(&Context::from(call), &args).map(Resource::as_str)
}

/// What the gate would do with argv now, as `bob-forge-plan/1`.
#[napi(catch_unwind)]
pub fn budget_plan(call: Call, args: Vec<String>) -> Result<String> {
    let args: Vec<_> = args.into_iter().map(Into::into).collect();
    budget::plan(&call.into(), &args).map(|plan| plan.to_string()).map_err(thrown)
}

/// Cuts the logs to their bounds.
#[napi(catch_unwind)]
pub fn budget_trim(call: Call) -> Result<String> {
    budget::trim(&call.into()).map(|trimmed| trimmed.to_string()).map_err(thrown)
}

/// Runs a command and measures it, with the environment of `call`: `bob-forge-measure/1`.
#[napi(catch_unwind)]
pub fn budget_measure(call: Call, command: Vec<String>, stdout_is_ours: bool) -> Result<String> {
    let command: Vec<_> = command.into_iter().map(Into::into).collect();
    match measure::measure(&call.into(), &command, stdout_is_ours).map_err(thrown)? {
        Came::Measured(measured) => Ok(measured.to_json().to_string()),
        Came::Unmeasured(_, e) => Err(thrown(e)),
    }
}
