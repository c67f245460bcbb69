//! Where a call goes, as gh itself would find out: argv, the environment, the checkout's remotes and gh's own
//! settings decide. A call on another host than github.com spends none of its quotas.

use std::path::Path;

use crate::decide::plan::{GhEnv, Plan};
use crate::decide::repo::{Repo, default_host, gh_would_pick, is_github};
use crate::decide::{argv, hosts};
use crate::settings::Lookup;
use crate::store::remotes;

/// The plan, without a quota where the call goes elsewhere. gh goes nowhere but to github.com and to the
/// hosts in its own settings: one small file is read, and the checkout's only where that names another host.
pub fn settle(mut plan: Plan, env: &impl Lookup, cwd: Option<&Path>) -> Plan {
    if plan.resource.is_none() || plan.host.is_some() {
        return plan;
    }
    let known = known_hosts(env);
    if known.iter().all(|host| is_github(host)) {
        return plan;
    }
    if !is_github(&host(&plan, env, cwd, &known)) {
        plan.resource = None;
        plan.extra = &[];
    }
    plan
}

fn host(plan: &Plan, env: &impl Lookup, cwd: Option<&Path>, known: &[String]) -> String {
    repo(plan, env, cwd, known).map_or_else(|| default_host(&GhEnv::of(env), known), |repo| repo.host)
}

/// The repository gh would use; `None` for a command that acts on none (for a search, `--repo` is part of
/// the query) and where nothing names one. `known` are the hosts in gh's own settings.
pub fn repo(plan: &Plan, env: &impl Lookup, cwd: Option<&Path>, known: &[String]) -> Option<Repo> {
    let acts_on_a_repository = argv::has_flag(plan.command, "repo")
        && !plan.command.starts_with("search ")
        && !plan.command.starts_with("project ");
    if !acts_on_a_repository {
        return None;
    }
    let gh = GhEnv::of(env);
    let flag = plan.repo_flag.as_deref().and_then(|flag| flag.to_str());
    // Read only where nothing nearer decides.
    let decided = plan.url_repo.is_some() || flag.is_some() || gh.repo().is_some();
    let of_checkout = cwd.filter(|_| !decided).map(|cwd| remotes::read(cwd, env)).unwrap_or_default();
    gh_would_pick(flag, plan.url_repo.as_ref(), &gh, &of_checkout, known)
}

/// The hosts in gh's own settings.
pub fn known_hosts(env: &impl Lookup) -> Vec<String> {
    hosts::parse(&remotes::hosts(env)).into_iter().map(|host| host.name).collect()
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a test sets up its own scene")]
mod tests {
    use super::*;
    use crate::decide::plan::plan;
    use std::ffi::OsString;
    use std::fs;

    #[test]
    fn a_call_that_the_checkout_or_ghs_settings_send_elsewhere_spends_no_quota() {
        let home = tempfile::tempdir().unwrap();
        let of = |hosts: &str, origin: &str, line: &str| {
            fs::create_dir_all(home.path().join("work/.git")).unwrap();
            fs::create_dir_all(home.path().join("gh")).unwrap();
            let lines = hosts.split_whitespace().map(|host| format!("{host}:\n    oauth_token: x\n"));
            fs::write(home.path().join("gh/hosts.yml"), lines.collect::<String>()).unwrap();
            let config = format!("[remote \"origin\"]\n\turl = https://{origin}/o/r.git\n");
            fs::write(home.path().join("work/.git/config"), config).unwrap();
            let env = |name: &str| match name {
                "GH_CONFIG_DIR" => Some(OsString::from(home.path().join("gh"))),
                "GIT_CONFIG_NOSYSTEM" => Some("1".into()),
                _ => None,
            };
            let args: Vec<_> = line.split(' ').map(Into::into).collect();
            let planned = plan(&args, &GhEnv::of(&env));
            settle(planned, &env, Some(&home.path().join("work"))).resource.is_some()
        };
        let both = "github.com ghe.example.com";
        let table = [
            ("", "ghe.example.com", "issue list", true),
            ("github.com", "ghe.example.com", "issue list", true),
            (both, "ghe.example.com", "issue list", false),
            (both, "github.com", "issue list", true),
            (both, "ghe.example.com", "issue list -R o/r", true),
            (both, "ghe.example.com", "issue list -R github.com/o/r", true),
            (both, "ghe.example.com", "api user", true),
            (both, "ghe.example.com", "search issues x", true),
            ("ghe.example.com", "github.com", "api user", false),
            ("ghe.example.com", "ghe.example.com", "issue list -R o/r", false),
        ];
        for (hosts, origin, line, spends) in table {
            assert_eq!(of(hosts, origin, line), spends, "{hosts:?} {origin} {line}");
        }
    }
}
