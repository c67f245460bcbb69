//! `scripts/forge/cache.js`.

use std::ffi::OsString;

use engine::ops::Context;
use engine::ops::cache;
use napi::bindgen_prelude::{Buffer, Uint8Array};
use napi_derive::napi;

use crate::convert::{Call, Result, thrown};

/// A stored answer.
#[napi(object, object_from_js = false)]
pub struct CacheAnswer {
    /// The exact bytes.
    pub bytes: Buffer,
    /// Its age in seconds.
    pub age_seconds: f64,
    /// When it was asked for, in epoch seconds.
    pub stored_at: f64,
}

/// What was dropped.
#[napi(object, object_from_js = false)]
pub struct CacheCleared {
    /// Answers.
    pub entries: f64,
    /// Bytes of their files.
    pub bytes: f64,
}

/// What this project's cache holds, as `bob-forge-cache/1`.
#[napi(catch_unwind)]
pub fn cache_status(call: Call) -> Result<String> {
    cache::status(&call.into()).map(|status| status.to_json()).map_err(thrown)
}

/// Drops every answer of this project.
#[napi(catch_unwind)]
pub fn cache_clear(call: Call) -> Result<CacheCleared> {
    let (entries, bytes) = cache::clear(&call.into()).map_err(thrown)?.unwrap_or_default();
    Ok(CacheCleared { entries: entries as f64, bytes: bytes as f64 })
}

/// What a failing call of this argv would be served now; null for nothing.
#[napi(catch_unwind)]
pub fn cache_lookup(call: Call, args: Vec<String>) -> Option<CacheAnswer> {
    let cache::Answer { bytes, age_s, stored_at } = cache::lookup(&call.into(), &words(args))?;
    Some(CacheAnswer { bytes: bytes.into(), age_seconds: age_s as f64, stored_at: stored_at as f64 })
}

/// Stores an answer; false when it is not one that is kept.
#[napi(catch_unwind)]
pub fn cache_store(call: Call, args: Vec<String>, bytes: Uint8Array) -> Result<bool> {
    cache::store(&call.into(), &words(args), &bytes).map_err(thrown)
}

/// Whether argv is one of the reads that are cached.
#[napi(catch_unwind)]
pub fn cache_is_cacheable(call: Call, args: Vec<String>) -> bool {
    cache::is_cacheable(&Context::from(call), &words(args))
}

/// The name of the question that argv asks here; null for one that is not cached.
#[napi(catch_unwind)]
pub fn cache_key_for(call: Call, args: Vec<String>) -> Option<String> {
    cache::key_for(&call.into(), &words(args))
}

fn words(args: Vec<String>) -> Vec<OsString> {
    args.into_iter().map(Into::into).collect()
}
