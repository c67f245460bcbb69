//! What waits goes first: before a write to an issue that has earlier ones waiting, and after a call that
//! succeeded.

use engine::decide::repo::Target;
use engine::decide::signal::{Outcome, Signal};
use engine::ops::queue::{self, View};
use engine::ops::{Context, replay};
use engine::process::ambient::environment;
use engine::process::exit;
use engine::process::invocation::{Invocation, variable};
use engine::settings::Settings;

use super::effects::shielded;

/// Why a write may not go now: earlier ones to its issue wait, and could not be delivered first.
pub fn in_the_way(context: &Context, targets: &[Target]) -> Option<String> {
    let number = |target: &Target| match target {
        Target::Number(number) | Target::Url(_, number) => Some(*number),
        Target::Handle(_) | Target::HandleUrl(..) => None,
    };
    let numbers: Vec<u64> = targets.iter().filter_map(number).collect();
    let waiting = |view: &View| {
        numbers.iter().map(|number| (*number, view.waiting_for(*number))).find(|(_, count)| *count > 0)
    };
    // Whatever waits here by this machine's own doing is marked: a healthy write reads no entry.
    if numbers.is_empty() || !replay::is_marked(context) {
        return None;
    }
    waiting(&queue::view(context).ok()?)?;
    if replay::is_due(context) {
        drain(context);
    }
    let (number, count) = waiting(&queue::view(context).ok()?)?;
    let writes =
        if count == 1 { "an earlier write is".to_string() } else { format!("{count} earlier writes are") };
    Some(format!("{writes} still queued for #{number}"))
}

/// After a call that succeeded: delivers what waits, where this project has anything.
pub fn after(invocation: &Invocation, outcome: Option<Outcome>) {
    if outcome.is_none_or(|outcome| outcome.signal != Signal::Ok) {
        return;
    }
    shielded(|| {
        let settings = Settings::read(&variable);
        if replay::may_be_due(&settings) {
            let context = Context::new(environment(), invocation.cwd.clone(), None);
            if replay::is_due(&context) {
                drain(&context);
            }
        }
    });
}

fn drain(context: &Context) {
    // Another replay, no gh, a queue that cannot be read: what waits goes on waiting.
    let Ok(report) = replay::replay(context, &replay::automatic(context)) else { return };
    if let Some(line) = report.line() {
        exit::say(&format!("[forge-queue] {line}"));
    }
}
