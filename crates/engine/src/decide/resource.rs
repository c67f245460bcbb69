//! Which of GitHub's quotas a call spends (#3190).

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
