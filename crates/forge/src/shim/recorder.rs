//! The shim as a recorder (`forge budget measure`): note the call, become the next gh.

use engine::decide::measure::Call;
use engine::process::invocation::{Invocation, variable};
use engine::process::recorder::{self, Measuring};
use engine::settings::MEASURE;

use super::{effects, judge};

/// Does a measured command's part, if this call belongs to one. A recorder becomes the next gh; a shim
/// that no recorder stood in front of notes the call and goes on.
pub fn note(invocation: &Invocation) {
    let Some(value) = variable(MEASURE).filter(|value| !value.is_empty()) else { return };
    let own = effects::shielded(|| {
        let plan = judge(invocation);
        let call = Call { command: plan.command.to_string(), resource: plan.resource };
        let own = recorder::own_folder();
        // A record that cannot be written is no reason to break a call.
        let _ = match &own {
            Some(folder) => recorder::note(folder, &call),
            None => Measuring::parse(&value).note(&call),
        };
        own
    });
    if let Some(folder) = own.flatten() {
        effects::refuse(&recorder::become_next(&invocation.argv, &folder, &value).to_string());
    }
}
