//! `scripts/forge/batch.js`.

use engine::decide::batch::Field;
use engine::ops::batch::{Wanted, read_issues};
use napi_derive::napi;

use crate::convert::{Call, Result, thrown, whole};

/// Which issues, and what of them.
#[napi(object)]
pub struct BatchWanted {
    /// Issue numbers.
    pub numbers: Vec<f64>,
    /// Names of fields.
    pub fields: Option<Vec<String>>,
    /// `[HOST/]OWNER/NAME`.
    pub repo: Option<String>,
    /// The gh to run.
    pub gh: Option<String>,
    /// Milliseconds that one call may take.
    pub timeout: Option<f64>,
}

impl From<BatchWanted> for Wanted {
    fn from(wanted: BatchWanted) -> Wanted {
        let BatchWanted { numbers, fields, repo, gh, timeout } = wanted;
        let named = |names: Vec<String>| names.iter().filter_map(|name| Field::parse(name)).collect();
        Wanted {
            numbers: numbers.into_iter().map(|n| n as u64).collect(),
            fields: fields.map_or_else(|| Field::USUAL.to_vec(), named),
            repo,
            gh: gh.map(Into::into),
            timeout_ms: whole(timeout),
        }
    }
}

/// Reads issues: `{issues: [[number, issue], …], missing, unread}`.
#[napi(catch_unwind)]
pub fn batch_read_issues(call: Call, wanted: BatchWanted) -> Result<String> {
    read_issues(&call.into(), &wanted.into()).map(|issues| issues.to_json()).map_err(thrown)
}

/// The names of the fields that can be asked for.
#[napi(catch_unwind)]
pub fn batch_fields() -> Vec<&'static str> {
    Field::ALL.map(Field::as_str).to_vec()
}

/// The largest issue number.
#[napi(catch_unwind)]
pub fn batch_max_number() -> f64 {
    engine::decide::batch::MAX_NUMBER as f64
}
