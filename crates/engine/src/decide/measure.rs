//! What one command cost: calls of gh, counted exactly, and points of the token (`bob-forge-measure/1`).

use serde_json::{Map, Value, json};

use super::reading::{Each, Quota};
use super::resource::Resource;
use super::signal::Ended;

/// One call of gh as the recorder notes it: a line of two columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Command and subcommand (`issue list`), never an operand.
    pub command: String,
    /// The quota it spends.
    pub resource: Option<Resource>,
}

impl Call {
    /// The line, with its end.
    pub fn line(&self) -> String {
        format!("{}\t{}\n", self.command, self.resource.map_or("-", Resource::as_str))
    }

    /// The calls of a whole record. A torn line is a call all the same.
    pub fn read_all(text: &str) -> Vec<Call> {
        let call = |line: &str| {
            let (command, quota) = line.split_once('\t').unwrap_or((line, "-"));
            Call { command: command.to_string(), resource: Resource::parse(quota) }
        };
        text.lines().map(call).collect()
    }
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    /// The command's words.
    pub command: Vec<String>,
    /// How it ended.
    pub ended: Ended,
    /// How long it took, in milliseconds.
    pub wall_ms: u64,
    /// Its calls of gh.
    pub calls: Vec<Call>,
    /// The token's quotas before it.
    pub before: Each<Option<Quota>>,
    /// And after it.
    pub after: Each<Option<Quota>>,
}

impl Measured {
    /// The document.
    pub fn to_json(&self) -> Value {
        let (exit, signal) = match self.ended {
            Ended::Code(code) => (Some(code), None),
            Ended::Signal(number) => (None, Some(number)),
        };
        let counted =
            |quota: Option<Resource>| self.calls.iter().filter(|call| call.resource == quota).count();
        let by_quota = |value: &dyn Fn(Resource) -> Value| {
            Resource::ALL.map(|r| (r.as_str().to_string(), value(r))).into_iter().collect::<Map<_, _>>()
        };
        let mut calls_by_quota = by_quota(&|r| counted(Some(r)).into());
        calls_by_quota.insert("none".into(), counted(None).into());
        json!({
            "schema": "bob-forge-measure/1",
            "command": self.command,
            "exit": exit,
            "signal": signal,
            "wallMs": self.wall_ms,
            "calls": self.calls.len(),
            "byCommand": self.by_command().into_iter().map(|(c, n)| (c.to_string(), n.into())).collect::<Map<_, _>>(),
            "byQuota": calls_by_quota,
            "points": by_quota(&|r| self.points(r).into()),
            "quota": {
                "before": by_quota(&|r| quota(self.before[r])),
                "after": by_quota(&|r| quota(self.after[r])),
            },
        })
    }

    /// The same in a few lines.
    pub fn text(&self) -> String {
        let named = |(command, times): (&str, usize)| match command {
            "-" => format!("other {times}"),
            _ => format!("{command} {times}"),
        };
        let by_command: Vec<_> = self.by_command().into_iter().map(named).collect();
        let by_command =
            if by_command.is_empty() { String::new() } else { format!(" ({})", by_command.join(", ")) };
        let points = |r: Resource| {
            let points = self.points(r).map_or("unknown".into(), |points| points.to_string());
            format!("{} {points}", r.as_str())
        };
        let ended = match self.ended {
            Ended::Code(code) => format!("exit {code}"),
            Ended::Signal(number) => format!("killed by signal {number}"),
        };
        format!(
            "measured: {}\n  gh calls: {}{by_command}\n  wall time: {}.{} s, {ended}\n  \
             points the token spent meanwhile: {} (other sessions' included)\n",
            self.command.join(" "),
            self.calls.len(),
            self.wall_ms / 1_000,
            self.wall_ms % 1_000 / 100,
            Resource::ALL.map(points).join(", "),
        )
    }

    /// The commands with how often each was called, the most frequent first.
    fn by_command(&self) -> Vec<(&str, usize)> {
        let mut counts: Vec<(&str, usize)> = Vec::new();
        for call in &self.calls {
            match counts.iter_mut().find(|(command, _)| *command == call.command) {
                Some((_, times)) => *times += 1,
                None => counts.push((&call.command, 1)),
            }
        }
        counts.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        counts
    }

    /// The rise in `used`, or what the new window has used when the quota was reset meanwhile.
    fn points(&self, resource: Resource) -> Option<u64> {
        let (before, after) = (self.before[resource]?, self.after[resource]?);
        let is_new_window = after.reset_at > before.reset_at && after.used < before.used;
        Some(if is_new_window { after.used } else { after.used.saturating_sub(before.used) })
    }
}

fn quota(quota: Option<Quota>) -> Value {
    quota.map_or(Value::Null, |Quota { limit, remaining, used, reset_at }| {
        json!({"limit": limit, "remaining": remaining, "used": used, "resetAt": reset_at})
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(used: (u64, u64), resets: (u64, u64)) -> Measured {
        let quota = |used, reset_at| Some(Quota { limit: 5_000, remaining: 5_000 - used, used, reset_at });
        let call = |command: &str, resource| Call { command: command.into(), resource };
        Measured {
            command: vec!["node".into(), "x.js".into()],
            ended: Ended::Code(3),
            wall_ms: 3_940,
            calls: vec![
                call("issue view", Some(Resource::Graphql)),
                call("api graphql", Some(Resource::Graphql)),
                call("api graphql", Some(Resource::Graphql)),
                call("auth status", None),
            ],
            before: Each { graphql: quota(used.0, resets.0), ..Each::default() },
            after: Each { graphql: quota(used.1, resets.1), ..Each::default() },
        }
    }

    #[test]
    fn the_document_counts_calls_and_points() {
        let document = measured((10, 13), (100, 100)).to_json();
        assert_eq!(document["schema"], "bob-forge-measure/1");
        assert_eq!(
            (&document["exit"], &document["signal"], &document["calls"]),
            (&json!(3), &Value::Null, &json!(4))
        );
        assert_eq!(document["byCommand"], json!({"api graphql": 2, "issue view": 1, "auth status": 1}));
        assert_eq!(document["byQuota"], json!({"graphql": 3, "core": 0, "search": 0, "none": 1}));
        assert_eq!(document["points"], json!({"graphql": 3, "core": null, "search": null}));
        assert_eq!(document["quota"]["after"]["graphql"]["used"], 13);
    }

    #[test]
    fn a_reset_between_the_reads_leaves_what_the_new_window_used() {
        assert_eq!(measured((900, 2), (100, 3_700)).points(Resource::Graphql), Some(2));
        // The forge moves the reset of a window that is still empty.
        assert_eq!(measured((0, 2), (100, 101)).points(Resource::Graphql), Some(2));
        assert_eq!(measured((5, 4), (100, 100)).points(Resource::Graphql), Some(0));
    }

    #[test]
    fn the_text_says_it_in_four_lines() {
        let expected = "measured: node x.js\n  gh calls: 4 (api graphql 2, auth status 1, issue view 1)\n  \
                        wall time: 3.9 s, exit 3\n  points the token spent meanwhile: graphql 3, core unknown, \
                        search unknown (other sessions' included)\n";
        assert_eq!(measured((10, 13), (100, 100)).text(), expected);
    }

    #[test]
    fn a_call_survives_its_line() {
        let call = Call { command: "issue view".into(), resource: Some(Resource::Graphql) };
        let torn = Call { command: "pr li".into(), resource: None };
        assert_eq!(Call::read_all(&format!("{}pr li", call.line())), [call, torn]);
    }
}
