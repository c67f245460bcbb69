//! `forge cache`.

use engine::error::Error;
use engine::ops::Context;
use engine::ops::cache::{self, Status};

use super::args::{Cache, CacheVerb, Json};
use super::{Ended, Output, render};

/// Runs one verb; without one it is `status`.
pub fn run(context: &Context, noun: Cache, output: &mut Output) -> Ended {
    match noun.verb {
        None => status(context, &noun.status, output),
        Some(CacheVerb::Status(args)) => status(context, &args, output),
        Some(CacheVerb::Clear(args)) => clear(context, &args, output),
    }
}

fn status(context: &Context, args: &Json, output: &mut Output) -> Ended {
    output.stderr.push_str(&render::ignored_settings(&context.settings));
    let status = cache::status(context)?;
    output.stdout = if args.json { status.to_json() + "\n" } else { text(&status) };
    Ok(0)
}

fn clear(context: &Context, args: &Json, output: &mut Output) -> Ended {
    let (entries, bytes) =
        cache::clear(context)?.ok_or_else(|| Error::usage("there is no cache outside a git checkout"))?;
    output.stdout = match args.json {
        true => {
            format!("{{\"schema\":\"bob-forge-cache-clear/1\",\"entries\":{entries},\"bytes\":{bytes}}}\n")
        }
        false => format!("forge: dropped {entries} cached answer(s), {bytes} bytes\n"),
    };
    Ok(0)
}

/// One line about the whole, then one an answer, newest first.
fn text(status: &Status) -> String {
    let Some(project) = &status.project else {
        return "forge: no cache here: it belongs to a project, and this is no git checkout\n".into();
    };
    let (count, bytes, bound_s) = (status.rows.len(), status.bytes(), status.max_age_s);
    let mut text = format!("forge: {count} cached answer(s), {bytes} bytes, in {}\n", project.display());
    if !status.enabled {
        text += "the cache is turned off (BOB_FORGE_CACHE=0): nothing is stored and nothing is served\n";
    }
    for (row, age_s) in &status.rows {
        let age = age_s.map_or("from the future".into(), |age_s| format!("{age_s}s old"));
        let note =
            if status.is_fresh(*age_s) { String::new() } else { format!("  (past the bound of {bound_s}s)") };
        let place = if row.question.repo.is_empty() { &row.question.host } else { &row.question.repo };
        let words: Vec<_> = row.question.args.iter().map(|word| printable(word)).collect();
        text += &format!("  {age:<12}  {:>9} bytes  {place}  {}{note}\n", row.bytes, words.join(" "));
    }
    if status.damaged > 0 {
        text += &format!(
            "{} file(s) there are damaged or not this machine's; they are never served\n",
            status.damaged
        );
    }
    text
}

/// A word as a line can show it: nothing in it may move a terminal's cursor or end the line.
fn printable(word: &str) -> String {
    match word.is_empty() || word.contains(|c: char| c.is_whitespace() || render::is_hidden(c)) {
        true => format!("{word:?}"),
        false => word.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_cannot_break_its_line() {
        assert_eq!(printable("--label"), "--label");
        assert_eq!(printable("a b"), "\"a b\"");
        assert_eq!(printable("x\n\u{1b}[2J"), "\"x\\n\\u{1b}[2J\"");
        assert_eq!(printable("\u{202e}x"), "\"\\u{202e}x\"");
    }
}
