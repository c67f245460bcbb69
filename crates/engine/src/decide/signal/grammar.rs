//! One line → what it says, by the shapes gh prints.
//!
//! A shape counts where a message may start (see [`super::starts`]); the leftmost one owns the rest of
//! the line.

use super::starts::{Starts, after_decoration, closing, may_open};
use super::texts::{GRAPHQL, LIMIT_STARTS, LIMITS, REASONS, STARTS, WHOLE};
use super::transport::{BEFORE_STATUS, CURL_NET, GO_LOCAL, GO_NET, HUNG_UP};
use super::{Limit, Signal};

/// What one line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// A rate limit, in words.
    RateLimit(Limit),
    /// The request or its answer did not get through.
    Net,
    /// The connection is gone, which is a cause only where nothing else is.
    HungUp,
    /// `EOF` alone: an answer without a body, or a prompt without a terminal.
    Eof,
    /// An HTTP status.
    Http(u16),
    /// A message without a number that means this signal.
    Text(Signal),
    /// A shape of gh's with a message that is the client's own.
    Client,
    /// `gh: ` and a message that may go on in the next lines.
    Open,
    /// gh's advice after an error: a scope or a single sign-on is missing.
    AuthHint,
}

/// Past this many bytes no message starts any more; it bounds the work on a line of any length.
const READ_MAX: usize = 8 * 1024;

/// How far behind a line its URL is looked for.
const LOOK_AHEAD: usize = 1024;

/// The leftmost shape in `line`. `titled`: round brackets hold a title. `following` is what comes
/// after the line, where the URL of a message of several lines stands.
pub(super) fn read(line: &[u8], titled: bool, following: &[u8]) -> Option<Finding> {
    let head = &line[..line.len().min(READ_MAX)];
    // A longer line's URL stands at its end.
    let following = if head.len() < line.len() { &line[line.len() - LOOK_AHEAD..] } else { following };
    let first = after_decoration(head);
    let found = message(first, true, following)
        .or_else(|| Starts::new(first, titled).find_map(|start| message(start, false, following)));
    match found {
        Some(Finding::Open) => closing_status(line).map(Finding::Http).or(found),
        None => glued(line),
        _ => found,
    }
}

/// The shape that `text` starts with, if any.
fn message(text: &[u8], at_line_start: bool, following: &[u8]) -> Option<Finding> {
    http(text, at_line_start, following)
        .or_else(|| non_200(text))
        .or_else(|| gh_api(text, following))
        .or_else(|| graphql(text))
        .or_else(|| go_request(text))
        .or_else(|| curl_or_git(text))
        .or_else(|| hint(text))
        .or_else(|| sentence(text))
        .or_else(|| (at_line_start && text == b"not found").then_some(Finding::Text(Signal::NotFound)))
}

/// Shapes A and D: `HTTP 502: MSG (URL)`, `HTTP 404 (URL)`. The URL may stand lines below, when the
/// message has several; without one, only a message that names its own status is believed.
fn http(text: &[u8], at_line_start: bool, following: &[u8]) -> Option<Finding> {
    let (code, rest) = status(text.strip_prefix(b"HTTP ")?)?;
    if rest.is_empty() || rest.starts_with(b" (http") {
        return (at_line_start || !rest.is_empty()).then_some(Finding::Http(code));
    }
    let said = rest.strip_prefix(b":")?.trim_ascii();
    let below =
        || following[..following.len().min(LOOK_AHEAD)].split(|&b| b == b'\n').take(8).any(ends_with_url);
    if !(has_url(said) || names_status(code, said, at_line_start) || below()) {
        return None;
    }
    Some(refused_or(code, said))
}

fn ends_with_url(line: &[u8]) -> bool {
    line.trim_ascii_end().ends_with(b")") && has_url(line)
}

fn has_url(text: &[u8]) -> bool {
    text.windows(5).any(|w| w == b"(http")
}

/// Whether a message says what `code` means: its phrase, or a rate limit's sentence. After a prefix, where
/// other people's words may stand, the phrase has to be all of it.
fn names_status(code: u16, said: &[u8], at_line_start: bool) -> bool {
    let phrase = |phrase: &[u8]| if at_line_start { said.starts_with(phrase) } else { said == phrase };
    (reason(said) == Some(code) && (at_line_start || said.len() < 32))
        || REASONS.iter().any(|(known, words)| *known == code && phrase(words))
        || (at_line_start && matches!(code, 403 | 429) && starting(LIMIT_STARTS, said).is_some())
}

/// A rate limit if the server's message says so, else the status.
fn refused_or(code: u16, said: &[u8]) -> Finding {
    let limit = if matches!(code, 403 | 429) { limit_in(said) } else { starting(LIMIT_STARTS, said) };
    limit.map_or(Finding::Http(code), Finding::RateLimit)
}

/// Shape B: `non-200 OK status code: 502 Bad Gateway body: "…"`. An HTML body is a proxy's or a
/// unicorn's page with any words in it, so only the message of a JSON body and a plain text are read.
fn non_200(text: &[u8]) -> Option<Finding> {
    let (code, rest) = status(text.strip_prefix(b"non-200 OK status code: ")?)?;
    let body = find(rest, b"body: \"").map_or(&rest[..0], |at| &rest[at + 7..]);
    let said = match find(body, b"\\\"message\\\":") {
        Some(at) => {
            let value = body[at + 12..].trim_ascii_start();
            let value = value.strip_prefix(b"\\\"").unwrap_or(value);
            &value[..find(value, b"\\\"").unwrap_or(value.len())]
        }
        None if body.contains(&b'<') => &[],
        None => body,
    };
    Some(refused_or(code, said))
}

/// Shape C: `gh: MSG (HTTP 404)`, `gh: HTTP 502`, and for GraphQL `gh: MSG` without a number. Wrappers put
/// `gh: ` before the other shapes too.
fn gh_api(text: &[u8], following: &[u8]) -> Option<Finding> {
    let said = text.strip_prefix(b"gh: ")?;
    if let Some(code) = closing_status(said) {
        return Some(refused_or(code, said));
    }
    http(said, true, following)
        .or_else(|| hint(said))
        .or_else(|| sentence(said))
        .or_else(|| graphql_text(said))
        .or(Some(Finding::Open))
}

/// The status of a message that ends with `(HTTP 404)`.
pub(super) fn closing_status(text: &[u8]) -> Option<u16> {
    let end = text.strip_suffix(b"\"").unwrap_or(text).strip_suffix(b")")?;
    let (code, rest) = status(end.get(end.len().checked_sub(9)?..)?.strip_prefix(b"(HTTP ")?)?;
    rest.is_empty().then_some(code)
}

/// `gh api`'s last line right behind its answer, as it stands when stdout and stderr are one pipe:
/// `{"message":"Not Found"}gh: Not Found (HTTP 404)`.
fn glued(line: &[u8]) -> Option<Finding> {
    let tail = &line[line.len().saturating_sub(READ_MAX)..];
    let at = tail.windows(5).rposition(|w| b"}]>".contains(&w[0]) && &w[1..] == b"gh: ")?;
    gh_api(&tail[at + 1..], &[])
}

/// GraphQL errors under HTTP 200: `GraphQL: m1 (path), m2 (path)`, older `GraphQL error: m` and
/// `Message: m, Locations: [...]`. Only the message decides, for gh prints no type.
fn graphql(text: &[u8]) -> Option<Finding> {
    let said = match text.strip_prefix(b"Message: ") {
        Some(said) => &said[..find(said, b", Locations: [")?],
        None => [&b"GraphQL: "[..], b"GraphQL error: ", b"graphql error: "]
            .iter()
            .find_map(|p| text.strip_prefix(*p))?,
    };
    // One version quotes the whole message.
    let said = said.strip_prefix(b"'").and_then(|s| s.strip_suffix(b"'")).unwrap_or(said);
    graphql_text(said).or(Some(Finding::Client))
}

fn graphql_text(said: &[u8]) -> Option<Finding> {
    if let Some(limit) = LIMITS.iter().find(|(words, _)| says(said, words)) {
        return Some(Finding::RateLimit(limit.1));
    }
    GRAPHQL.iter().find(|(words, _)| says(said, words)).map(|(_, signal)| Finding::Text(*signal))
}

/// Go's errors: `Post "URL": REASON` (very old: no quotes), or the reason alone. A proxy that refuses
/// the tunnel leaves only a reason phrase there, so any reason is a network error unless it is
/// known to be local. go-github, which extensions use, puts a status there.
fn go_request(text: &[u8]) -> Option<Finding> {
    let Some(reason) = after_request(text) else {
        // A keyring's or an agent's socket, when no request stands before it.
        if text.starts_with(b"dial unix ") {
            return Some(Finding::Client);
        }
        let is_net =
            starts_any(GO_NET, text) && (!text.starts_with(b"lookup ") || find(text, b": ").is_some());
        return is_net.then_some(Finding::Net);
    };
    if let Some((code, said)) = status(reason).filter(|(_, rest)| rest.starts_with(b" ")) {
        return Some(refused_or(code, said.trim_ascii_start()));
    }
    Some(if starts_any(GO_LOCAL, reason) { Finding::Client } else { Finding::Net })
}

/// What follows `Verb "URL": `.
fn after_request(text: &[u8]) -> Option<&[u8]> {
    const VERBS: [&[u8]; 6] = [b"Get ", b"Post ", b"Patch ", b"Put ", b"Delete ", b"Head "];
    let known = VERBS.iter().find(|v| text.len() >= v.len() && text[..v.len()].eq_ignore_ascii_case(v))?;
    // In a structured log the quotes are escaped.
    let url = &text[known.len()..];
    let url = [&b"\\\""[..], b"\""].iter().find_map(|quote| url.strip_prefix(*quote)).unwrap_or(url);
    if !(url.starts_with(b"http") || url.starts_with(b"\": ")) {
        return None;
    }
    let end = url.iter().position(|&b| b == b' ')?;
    url[..end].ends_with(b":").then(|| &url[end + 1..])
}

/// git's errors as curl words them, and the status that curl reports.
fn curl_or_git(text: &[u8]) -> Option<Finding> {
    // `curl: (6) Could not resolve host`
    let text = match text.strip_prefix(b"(") {
        Some(rest) => &rest[find(rest, b") ")? + 2..],
        None => text,
    };
    if let Some((code, _)) =
        BEFORE_STATUS.iter().find_map(|before| text.strip_prefix(*before)).and_then(status)
    {
        return Some(Finding::Http(code));
    }
    if starts_any(CURL_NET, text) {
        return Some(Finding::Net);
    }
    if starts_any(HUNG_UP, text) {
        return Some(Finding::HungUp);
    }
    let missing = text.starts_with(b"repository '") && text.ends_with(b"' not found");
    let denied = text.starts_with(b"Permission to ") && find(text, b" denied to ").is_some();
    let sso = text.starts_with(b"The '")
        && find(text, b"' organization has enabled or enforced SAML SSO").is_some();
    match (missing, denied || sso) {
        (true, _) => Some(Finding::Text(Signal::NotFound)),
        (_, true) => Some(Finding::Text(Signal::Auth)),
        _ => None,
    }
}

/// gh's line after an error that a missing scope, sign-on or login may explain.
fn hint(text: &[u8]) -> Option<Finding> {
    let is_hint = (text.starts_with(b"This API operation needs the \"") && find(text, b"\" scope").is_some())
        || text.starts_with(b"Authorize in your web browser: ")
        || text.starts_with(b"Try authenticating with:  gh auth login");
    is_hint.then_some(Finding::AuthHint)
}

/// Messages that decide by their own words, with no shape around them.
fn sentence(text: &[u8]) -> Option<Finding> {
    let host = text.strip_prefix(b"error connecting to ");
    if host.is_some_and(|host| !host.is_empty() && !host.contains(&b' ')) {
        return Some(Finding::Net);
    }
    if let Some(limit) = starting(LIMIT_STARTS, text) {
        return Some(Finding::RateLimit(limit));
    }
    if text == b"EOF" {
        return Some(Finding::Eof);
    }
    let bare = text.strip_suffix(b".").unwrap_or(text);
    let whole = WHOLE.iter().find(|(words, _)| bare == *words).map(|(_, signal)| *signal);
    if let Some(signal) = whole.or_else(|| starting(STARTS, text)) {
        return Some(if signal == Signal::Net { Finding::Net } else { Finding::Text(signal) });
    }
    reason(text).map(Finding::Http)
}

/// `502 Bad Gateway`: a status with its own reason phrase, and nothing but punctuation after it.
fn reason(text: &[u8]) -> Option<u16> {
    let (code, rest) = status(text)?;
    let words = rest.strip_prefix(b" ")?;
    let mut phrases = REASONS.iter().filter(|(known, _)| *known == code);
    let after = phrases.find_map(|(_, phrase)| words.strip_prefix(*phrase))?;
    let after = after.strip_prefix(b"out").or_else(|| after.strip_prefix(b"-out")).unwrap_or(after);
    after.first().is_none_or(|b| b".,:;(<\"\\".contains(b)).then_some(code)
}

/// The three digits of a status at the start of `text`, and what follows them.
fn status(text: &[u8]) -> Option<(u16, &[u8])> {
    let (digits, rest) = text.split_at_checked(3)?;
    if !digits.iter().all(u8::is_ascii_digit) || rest.first().is_some_and(u8::is_ascii_alphanumeric) {
        return None;
    }
    let code = digits.iter().fold(0, |n, d| n * 10 + u16::from(d - b'0'));
    (100..600).contains(&code).then_some((code, rest))
}

/// The limit whose wording stands anywhere in a server's own message.
fn limit_in(said: &[u8]) -> Option<Limit> {
    LIMITS.iter().find(|(words, _)| contains(said, words)).map(|(_, limit)| *limit)
}

/// Whether a message says these lower-case words outside its quotes, where names stand.
fn says(said: &[u8], words: &[u8]) -> bool {
    let (mut from, mut at) = (0, 0);
    let mut unclosed = false;
    while at < said.len() {
        let quoted = !unclosed && matches!(said[at], b'"' | b'\'' | b'`') && may_open(said, at);
        match quoted.then(|| closing(said, at)) {
            Some(Some(close)) => {
                if contains(&said[from..at], words) {
                    return true;
                }
                from = close + 1;
                at = close;
            }
            Some(None) => unclosed = true,
            None => {}
        }
        at += 1;
    }
    contains(&said[from..], words)
}

/// Whether `text` has these lower-case ASCII words, in any case.
fn contains(text: &[u8], words: &[u8]) -> bool {
    text.windows(words.len()).any(|w| w.eq_ignore_ascii_case(words))
}

fn find(text: &[u8], needle: &[u8]) -> Option<usize> {
    text.windows(needle.len()).position(|w| w == needle)
}

fn starts_any(table: &[&[u8]], text: &[u8]) -> bool {
    table.iter().any(|start| text.starts_with(start))
}

fn starting<T: Copy>(table: &[(&[u8], T)], text: &[u8]) -> Option<T> {
    table.iter().find(|(start, _)| text.starts_with(start)).map(|(_, value)| *value)
}
