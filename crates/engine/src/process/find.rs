//! The real gh: the first on PATH that is no copy of the shim.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::sys;

/// What every copy of the shim carries in its first bytes, the compiled one and the shell script
/// that it replaces alike.
pub const MARKER: &[u8] = b"bob-forge-gh-shim";

/// How far into a file the marker may stand.
const HEAD: u64 = 4096;

/// The first `gh` on `path` that can be run and is not a shim.
///
/// # Errors
/// None was found: one line that names what was searched.
pub fn real_gh(path: Option<&OsStr>) -> Result<PathBuf, String> {
    let Some(path) = path.filter(|p| !p.is_empty()) else {
        return Err("PATH is not set, so there is no place to look for the real gh".into());
    };
    let own = std::fs::metadata(own_executable()).ok();
    let mut shims = Vec::new();
    for (candidate, found) in programs(path) {
        let is_self = own.as_ref().is_some_and(|own| (own.dev(), own.ino()) == (found.dev(), found.ino()));
        if !is_self && !carries_marker(&candidate) {
            return Ok(candidate);
        }
        shims.push(candidate.to_string_lossy().into_owned());
    }
    let passed_over = if shims.is_empty() {
        String::new()
    } else {
        format!(" (passed over, a shim: {})", shims.join(", "))
    };
    Err(format!("no real gh found on PATH: searched {}{passed_over}", path.to_string_lossy()))
}

/// The first `gh` on `path` that can be run, a shim as good as any other.
pub fn any_gh(path: Option<&OsStr>) -> Option<PathBuf> {
    programs(path?).next().map(|(program, _)| program)
}

/// The first program `name` on `path` that can be run; empty and relative entries are passed over.
pub fn on_path(name: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    let folders = path?.as_bytes().split(|b| *b == b':').filter(|f| f.starts_with(b"/"));
    let mut found = folders.map(|folder| Path::new(OsStr::from_bytes(folder)).join(name));
    found.find(|candidate| {
        std::fs::metadata(candidate).is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0)
    })
}

/// The first `gh` on `path` behind the folder `own`, a shim as good as any; where `own` is not on it, the
/// first that does not lie in `own`.
pub fn gh_behind(path: Option<&OsStr>, own: &Path) -> Option<PathBuf> {
    let folders: Vec<&Path> =
        path?.as_bytes().split(|b| *b == b':').map(|f| Path::new(OsStr::from_bytes(f))).collect();
    let is_own = |folder: &Path| folder == own || std::fs::canonicalize(folder).is_ok_and(|f| f == own);
    let behind = folders.iter().position(|folder| is_own(folder)).map_or(0, |at| at + 1);
    let others = folders[behind..].iter().filter(|folder| folder.is_absolute());
    let mut found = others.map(|folder| folder.join("gh"));
    found.find(|candidate| is_program(candidate) && !candidate.starts_with(own))
}

/// This process's own program, as it was started.
pub fn own_program() -> Option<PathBuf> {
    std::env::current_exe().ok()
}

/// The compiled shim that belongs to this program or addon: built beside it, or deployed with it, or in
/// `bob_home`.
pub fn own_shim(bob_home: Option<&Path>) -> Option<PathBuf> {
    let own = [super::sys::own_file(), own_program()].into_iter().flatten();
    let folders = own.filter_map(|file| Some(std::fs::canonicalize(file).ok()?.parent()?.to_path_buf()));
    let beside = folders.flat_map(|folder| [folder.join("gh"), folder.join("../../bin/gh")]);
    let mut candidates = beside.chain(bob_home.map(|home| home.join("bin/gh")));
    candidates.find(|candidate| is_program(candidate) && carries_marker(candidate) && !is_script(candidate))
}

fn is_script(candidate: &Path) -> bool {
    let mut start = [0; 2];
    File::open(candidate).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == *b"#!"
}

fn is_program(candidate: &Path) -> bool {
    program(candidate).is_some()
}

/// What is known of a file that this very user can run; `None` for any other, past which a shell goes on
/// looking too.
fn program(candidate: &Path) -> Option<Metadata> {
    let found = std::fs::metadata(candidate).ok().filter(Metadata::is_file)?;
    sys::may_run(&sys::c_string(candidate.into())).then_some(found)
}

/// Every `gh` on `path` that can be run. Empty and relative entries are passed over: what lies in the
/// working directory is not what the user installed.
fn programs(path: &OsStr) -> impl Iterator<Item = (PathBuf, Metadata)> {
    let folders = path.as_bytes().split(|b| *b == b':').filter(|f| f.starts_with(b"/"));
    let candidates = folders.map(|folder| Path::new(OsStr::from_bytes(folder)).join("gh"));
    candidates.filter_map(|candidate| {
        let found = program(&candidate)?;
        Some((candidate, found))
    })
}

/// A file that may be run but not read cannot be a shim of ours: deploy makes them readable.
fn carries_marker(candidate: &Path) -> bool {
    let mut head = Vec::new();
    let opened = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(candidate);
    opened.and_then(|file| file.take(HEAD).read_to_end(&mut head)).is_ok()
        && head.windows(MARKER.len()).any(|window| window == MARKER)
}

#[cfg(target_os = "linux")]
fn own_executable() -> PathBuf {
    "/proc/self/exe".into()
}

#[cfg(not(target_os = "linux"))]
fn own_executable() -> PathBuf {
    std::env::current_exe().unwrap_or_default()
}

/// The value of PATH for [`real_gh`], from an environment look-up.
pub fn path_of(env: &impl crate::settings::Lookup) -> Option<OsString> {
    env.var(crate::settings::PATH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn program(folder: &Path, content: &str, mode: u32) {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("gh"), content).unwrap();
        fs::set_permissions(folder.join("gh"), fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn shims_folders_and_files_that_cannot_run_are_passed_over() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        program(&at("shim"), "#!/bin/sh\n# bob-forge-gh-shim\n", 0o755);
        program(&at("plain"), "#!/bin/sh\n", 0o644);
        fs::create_dir_all(at("folder/gh")).unwrap();
        program(&at("real"), "#!/bin/sh\nexit 0\n", 0o755);
        let path = ["", ".", "real", "/nowhere"].map(String::from).into_iter();
        let absolute = ["shim", "plain", "folder"].map(|n| at(n).display().to_string());
        let path = path.chain(absolute).collect::<Vec<_>>().join(":");
        let complaint = real_gh(Some(path.as_ref())).unwrap_err();
        assert!(complaint.contains("/nowhere") && complaint.contains("a shim"), "{complaint}");
        let path = format!("{path}:{}", at("real").display());
        assert_eq!(real_gh(Some(path.as_ref())), Ok(at("real/gh")));
        assert!(real_gh(None).is_err() && real_gh(Some("".as_ref())).is_err());
    }
}
