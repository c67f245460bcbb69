//! `scripts/deploy.sh`: what is somebody else's stays theirs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support::running::Run;
use crate::support::sandbox::{Sandbox, forge_command, place, shim};
use crate::support::spawn::Exit;

/// A sandbox with something built to install.
fn built() -> Sandbox {
    let sandbox = Sandbox::new("on *\n exit 0\n");
    fs::create_dir_all(sandbox.path("target/deploy")).unwrap();
    place(&shim(), &sandbox.path("target/deploy/gh"));
    place(&forge_command(), &sandbox.path("target/deploy/forge"));
    sandbox.file("target/deploy/forge.node", "an addon");
    sandbox
}

fn deploy(sandbox: &Sandbox, words: &[&str]) -> Run {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/deploy.sh");
    let call = sandbox.program(script, &[&["--no-build"], words].concat());
    call.env("PATH", "/usr/bin:/bin").env("CARGO_TARGET_DIR", sandbox.path("target")).run()
}

fn text(sandbox: &Sandbox, below: &str) -> String {
    String::from_utf8_lossy(&fs::read(sandbox.path("bob").join(below)).unwrap()).into_owned()
}

#[test]
fn what_a_user_put_in_place_of_an_installed_file_is_not_overwritten() {
    let sandbox = built();
    assert_eq!(deploy(&sandbox, &[]).exit, Exit::Code(0));
    let own = sandbox.path("bob/bin/gh.new");
    fs::write(&own, "#!/bin/sh\necho mine\n").unwrap();
    fs::set_permissions(&own, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(&own, sandbox.path("bob/bin/bob")).unwrap();
    assert_eq!(deploy(&sandbox, &[]).exit, Exit::Code(0));
    assert!(text(&sandbox, "bin/bob").contains("mine"), "bin/bob is only installed where none is");
    fs::copy(sandbox.path("bob/bin/bob"), &own).unwrap();
    fs::rename(&own, sandbox.path("bob/bin/gh")).unwrap();
    let refused = deploy(&sandbox, &[]);
    assert_eq!(refused.exit, Exit::Code(1), "{}", refused.out());
    assert!(text(&sandbox, "bin/gh").contains("mine"), "a gh that is no shim is not ours");
}

#[test]
fn an_edited_module_is_kept_aside_and_comes_back() {
    let sandbox = built();
    assert_eq!(deploy(&sandbox, &[]).exit, Exit::Code(0));
    sandbox.file("bob/scripts/forge/health.js", "// edited\n");
    assert_eq!(deploy(&sandbox, &[]).exit, Exit::Code(0));
    assert!(text(&sandbox, "scripts/forge/health.js").contains("use strict"));
    assert_eq!(text(&sandbox, "forge/replaced/scripts/forge/health.js"), "// edited\n");
    assert_eq!(deploy(&sandbox, &["--uninstall"]).exit, Exit::Code(0));
    assert_eq!(text(&sandbox, "scripts/forge/health.js"), "// edited\n");
}
