//! The forge's weather: calm, and every kind of failure, one after the other.

use std::time::Duration;

use serde_json::{Value, json};

use crate::Stage;
use crate::support::dice::Dice;

/// Kinds of failure, and which requests they hit.
///
/// None of those by which a forge says that a write is impossible (404, 410, 422): they are its answer, and what
/// it refuses is not delivered.
const KINDS: [(&str, &str); 22] = [
    ("500", "any"),
    ("502", "any"),
    ("502", "mutation"),
    ("503", "any"),
    ("503", "read"),
    ("503", "mutation"),
    ("504", "any"),
    ("drop", "any"),
    ("drop", "mutation"),
    ("401", "any"),
    ("403", "any"),
    ("429", "any"),
    ("primary", "any"),
    ("secondary", "any"),
    ("secondary", "mutation"),
    ("cut", "any"),
    ("hang", "any"),
    ("hang", "mutation"),
    ("applied-then-drop", "mutation"),
    ("applied-then-502", "mutation"),
    ("applied-then-504", "mutation"),
    ("applied-then-hang", "mutation"),
];

/// Makes weather until it is over.
pub fn make(stage: &Stage, mut dice: Dice) {
    while !stage.is_over() {
        let (kind, on) = *dice.one_of(&KINDS);
        let mut fault = json!({"fault": kind, "on": on});
        if kind == "primary" || kind == "secondary" || kind == "429" {
            fault[if kind == "primary" { "reset_in_s" } else { "retry_after_s" }] =
                Value::from(1 + dice.below(3));
        }
        if dice.once_in(3) {
            fault["times"] = Value::from(1 + dice.below(6));
        }
        let mut faults = vec![fault];
        if dice.once_in(4) {
            faults.push(json!({"fault": "latency", "ms": dice.below(400)}));
        }
        stage.forge.control("POST", "/_forge/fault", &Value::from(faults).to_string());
        stage.model.lock().unwrap().outages += 1;
        pause(stage, 500 + dice.below(3_500));
        stage.forge.control("DELETE", "/_forge/faults", "");
        pause(stage, dice.below(8_000));
    }
}

/// Sleeps, but not past the end.
pub fn pause(stage: &Stage, ms: u64) {
    for _ in 0..ms / 50 + 1 {
        if stage.is_over() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
