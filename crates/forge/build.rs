//! On macOS the shim's marker goes into the load commands, which stand in a file's first bytes, as a
//! run path that names nothing.
#[allow(clippy::disallowed_methods, clippy::print_stdout)]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "macos") {
        println!("cargo::rustc-link-arg-bin=gh=-Wl,-rpath,/bob-forge-gh-shim");
    }
}
