//! `forge budget measure`.

use engine::decide::signal::Ended as End;
use engine::ops::Context;
use engine::ops::measure::{self, Came};

use super::args::BudgetMeasure;
use super::{Ended, Output, render};

/// Runs the command and reports on it; ends as the command ended.
pub fn run(context: &Context, args: &BudgetMeasure, output: &mut Output) -> Ended {
    let ended = match measure::measure(context, &args.command, args.json)? {
        Came::Measured(measured) => {
            output.stdout = if args.json { format!("{}\n", measured.to_json()) } else { measured.text() };
            measured.ended
        }
        Came::Unmeasured(ended, e) => {
            output.stderr.push_str(&render::error(&e));
            ended
        }
    };
    Ok(match ended {
        End::Code(code) => u8::try_from(code).unwrap_or(u8::MAX),
        End::Signal(number) => {
            output.signal = Some(number);
            u8::try_from(128 + number).unwrap_or(u8::MAX)
        }
    })
}
