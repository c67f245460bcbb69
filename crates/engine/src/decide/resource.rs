//! Which of GitHub's quotas a call spends (#3190).

use super::argv::{Named, Parsed};
use super::commands;
use super::repo;

/// The words that ask `gh` for the token's quotas: the cheapest real call there is. It needs no repository and
/// spends no quota.
pub const READ_QUOTA: [&str; 2] = ["api", "rate_limit"];

/// One of the quotas the budget knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resource {
    /// 5,000 points an hour.
    Graphql,
    /// 5,000 REST requests an hour.
    Core,
    /// The search API's own, per minute.
    Search,
}

impl Resource {
    /// Every quota, in the order every file and report uses.
    pub const ALL: [Resource; 3] = [Resource::Graphql, Resource::Core, Resource::Search];

    /// The name that files and messages use.
    pub fn as_str(self) -> &'static str {
        match self {
            Resource::Graphql => "graphql",
            Resource::Core => "core",
            Resource::Search => "search",
        }
    }

    /// The quota with this name.
    pub fn parse(name: &str) -> Option<Resource> {
        Resource::ALL.into_iter().find(|r| r.as_str() == name)
    }
}

/// What a call spends: the quota its column names, and what else the ledger counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spends {
    pub(super) main: Option<Resource>,
    pub(super) extra: &'static [(Resource, u8)],
}

impl Spends {
    /// Nothing.
    pub(super) const NOTHING: Spends = Spends { main: None, extra: &[] };
}

/// What a call would spend on github.com. An unknown first word spends nothing that is known: an
/// extension that calls `gh` is counted there.
pub(super) fn spends(call: &Parsed<'_>) -> Spends {
    match call.named {
        Named::Command("api") => Spends { main: endpoint(call).and_then(Endpoint::spends), extra: &[] },
        Named::Nothing | Named::Unknown { .. } => Spends::NOTHING,
        Named::Command(path) | Named::Group(path) | Named::UnknownIn { group: path, .. } => {
            commands::row(path).map_or(Spends::NOTHING, |row| Spends { main: row.1, extra: row.2 })
        }
    }
}

/// What `gh api` is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Endpoint<'a> {
    /// The host, where the operand is a full URL.
    pub(super) host: Option<&'a str>,
    /// The path without its leading slash, query and fragment.
    pub(super) path: &'a str,
}

impl Endpoint<'_> {
    /// Whether it is the GraphQL endpoint.
    pub(super) fn is_graphql(self) -> bool {
        self.path == "graphql"
    }

    fn spends(self) -> Option<Resource> {
        match self.path {
            "graphql" => Some(Resource::Graphql),
            // The one endpoint that costs no quota.
            "rate_limit" => None,
            path if path.starts_with("search/") => Some(Resource::Search),
            _ => Some(Resource::Core),
        }
    }
}

/// The endpoint of a `gh api` call; `None` without an operand (a usage error) or for one that is no
/// UTF-8.
pub(super) fn endpoint<'a>(call: &Parsed<'a>) -> Option<Endpoint<'a>> {
    let text = call.operands.first()?.text.to_str()?;
    let (host, path) = match repo::without_scheme(text) {
        Some(rest) => match rest.split_once('/') {
            Some((authority, path)) => (repo::host_of(authority), path),
            None => (repo::host_of(rest), ""),
        },
        None => (None, text.strip_prefix('/').unwrap_or(text)),
    };
    Some(Endpoint { host, path: path.split(['?', '#']).next().unwrap_or_default() })
}
