//! The literal texts of gh, GitHub and git that the grammar knows, as tables; those of the transport are in
//! [`super::transport`].
//!
//! They are facts about other programs' output; see each table for where they come from.

use super::{Limit, Signal};

/// Starts of lines that are no errors but carry other people's words: icons with a title after
/// them, the shell's trace and prompts, request logs, warnings, this engine's own marker lines in a nested
/// call, and git naming commits by their subject.
pub(super) const ECHOED: &[&[u8]] = &[
    "✓".as_bytes(),
    "✔".as_bytes(),
    b"! ",
    b"+ ",
    b"++",
    b"+(",
    b"$ ",
    b"> ",
    b"* ",
    b"warning: ",
    b"Warning: ",
    b"sudo: ",
    b"[forge-",
    b"hint: ",
    b"HEAD is now at ",
    b"Previous HEAD position was ",
    b"Applying: ",
    b"Auto-merging ",
    b"CONFLICT ",
    b"Could not apply ",
    b"error: could not apply ",
    b"Creating ",
    b"Title: ",
    b"title:",
];

/// Starts of errors that no request caused: flags, templates, jq, files, prompts, configuration.
pub(super) const LOCAL: &[&[u8]] = &[
    b"unknown command ",
    b"unknown flag: ",
    b"unknown shorthand flag: ",
    b"flag needs an argument: ",
    b"bad flag syntax: ",
    b"invalid argument ",
    b"unknown argument ",
    b"invalid issue format: ",
    b"expected the ",
    b"accepts ",
    b"Unknown JSON field: ",
    b"Invalid search query ",
    b"template: ",
    b"failed to parse jq expression",
    b"failed to evaluate jq expression",
    b"failed to read configuration",
    b"failed to recover",
    b"invalid config file",
    b"could not prompt",
    b"failed to run editor",
    b"open ",
    b"stat ",
];

/// GitHub's two families of rate-limit wording, in lower case. The first found decides the kind, so
/// the burst limits, which say more, come first.
pub(super) const LIMITS: &[(&[u8], Limit)] = &[
    (b"secondary rate limit", Limit::Secondary),
    (b"abuse detection", Limit::Secondary),
    (b"submitted too quickly", Limit::Secondary),
    (b"temporarily blocked from content creation", Limit::Secondary),
    (b"too many requests", Limit::Secondary),
    (b"temporarily being throttled", Limit::Secondary),
    (b"rate limit exceeded", Limit::Primary),
    (b"rate limit already exceeded", Limit::Primary),
    (b"exceeded your rate limit", Limit::Primary),
    (b"exceeded the rate limit", Limit::Primary),
    (b"rate limit has been exceeded", Limit::Primary),
];

/// Starts of the same sentences, for a message that stands alone (second GraphQL errors, `Resource`
/// lines under a 422, extensions).
pub(super) const LIMIT_STARTS: &[(&[u8], Limit)] = &[
    (b"API rate limit exceeded", Limit::Primary),
    (b"API rate limit already exceeded", Limit::Primary),
    (b"You have exceeded a secondary rate limit", Limit::Secondary),
    (b"You have triggered an abuse detection mechanism", Limit::Secondary),
    (b"was submitted too quickly", Limit::Secondary),
    (b"Too many requests", Limit::Secondary),
    (b"Rate limit exceeded", Limit::Primary),
];

/// What GitHub's GraphQL errors say under HTTP 200, where gh prints no number: in lower case, the
/// most telling signal first (one line may join several errors).
pub(super) const GRAPHQL: &[(&[u8], Signal)] = &[
    (b"something went wrong", Signal::Server),
    (b"respond to your request in time", Signal::Server),
    (b"timeout on validation of query", Signal::Server),
    (b"no server is currently available", Signal::Server),
    (b"bad gateway", Signal::Server),
    (b"service unavailable", Signal::Server),
    (b"server error", Signal::Server),
    (b"timed out", Signal::Server),
    (b"gateway timeout", Signal::Server),
    (b"saml enforcement", Signal::Auth),
    (b"saml sso", Signal::Auth),
    (b"ip allow list", Signal::Auth),
    (b"oauth app access restrictions", Signal::Auth),
    (b"resource not accessible by", Signal::Auth),
    (b"correct permissions to execute", Signal::Auth),
    (b"not been granted the required scopes", Signal::Auth),
    (b"forbids access via a", Signal::Auth),
    (b"bad credentials", Signal::Auth),
    (b"requires you to be authenticated", Signal::Auth),
    (b"requires authentication", Signal::Auth),
    (b"user is blocked", Signal::Auth),
    (b"must have admin ", Signal::Auth),
    (b"must have push access", Signal::Auth),
    (b"must have write access", Signal::Auth),
    (b"not authorized to", Signal::Auth),
    (b"do not have permission", Signal::Auth),
    (b"does not have permission", Signal::Auth),
    (b"insufficient permission", Signal::Auth),
    (b"account was suspended", Signal::Auth),
    (b"account is suspended", Signal::Auth),
    (b"could not resolve to ", Signal::NotFound),
];

/// Starts of messages that decide where no shape names them: gh's and GitHub's sentences, git's and
/// ssh's (their English parts stay English in every language).
pub(super) const STARTS: &[(&[u8], Signal)] = &[
    // GitHub, one GraphQL error a line
    (b"Something went wrong while executing your query", Signal::Server),
    (b"We couldn't respond to your request in time", Signal::Server),
    (b"Resource protected by organization SAML enforcement", Signal::Auth),
    (b"Resource not accessible by ", Signal::Auth),
    (b"Your token has not been granted the required scopes", Signal::Auth),
    (b"Although you appear to have the correct authorization credentials", Signal::Auth),
    (b"Could not resolve to ", Signal::NotFound),
    // gh
    (b"To get started with GitHub CLI, please run:", Signal::Auth),
    (b"To use GitHub CLI in ", Signal::Auth),
    (b"gh: To use GitHub CLI in ", Signal::Auth),
    (b"You are not logged into any", Signal::Auth),
    (b"To authenticate, please run `gh auth login`", Signal::Auth),
    (b"not logged in to any", Signal::Auth),
    (b"no oauth token", Signal::Auth),
    (b"your authentication token is missing required scope", Signal::Auth),
    (b"missing required scope", Signal::Auth),
    (b"no pull requests found for branch ", Signal::NotFound),
    (b"Timeout trying to log in to ", Signal::Net),
    (b"check your internet connection or https://", Signal::Net),
    // git over HTTPS
    (b"Authentication failed for '", Signal::Auth),
    (b"could not read Username for '", Signal::Auth),
    (b"could not read Password for '", Signal::Auth),
    (b"Invalid username or ", Signal::Auth),
    (b"Support for password authentication was removed", Signal::Auth),
    (b"Write access to repository not granted", Signal::Auth),
    (b"Permission denied (publickey", Signal::Auth),
    (b"Repository not found", Signal::NotFound),
    (b"Internal Server Error", Signal::Server),
    (b"fatal error in commit_refs", Signal::Server),
    (b"unable to look up ", Signal::Net),
    // ssh
    (b"ssh: Could not resolve hostname ", Signal::Net),
    (b"ssh: connect to host ", Signal::Net),
    (b"kex_exchange_identification: ", Signal::Net),
    (b"ssh_exchange_identification: ", Signal::Net),
    (b"Too many authentication failures", Signal::Auth),
    (b"Connection to github.com closed", Signal::Net),
    (b"Connection closed by ", Signal::Net),
    (b"Connection reset by ", Signal::Net),
    (b"client_loop: send disconnect", Signal::Net),
];

/// Whole messages that decide.
pub(super) const WHOLE: &[(&[u8], Signal)] = &[
    (b"unexpected EOF", Signal::Net),
    (b"Bad credentials", Signal::Auth),
    (b"release not found", Signal::NotFound),
    (b"Bad Gateway", Signal::Server),
    (b"Service Unavailable", Signal::Server),
    (b"Gateway Timeout", Signal::Server),
];

/// The reason phrases of the statuses that decide something, for `502 Bad Gateway` and the like.
pub(super) const REASONS: &[(u16, &[u8])] = &[
    (401, b"Unauthorized"),
    (401, b"Bad credentials"),
    (403, b"Forbidden"),
    (404, b"Not Found"),
    (410, b"Gone"),
    (429, b"Too Many Requests"),
    (500, b"Internal Server Error"),
    (500, b"Server Error"),
    (502, b"Server Error"),
    (502, b"Bad Gateway"),
    (503, b"Service Unavailable"),
    (504, b"Gateway Time"),
];
