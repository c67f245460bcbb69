//! Remote URL forms, `-R` values and URL operands → host/owner/name, and which one gh would pick.
//!
//! The rules are gh's own (its `git`, `ghrepo` and `context` packages), as they act without a
//! terminal: with one, gh asks the server, which no pure function can.

use std::fmt;
use std::hash::{Hash, Hasher};

use super::plan::GhEnv;

/// The host that gh uses where nothing names another.
pub const GITHUB: &str = "github.com";

/// One repository. Two are equal whatever the case of their letters, as on the forge.
#[derive(Clone, Debug)]
pub struct Repo {
    /// Host, lower case, without port.
    pub host: String,
    /// Owner, as it was written.
    pub owner: String,
    /// Name, as it was written, without `.git` where it came from a URL.
    pub name: String,
}

impl PartialEq for Repo {
    fn eq(&self, other: &Repo) -> bool {
        self.host.eq_ignore_ascii_case(&other.host)
            && self.owner.eq_ignore_ascii_case(&other.owner)
            && self.name.eq_ignore_ascii_case(&other.name)
    }
}

impl Eq for Repo {}

impl Hash for Repo {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl fmt::Display for Repo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.host, self.owner, self.name)
    }
}

impl Repo {
    /// A repository by its three parts.
    pub fn new(host: &str, owner: &str, name: &str) -> Repo {
        Repo { host: normal_host(host), owner: owner.to_string(), name: name.to_string() }
    }

    /// `host/owner/name` in lower case: the same for every spelling of one repository.
    pub fn key(&self) -> String {
        self.to_string().to_ascii_lowercase()
    }

    /// The address of one of its issues, by its number or by the handle that stands for it.
    pub fn issue_url(&self, issue: impl fmt::Display) -> String {
        format!("https://{self}/issues/{issue}")
    }

    /// Reads a value of `-R` or `GH_REPO`: `[HOST/]OWNER/REPO` or a URL. `default_host` is used where
    /// the value has two parts. `.git` is dropped from a URL only.
    pub fn parse(value: &str, default_host: &str) -> Option<Repo> {
        if value.starts_with("git@") || has_scheme(value, SCHEMES) {
            return Repo::from_url(value);
        }
        let parts: Vec<&str> = value.split('/').collect();
        match parts[..] {
            [owner, name] if !owner.is_empty() && !name.is_empty() => {
                Some(Repo::new(default_host, owner, name))
            }
            [host, owner, name] if parts.iter().all(|part| !part.is_empty()) => {
                Some(Repo::new(host, owner, name))
            }
            _ => None,
        }
    }

    /// Reads a remote's URL: http, https, git, ssh, their `git+` forms, or `[user@]host:path`.
    pub fn from_url(url: &str) -> Option<Repo> {
        let Url { host, path, ssh } = Url::parse(url)?;
        let path = percent_decode(path)?;
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let [owner, name] = parts[..] else { return None };
        let name = name.strip_suffix(".git").unwrap_or(name);
        if owner.is_empty() || name.is_empty() {
            return None;
        }
        let mut repo = Repo::new(host, owner, name);
        if ssh && repo.host == "ssh.github.com" {
            repo.host = GITHUB.to_string();
        }
        Some(repo)
    }
}

/// Whether the host is github.com under one of its names (`api.github.com` included).
pub fn is_github(host: &str) -> bool {
    let host = normal_host(host);
    host == GITHUB || host.ends_with(".github.com")
}

fn normal_host(host: &str) -> String {
    let host = host.to_ascii_lowercase();
    // A host that is nothing else stays: without it, two parts would be left, which are read as another host's.
    host.strip_prefix("www.").filter(|rest| !rest.is_empty()).map(str::to_string).unwrap_or(host)
}

/// Schemes that name a repository on a host.
const SCHEMES: &[&str] = &["ssh:", "git+ssh:", "git:", "http:", "git+http:", "https:", "git+https:"];
/// Further schemes that keep a URL from being read as `host:path`.
const OTHER_SCHEMES: &[&str] = &["ftp:", "ftps:", "file:"];

fn has_scheme(url: &str, schemes: &[&str]) -> bool {
    schemes.iter().any(|scheme| url.starts_with(scheme))
}

/// The parts of a URL that matter here.
struct Url<'a> {
    host: &'a str,
    path: &'a str,
    ssh: bool,
}

impl<'a> Url<'a> {
    fn parse(url: &'a str) -> Option<Url<'a>> {
        if url.chars().any(|c| c.is_ascii_control()) {
            return None;
        }
        if has_scheme(url, SCHEMES) {
            let (scheme, rest) = url.split_once("://")?;
            let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            let path = &rest[end..];
            let path = &path[..path.find(['?', '#']).unwrap_or(path.len())];
            let host = host_of(&rest[..end])?;
            return Some(Url { host, path, ssh: scheme.ends_with("ssh") });
        }
        if has_scheme(url, OTHER_SCHEMES) || url.contains('\\') {
            return None;
        }
        let (authority, path) = url.split_once(':')?;
        if authority.contains('/') {
            return None;
        }
        let path = &path[..path.find(['?', '#']).unwrap_or(path.len())];
        Some(Url { host: host_of(authority)?, path, ssh: true })
    }
}

/// What follows `https://` or `http://`; `None` for what is no web address.
pub(super) fn without_scheme(text: &str) -> Option<&str> {
    text.strip_prefix("https://").or(text.strip_prefix("http://"))
}

/// `[user[:password]@]host[:port]` → host.
pub(super) fn host_of(authority: &str) -> Option<&str> {
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0,
        None => host.split_once(':').map_or(host, |(host, _)| host),
    };
    (!host.is_empty() && !host.contains(' ')).then_some(host)
}

fn percent_decode(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_string());
    }
    let mut bytes = text.bytes();
    let mut out = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let high = (bytes.next()? as char).to_digit(16)?;
        let low = (bytes.next()? as char).to_digit(16)?;
        out.push((high * 16 + low) as u8);
    }
    String::from_utf8(out).ok()
}

/// What an issue operand points at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// `12`, `#12`: that issue of the repository the call is for.
    Number(u64),
    /// An issue's (or pull request's) URL: its own repository, whatever `-R` says.
    Url(Repo, u64),
    /// `BOB-Q3`: the issue that queued create 3 makes.
    Handle(u64),
    /// `https://host/owner/name/issues/BOB-Q3`, as a queued create prints it.
    HandleUrl(Repo, u64),
}

impl Target {
    /// Reads an operand as gh reads an issue selector; `None` where gh would refuse it.
    pub fn parse(operand: &str) -> Option<Target> {
        if let Some(path) = without_scheme(operand) {
            return Target::from_url_path(path);
        }
        let bare = operand.strip_prefix('#').unwrap_or(operand);
        match bare.strip_prefix(HANDLE) {
            Some(seq) => whole_number(seq).filter(|seq| *seq > 0).map(Target::Handle),
            None => whole_number(bare.strip_prefix('+').unwrap_or(bare)).map(Target::Number),
        }
    }

    fn from_url_path(path: &str) -> Option<Target> {
        let mut parts = path.splitn(5, '/');
        let host = host_of(parts.next()?)?;
        let (owner, name, kind) = (parts.next()?, parts.next()?, parts.next()?);
        if owner.is_empty() || name.is_empty() || !matches!(kind, "issues" | "pull") {
            return None;
        }
        let tail = parts.next()?;
        let repo = Repo::new(host, owner, name);
        let (number, rest) = split_digits(tail.strip_prefix(HANDLE).unwrap_or(tail));
        let number = whole_number(number)?;
        if !tail.starts_with(HANDLE) {
            return Some(Target::Url(repo, number));
        }
        let ends = rest.is_empty() || rest.starts_with(['/', '?', '#']);
        (ends && number > 0 && kind == "issues").then_some(Target::HandleUrl(repo, number))
    }

    /// The repository that the operand itself names.
    pub fn repo(&self) -> Option<&Repo> {
        match self {
            Target::Url(repo, _) | Target::HandleUrl(repo, _) => Some(repo),
            Target::Number(_) | Target::Handle(_) => None,
        }
    }
}

/// What the queue's handles begin with.
pub const HANDLE: &str = "BOB-Q";

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

fn whole_number(digits: &str) -> Option<u64> {
    (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())).then(|| digits.parse().ok())?
}

/// One git remote, after `insteadOf` was applied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remote {
    /// Its name.
    pub name: String,
    /// The URL it fetches from; empty for a remote that can only be pushed to.
    pub url: String,
    /// The URL it pushes to, where it differs.
    pub push_url: Option<String>,
    /// `remote.<name>.gh-resolved`: `base` or `[HOST/]OWNER/REPO`.
    pub resolved: Option<String>,
}

impl Remote {
    /// The repository it names: by its fetch URL, or by its push URL where that one names none.
    pub fn repo(&self) -> Option<Repo> {
        Repo::from_url(&self.url).or_else(|| Repo::from_url(self.push_url.as_deref()?))
    }
}

/// The repository that the remote `origin` fetches from. Remote names are case-sensitive to git.
pub fn origin(remotes: &[Remote]) -> Option<Repo> {
    remotes.iter().find(|remote| remote.name == "origin").and_then(|remote| Repo::from_url(&remote.url))
}

/// The host that gh uses for `OWNER/REPO`: `GH_HOST`, else the only host in hosts.yml, else github.com.
pub fn default_host(env: &GhEnv, known_hosts: &[String]) -> String {
    match (env.host(), known_hosts) {
        (Some(host), _) => normal_host(host),
        (None, [only]) => normal_host(only),
        _ => GITHUB.to_string(),
    }
}

/// The repository gh would act on without a terminal: the URL operand's, else `-R`, else `GH_REPO`,
/// else the remotes (`gh-resolved` first, then upstream, github, origin, the rest by name).
/// `known_hosts` are the hosts in gh's hosts.yml. `None` where gh would fail.
pub fn gh_would_pick(
    flag: Option<&str>,
    url_operand: Option<&Repo>,
    env: &GhEnv,
    remotes: &[Remote],
    known_hosts: &[String],
) -> Option<Repo> {
    if let Some(repo) = url_operand {
        return Some(repo.clone());
    }
    let host = default_host(env, known_hosts);
    if let Some(value) = flag.filter(|value| !value.is_empty()).or(env.repo()) {
        return Repo::parse(value, &host);
    }
    let candidates = candidates(env, remotes, known_hosts, &host);
    let resolved = candidates.iter().find_map(|(remote, repo)| Some((remote.resolved.as_deref()?, repo)));
    match resolved {
        Some(("base", repo)) => Some(repo.clone()),
        Some((other, repo)) => {
            let named = Repo::parse(other, &repo.host)?;
            Some(Repo { host: repo.host.clone(), ..named })
        }
        None => candidates.into_iter().next().map(|(_, repo)| repo),
    }
}

/// The remotes gh considers, in its order.
fn candidates<'a>(
    env: &GhEnv,
    remotes: &'a [Remote],
    known_hosts: &[String],
    default: &str,
) -> Vec<(&'a Remote, Repo)> {
    let knows = |host: &str| {
        host == GITHUB || host == default || known_hosts.iter().any(|known| known.eq_ignore_ascii_case(host))
    };
    let mut found: Vec<(&Remote, Repo)> = remotes
        .iter()
        .filter_map(|remote| Some((remote, remote.repo()?)))
        .filter(|(_, repo)| knows(&repo.host))
        .collect();
    found.sort_by_key(|(remote, _)| (rank(&remote.name), remote.name.clone()));
    let from_env = env.host().is_some();
    let wants_default = from_env || known_hosts.len() == 1;
    if wants_default && (from_env || found.iter().any(|(_, repo)| repo.host == default)) {
        found.retain(|(_, repo)| repo.host == default);
    }
    found
}

fn rank(name: &str) -> u8 {
    match name.to_ascii_lowercase().as_str() {
        "upstream" => 0,
        "github" => 1,
        "origin" => 2,
        _ => 3,
    }
}

#[cfg(test)]
#[path = "repo_tests.rs"]
mod tests;
