//! `forge budget measure`.

use engine::decide::signal::Ended as End;
use engine::ops::{Context, measure};

use super::args::BudgetMeasure;
use super::{Ended, Output};

/// Runs the command and reports on it; ends as the command ended.
pub fn run(context: &Context, args: &BudgetMeasure, output: &mut Output) -> Ended {
    let measured = measure::measure(context, &args.command, args.json)?;
    output.stdout = if args.json { format!("{}\n", measured.to_json()) } else { measured.text() };
    Ok(match measured.ended {
        End::Code(code) => u8::try_from(code).unwrap_or(u8::MAX),
        End::Signal(number) => {
            output.signal = Some(number);
            u8::try_from(128 + number).unwrap_or(u8::MAX)
        }
    })
}
