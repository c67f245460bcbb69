//! `forge health`.

use engine::ops::Context;
use engine::ops::health::{self, Options, Report};

use super::args::{Health, HealthObservations, HealthRecord, HealthStatus, HealthVerb};
use super::{Ended, Output, render};

/// Runs one verb; without one it is `status`.
pub fn run(context: &Context, noun: Health, output: &mut Output) -> Ended {
    match noun.verb {
        None => status(context, &noun.status, output),
        Some(HealthVerb::Status(args)) => status(context, &args, output),
        Some(HealthVerb::Record(args)) => record(context, args, output),
        Some(HealthVerb::Observations(args)) => observations(context, &args, output),
        Some(HealthVerb::Reset) => reset(context, output),
    }
}

fn status(context: &Context, args: &HealthStatus, output: &mut Output) -> Ended {
    let options = Options { probe: !args.no_probe, ttl_s: args.ttl, window_s: args.window };
    let status = health::status(context, &options);
    output.stderr.push_str(&render::ignored_settings(&context.settings));
    if let Some(trouble) = &status.trouble {
        output.stderr.push_str(&render::error(trouble));
    }
    output.stdout = if args.json { status.to_json() + "\n" } else { render::health(&status) };
    Ok(status.verdict.state.exit_code())
}

fn record(context: &Context, args: HealthRecord, output: &mut Output) -> Ended {
    let report = Report { rc: args.rc, ms: args.ms, signal: args.signal, sub: args.sub };
    let observation = health::record(context, &report)?;
    output.stdout = render::recorded(&observation);
    Ok(0)
}

fn observations(context: &Context, args: &HealthObservations, output: &mut Output) -> Ended {
    let evidence = health::observations(context, args.window)?;
    output.stdout = match args.json {
        true => evidence.to_json() + "\n",
        false => render::observations(&evidence, context.clock.now_s()),
    };
    Ok(0)
}

fn reset(context: &Context, output: &mut Output) -> Ended {
    health::reset(context)?;
    output.stdout = "forge: the evidence is forgotten; the next verdict starts from nothing\n".into();
    Ok(0)
}
