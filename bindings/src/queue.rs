//! `scripts/forge/queue.js`.

use std::ffi::OsString;

use engine::decide::entry::Status;
use engine::decide::plan::{GhEnv, plan};
use engine::decide::signal::Signal;
use engine::error::Error;
use engine::ops::Context;
use engine::ops::queue::{self, admit, dropped_json, entry_json, overview, status_json};
use engine::ops::replay::{self, Options};
use napi::bindgen_prelude::Uint8Array;
use napi_derive::napi;
use serde_json::{Value, json};

use crate::convert::{Call, Result, thrown, whole};

/// What waits and what does not arrive by itself, as `bob-forge-queue-status/1`.
#[napi(catch_unwind)]
pub fn queue_status(call: Call) -> Result<String> {
    let context = Context::from(call);
    let view = queue::view(&context).map_err(thrown)?;
    Ok(status_json(&view, context.clock.now_s()).to_string())
}

/// The compact form, for surfaces that show many queues.
#[napi(catch_unwind)]
pub fn queue_overview(call: Call) -> Result<String> {
    let context = Context::from(call);
    let view = queue::view(&context).map_err(thrown)?;
    Ok(serde_json::to_string(&overview(&view, context.clock.now_s())).unwrap_or_default())
}

/// The entries that wait, or all of them, in replay order.
#[napi(catch_unwind)]
pub fn queue_list(call: Call, all: bool) -> Result<String> {
    let view = queue::view(&call.into()).map_err(thrown)?;
    let entries = view.loaded.found.iter().filter_map(|found| found.entry());
    let wanted = entries.filter(|entry| all || entry.status == Status::Pending).map(entry_json);
    Ok(Value::from(wanted.collect::<Vec<_>>()).to_string())
}

/// One entry, body included.
#[napi(catch_unwind)]
pub fn queue_show(call: Call, id: String) -> Result<String> {
    let shown = queue::show(&call.into(), &id).map_err(thrown)?;
    let mut document = entry_json(&shown.entry);
    document["body"] = json!(shown.body.ok().map(|body| String::from_utf8_lossy(&body).into_owned()));
    document["sealed"] = json!(shown.is_sealed);
    Ok(document.to_string())
}

/// Sets one entry aside and returns it, with what waits for it.
#[napi(catch_unwind)]
pub fn queue_drop(call: Call, id: String) -> Result<String> {
    queue::drop(&call.into(), &id).map(|dropped| dropped_json(&dropped).to_string()).map_err(thrown)
}

/// Removes every entry; how many.
#[napi(catch_unwind)]
pub fn queue_clear(call: Call) -> Result<f64> {
    queue::clear(&call.into()).map(|cleared| cleared.removed as f64).map_err(thrown)
}

/// Queues a write and returns its entry, the depth and its handle's URL.
#[napi(catch_unwind)]
pub fn queue_enqueue(
    call: Call,
    args: Vec<String>,
    body: Option<Uint8Array>,
    signal: Option<String>,
) -> Result<String> {
    let context = Context::from(call);
    if let Some(name) = signal.as_deref().filter(|name| Signal::parse(name).is_none()) {
        return Err(thrown(Error::usage(format!("{name:?} is no signal"))));
    }
    let args = words(&args);
    let planned = plan(&args, &GhEnv::of(&context));
    let args = queue::resolve_call(&context, &planned, &args).map_or(args, |resolved| resolved.args);
    let spooled = admit(&context, &args, body.as_deref())
        .and_then(|ready| queue::spool(&context, &ready, signal.as_deref(), None))
        .map_err(thrown)?;
    let mut document = entry_json(&spooled.entry);
    document["depth"] = json!(spooled.depth);
    document["url"] = json!(spooled.handle_url);
    Ok(document.to_string())
}

/// How a replay is wanted.
#[napi(object)]
pub struct QueueReplayOptions {
    /// Whether to deliver.
    pub apply: bool,
    /// Whether only a marked project is replayed.
    pub marked_only: bool,
    /// Most entries to deliver.
    pub batch: Option<f64>,
    /// Entries that may go without a seal.
    pub accept: Vec<u32>,
}

/// Replays the queue, with the environment of `call`, as `bob-forge-replay/1`.
#[napi(catch_unwind)]
pub fn queue_replay(call: Call, options: QueueReplayOptions) -> Result<String> {
    let QueueReplayOptions { apply, marked_only, batch, accept } = options;
    let batch = whole(batch).unwrap_or(0);
    let options = Options { apply, marked_only, batch, accept, is_automatic: marked_only };
    replay::replay(&call.into(), &options).map(|report| report.to_json().to_string()).map_err(thrown)
}

/// The number that a handle stands for.
#[napi(catch_unwind)]
pub fn queue_resolve(call: Call, handle: String) -> Result<Option<f64>> {
    queue::resolve(&call.into(), &handle).map(|number| number.map(|n| n as f64)).map_err(thrown)
}

/// Whether a call would be queued here when the forge cannot take it; a body on stdin counts as given.
#[napi(catch_unwind)]
pub fn queue_is_queueable(call: Call, args: Vec<String>) -> bool {
    let (context, args) = (Context::from(call), words(&args));
    let given = (queue::body_source(&args) == Some(queue::Body::Stdin)).then_some(&b"x"[..]);
    context.settings.queue.enabled && admit(&context, &args, given).is_ok()
}

fn words(args: &[String]) -> Vec<OsString> {
    args.iter().map(Into::into).collect()
}
