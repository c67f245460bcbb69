//! gh's `hosts.yml` → which hosts it knows, and as whom.
//!
//! A reader of the few lines that matter, not of YAML: the file is written by gh alone.

/// One host that gh is logged in to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// The active account.
    pub user: Option<String>,
    /// The active account's token, where it is kept in the file.
    pub token: Option<String>,
}

/// Reads the text of `hosts.yml`.
pub fn parse(text: &str) -> Vec<Host> {
    let mut hosts: Vec<Host> = Vec::new();
    // The indentation of the host's own keys: what is deeper belongs to another of its accounts.
    let mut own_indent = None;
    for line in text.lines() {
        let bare = line.trim_start();
        if bare.is_empty() || bare.starts_with('#') {
            continue;
        }
        let Some((key, value)) = bare.split_once(':') else { continue };
        let indent = line.len() - bare.len();
        if indent == 0 {
            own_indent = None;
            hosts.push(Host { name: unquoted(key).to_ascii_lowercase(), ..Host::default() });
            continue;
        }
        let value = Some(unquoted(value).to_string()).filter(|value| !value.is_empty());
        match (hosts.last_mut(), key) {
            (Some(host), key) if indent == *own_indent.get_or_insert(indent) => match key {
                "user" => host.user = value,
                "oauth_token" => host.token = value,
                _ => {}
            },
            _ => {}
        }
    }
    hosts
}

fn unquoted(text: &str) -> &str {
    let text = text.trim();
    let inside = |quote| text.strip_prefix(quote).and_then(|rest: &str| rest.strip_suffix(quote));
    inside('"').or(inside('\'')).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, user: Option<&str>, token: Option<&str>) -> Host {
        Host { name: name.into(), user: user.map(str::to_string), token: token.map(str::to_string) }
    }

    #[test]
    fn the_active_account_is_told_from_the_others() {
        let text = "github.com:\n    users:\n        mona:\n            oauth_token: t1\n        hubot:\n            \
                    oauth_token: t2\n    git_protocol: https\n    user: hubot\n    oauth_token: t2\n\
                    ghe.example:\n    oauth_token: 't3'\n    user:\n";
        let expected = [host("github.com", Some("hubot"), Some("t2")), host("ghe.example", None, Some("t3"))];
        assert_eq!(parse(text), expected);
    }

    #[test]
    fn older_and_empty_files_are_read_too() {
        let old = "# made by gh\n\"GitHub.com\":\n  oauth_token: t\n  user: \"mona\"\n";
        assert_eq!(parse(old), [host("github.com", Some("mona"), Some("t"))]);
        assert_eq!(parse(""), []);
        assert_eq!(parse("{}\n"), []);
        assert_eq!(parse("    user: nobody\n"), []);
    }
}
