//! How far a failed write can have got, read from how gh ended and what it said.
//!
//! Only texts that are known to mean "nothing was written" are taken for it; whatever is not known
//! counts as a lost answer, because a write that is taken for lost while it landed is made twice.

use super::entry::Reach;
use super::signal::Ended;

/// Failures before a request can have left: resolver, connection, TLS, proxy.
const NOT_SENT: &[&str] = &[
    "error connecting to ",
    "connection refused",
    "network is unreachable",
    "no route to host",
    "TLS handshake timeout",
    "x509: ",
    "proxyconnect ",
    "server gave HTTP response to HTTPS client",
    "connect: no such file or directory",
    "no such host",
    ": Proxy Authentication Required",
    "gh auth login",
    "no git remotes found",
];

/// The forge's refusals: it answered, and wrote nothing.
const REFUSED: &[&str] = &["401", "402", "403", "404", "405", "406", "410", "415", "422", "429", "451"];

/// GraphQL texts that do not say whether the mutation was carried out.
const UNDECIDED: &[&str] = &["Something went wrong", "timeout", "timed out", "Timeout"];

/// How far a write can have got that ended like this. `steps` says whether gh needs more than one
/// writing request for it: then a refusal may be the second one's.
pub fn reach(ended: Ended, stderr: &[u8], steps: bool) -> Reach {
    let text = String::from_utf8_lossy(stderr);
    match single(ended, &text) {
        Reach::Nothing if steps => Reach::Perhaps,
        reach => reach,
    }
}

fn single(ended: Ended, text: &str) -> Reach {
    match ended {
        Ended::Signal(_) | Ended::Code(2) => return Reach::Unknown,
        // gh's own code for "not logged in": it asks nobody.
        Ended::Code(4) => return Reach::Nothing,
        Ended::Code(_) => {}
    }
    // The status first: an answer's body may hold any other text.
    match status(text) {
        Some("500" | "503") => Reach::Perhaps,
        Some(code) if REFUSED.contains(&code) => Reach::Nothing,
        Some(_) => Reach::Unknown,
        None if is_graphql_refusal(text) || was_not_sent(text) => Reach::Nothing,
        None => Reach::Unknown,
    }
}

fn was_not_sent(text: &str) -> bool {
    // A dial that timed out has sent nothing; a read that did has.
    let dial_timed_out = text.contains("dial ") && text.contains("i/o timeout");
    dial_timed_out || NOT_SENT.iter().any(|sign| text.contains(sign))
}

/// The first HTTP status in one of gh's shapes for a failed request.
fn status(text: &str) -> Option<&str> {
    text.lines().find_map(|line| {
        let after = |sign: &str| line.split_once(sign).map(|(_, rest)| rest);
        let digits = after("non-200 OK status code: ").or_else(|| after("HTTP "))?.get(..3)?;
        digits.bytes().all(|b| b.is_ascii_digit()).then_some(digits)
    })
}

/// `GraphQL: …` (and 2.23's `Message: …, Locations: …`) on a line of its own.
fn is_graphql_refusal(text: &str) -> bool {
    let line = text.lines().find(|line| {
        line.contains("GraphQL: ") || (line.starts_with("Message: ") && line.contains("Locations: "))
    });
    line.is_some_and(|line| !UNDECIDED.iter().any(|sign| line.contains(sign)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(stderr: &str) -> Reach {
        reach(Ended::Code(1), stderr.as_bytes(), false)
    }

    #[test]
    fn what_never_left_or_was_refused_wrote_nothing() {
        for text in [
            "error connecting to api.github.com\ncheck your internet connection or https://githubstatus.com\n",
            "Post \"https://api.github.com/graphql\": dial tcp 1.2.3.4:443: connect: connection refused\n",
            "Post \"https://api.github.com/graphql\": dial tcp 1.2.3.4:443: i/o timeout\n",
            "Post \"https://api.github.com/graphql\": net/http: TLS handshake timeout\n",
            "Post \"https://api.github.com/graphql\": proxyconnect tcp: dial tcp: connect: refused\n",
            "HTTP 401: Bad credentials (https://api.github.com/graphql)\n",
            "non-200 OK status code: 403 Forbidden body: \"{}\"\n",
            "GraphQL: API rate limit exceeded for user ID 1.\n",
            "Message: was refused, Locations: [{Line:1 Column:2}]\n",
        ] {
            assert_eq!(of(text), Reach::Nothing, "{text}");
            assert_eq!(reach(Ended::Code(1), text.as_bytes(), true), Reach::Perhaps, "{text}");
        }
        assert_eq!(reach(Ended::Code(4), b"", false), Reach::Nothing);
    }

    #[test]
    fn a_lost_answer_is_not_taken_for_a_refusal() {
        for text in [
            "Post \"https://api.github.com/graphql\": EOF\n",
            "Post \"https://api.github.com/graphql\": read tcp 1:2->3:4: read: connection reset by peer\n",
            "Post \"https://api.github.com/graphql\": read tcp 1:2->3:4: i/o timeout\n",
            "unexpected EOF\n",
            "HTTP 502: Server Error (https://api.github.com/graphql)\n",
            "non-200 OK status code: 504 Gateway Timeout body: \"\"\n",
            "GraphQL: Something went wrong while executing your query.\n",
            "invalid character '<' looking for beginning of value\n",
            "",
        ] {
            assert_eq!(of(text), Reach::Unknown, "{text}");
        }
        assert_eq!(reach(Ended::Signal(15), b"", false), Reach::Unknown);
        assert_eq!(of("HTTP 503: Service Unavailable (https://api.github.com/graphql)\n"), Reach::Perhaps);
        assert_eq!(of("non-200 OK status code: 500 Internal Server Error body: \"\"\n"), Reach::Perhaps);
    }
}
