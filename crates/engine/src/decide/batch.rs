//! Many issues in one GraphQL query: which query, and what its answer says of each number.
//!
//! Only the forge's own "there is none" makes a number *missing*. Whatever else keeps an issue from being
//! read whole (a failure, an answer cut short, an error that names no issue) leaves it *unread*: to be
//! asked for again, never believed.

use serde::Deserialize;
use serde_json::{Map, Value};

/// Issues a query. At 100 labels each that is 4,040 nodes of the 500,000 one query may ask for: one point.
pub const PER_QUERY: usize = 40;

/// The largest number GraphQL's `Int` holds.
pub const MAX_NUMBER: u64 = i32::MAX as u64;

/// What can be asked of an issue besides its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// `title`.
    Title,
    /// `state`: `OPEN`, `CLOSED`, of a pull request also `MERGED`.
    State,
    /// `body`.
    Body,
    /// `labels`, all of them.
    Labels,
    /// `closedAt`, null while it is open.
    ClosedAt,
}

impl Field {
    /// Every field.
    pub const ALL: [Field; 5] = [Field::Title, Field::State, Field::Body, Field::Labels, Field::ClosedAt];

    /// What is read when nothing else is asked for.
    pub const USUAL: [Field; 4] = [Field::Title, Field::State, Field::Body, Field::Labels];

    /// The name that gh's `--json` and JS callers use.
    pub fn as_str(self) -> &'static str {
        match self {
            Field::Title => "title",
            Field::State => "state",
            Field::Body => "body",
            Field::Labels => "labels",
            Field::ClosedAt => "closedAt",
        }
    }

    /// The field of that name.
    pub fn parse(name: &str) -> Option<Field> {
        Field::ALL.into_iter().find(|field| field.as_str() == name)
    }
}

/// A query over `numbers`: `$owner` and `$name` are its variables.
pub fn query(numbers: &[u64], fields: &[Field]) -> String {
    let issues: String =
        numbers.iter().map(|n| format!("i{n}:issueOrPullRequest(number:{n}){{...I ...P}}")).collect();
    let (issue, pull) = (selection(fields, "state"), selection(fields, "pullState:state"));
    format!(
        "{HEAD}{{repository(owner:$owner,name:$name){{{issues}}}}} \
         fragment I on Issue{{__typename number {issue}}} fragment P on PullRequest{{__typename number {pull}}}{LABELS}",
        LABELS = if fields.contains(&Field::Labels) { LABELS } else { "" }
    )
}

/// A query for the labels that follow: each issue's number and the end of the page before.
pub fn more_labels(after: &[(u64, String)]) -> String {
    // A GraphQL string is written as a JSON string.
    let page = |(n, cursor): &(u64, String)| {
        let (on, cursor) = ("labels(first:100,after:", Value::from(cursor.as_str()));
        format!(
            "i{n}:issueOrPullRequest(number:{n}){{__typename ...on Issue{{{on}{cursor}){{...L}}}} \
             ...on PullRequest{{{on}{cursor}){{...L}}}}}}"
        )
    };
    let pages: String = after.iter().map(page).collect();
    format!("{HEAD}{{repository(owner:$owner,name:$name){{{pages}}}}}{LABELS}")
}

const HEAD: &str = "query BatchIssues($owner:String!,$name:String!)";
const LABELS: &str =
    " fragment L on LabelConnection{nodes{id name description color} pageInfo{hasNextPage endCursor}}";

/// An issue's state and a pull request's are of different types, which one name may not carry.
fn selection(fields: &[Field], state: &str) -> String {
    let each = |field: &Field| match field {
        Field::State => state.to_string(),
        Field::Labels => "labels(first:100){...L}".to_string(),
        other => other.as_str().to_string(),
    };
    fields.iter().map(each).collect::<Vec<_>>().join(" ")
}

/// What is known of one number.
#[derive(Clone, Debug, PartialEq)]
pub enum Read {
    /// The issue or pull request as JS callers see it.
    Issue(Map<String, Value>),
    /// The forge says there is none.
    Missing,
    /// Nothing that could be believed.
    Unread,
}

/// One number's part of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// What was read.
    pub read: Read,
    /// Where its labels go on, when they did not fit on the first page.
    pub labels_after: Option<String>,
    /// It is last-known state: the shim served it from its cache.
    pub is_cached: bool,
}

impl Part {
    /// A part that is whole as it stands.
    pub const fn live(read: Read) -> Part {
        Part { read, labels_after: None, is_cached: false }
    }
}

/// The part of a number of which nothing is known.
pub const UNREAD: Part = Part::live(Read::Unread);

/// What an answer of `gh api graphql` says of each number, in their order. `succeeded` is gh's exit 0; gh
/// fails on an answer with errors, so a failure without any is another failure, and nothing is believed.
pub fn read(numbers: &[u64], fields: &[Field], succeeded: bool, stdout: &[u8]) -> Vec<Part> {
    let answer = Answer::parse(succeeded, stdout);
    let part = |number: &u64| match answer.as_ref().map_or(Found::Nothing, |a| a.find(*number)) {
        Found::Nothing => UNREAD,
        Found::NoSuchIssue => Part::live(Read::Missing),
        Found::Node(node) => issue(node, fields).unwrap_or(UNREAD),
    };
    numbers.iter().map(part).collect()
}

/// A further page of an issue's labels, and where the next one starts. `None` when it was not read.
pub fn labels_page(number: u64, succeeded: bool, stdout: &[u8]) -> Option<(Vec<Value>, Option<String>)> {
    match Answer::parse(succeeded, stdout)?.find(number) {
        Found::Node(node) => page_of(node.get("labels")?),
        Found::Nothing | Found::NoSuchIssue => None,
    }
}

#[derive(Deserialize)]
struct Answer {
    data: Option<Data>,
    #[serde(default)]
    errors: Vec<Failure>,
}

#[derive(Deserialize)]
struct Data {
    repository: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
struct Failure {
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    path: Vec<Value>,
}

enum Found<'a> {
    Node(&'a Map<String, Value>),
    NoSuchIssue,
    Nothing,
}

impl Answer {
    fn parse(succeeded: bool, stdout: &[u8]) -> Option<Answer> {
        let answer: Answer = serde_json::from_slice(stdout).ok()?;
        // An error that names no issue may be about any of them.
        let named = answer.errors.iter().all(|error| error.alias().is_some());
        (named && succeeded == answer.errors.is_empty()).then_some(answer)
    }

    fn find(&self, number: u64) -> Found<'_> {
        let alias = format!("i{number}");
        let about: Vec<_> = self.errors.iter().filter(|error| error.alias() == Some(&alias)).collect();
        let node = self.data.as_ref().and_then(|data| data.repository.as_ref()).and_then(|r| r.get(&alias));
        match (node, &about[..]) {
            (Some(Value::Object(node)), []) => Found::Node(node),
            (Some(Value::Null), [error]) if error.is_no_such_issue() => Found::NoSuchIssue,
            _ => Found::Nothing,
        }
    }
}

impl Failure {
    /// The issue it is about: `["repository", "i12", …]`.
    fn alias(&self) -> Option<&str> {
        self.path.get(1).and_then(Value::as_str)
    }

    fn is_no_such_issue(&self) -> bool {
        self.kind.as_deref() == Some("NOT_FOUND") && self.path.len() == 2
    }
}

/// A node in the shape of `gh issue view --json`; `None` unless every field is there.
fn issue(node: &Map<String, Value>, fields: &[Field]) -> Option<Part> {
    let is_pull_request = match node.get("__typename")?.as_str()? {
        "Issue" => false,
        "PullRequest" => true,
        _ => return None,
    };
    let mut made = Map::new();
    made.insert("number".into(), node.get("number").filter(|n| n.is_u64())?.clone());
    let mut labels_after = None;
    for field in fields {
        let value = match field {
            Field::Title | Field::Body => text(node, field.as_str())?,
            Field::State if is_pull_request => text(node, "pullState")?,
            Field::State => text(node, "state")?,
            Field::ClosedAt => node.get("closedAt").filter(|at| at.is_string() || at.is_null())?.clone(),
            Field::Labels => {
                let (labels, after) = page_of(node.get("labels")?)?;
                labels_after = after;
                labels.into()
            }
        };
        made.insert(field.as_str().into(), value);
    }
    made.insert("isPullRequest".into(), is_pull_request.into());
    Some(Part { labels_after, ..Part::live(Read::Issue(made)) })
}

fn text(node: &Map<String, Value>, name: &str) -> Option<Value> {
    node.get(name).filter(|value| value.is_string()).cloned()
}

/// The labels of one page as gh prints them, and where the next page starts.
fn page_of(connection: &Value) -> Option<(Vec<Value>, Option<String>)> {
    let labels = connection.get("nodes")?.as_array()?.iter().map(label).collect::<Option<Vec<_>>>()?;
    let page = connection.get("pageInfo")?;
    match page.get("hasNextPage")?.as_bool()? {
        // A page that leads nowhere is no page: its labels would be taken for all of them.
        true => Some((labels, Some(page.get("endCursor")?.as_str()?.to_string()))),
        false => Some((labels, None)),
    }
}

fn label(node: &Value) -> Option<Value> {
    let mut label = node.as_object()?.clone();
    label.get("name")?.as_str()?;
    // gh prints no description as an empty one.
    if label.get("description").is_some_and(Value::is_null) {
        label.insert("description".into(), "".into());
    }
    Some(label.into())
}

/// The arguments by which gh reads one issue on its own.
pub fn view_args(number: u64, fields: &[Field], repo: Option<&str>) -> Vec<String> {
    let names: Vec<_> = ["number", "url"].into_iter().chain(fields.iter().map(|f| f.as_str())).collect();
    let mut args = vec!["issue".into(), "view".into(), number.to_string(), "--json".into(), names.join(",")];
    args.extend(repo.into_iter().flat_map(|repo| ["-R".to_string(), repo.to_string()]));
    args
}

/// What a single `gh issue view --json …` says. `exit` is gh's code, none when it was killed.
///
/// gh asks for the first 100 labels and no more: with that many, the part says so by a
/// [`labels_after`](Part::labels_after) that is empty.
pub fn read_view(number: u64, fields: &[Field], exit: Option<i32>, stdout: &[u8], stderr: &[u8]) -> Part {
    match exit {
        Some(0) => {
            let part = view(fields, stdout).unwrap_or(UNREAD);
            Part { is_cached: says(stderr, "[forge-cache] served from cache"), ..part }
        }
        Some(1) if says_no_such_issue(number, stderr) => Part::live(Read::Missing),
        _ => UNREAD,
    }
}

fn view(fields: &[Field], stdout: &[u8]) -> Option<Part> {
    let node: Map<String, Value> = serde_json::from_slice(stdout).ok()?;
    let mut made = Map::new();
    made.insert("number".into(), node.get("number").filter(|n| n.is_u64())?.clone());
    for field in fields {
        made.insert(field.as_str().into(), node.get(field.as_str())?.clone());
    }
    made.insert("isPullRequest".into(), node.get("url")?.as_str()?.contains("/pull/").into());
    let full = made.get("labels").and_then(Value::as_array).is_some_and(|labels| labels.len() >= 100);
    Some(Part { labels_after: full.then(String::new), ..Part::live(Read::Issue(made)) })
}

fn says_no_such_issue(number: u64, stderr: &[u8]) -> bool {
    says(
        stderr,
        &format!("GraphQL: Could not resolve to an issue or pull request with the number of {number}."),
    )
}

fn says(stderr: &[u8], start: &str) -> bool {
    String::from_utf8_lossy(stderr).lines().any(|line| line.starts_with(start))
}

#[cfg(test)]
#[path = "batch_tests.rs"]
mod tests;
