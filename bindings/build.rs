//! Links the addon.
#[allow(clippy::disallowed_methods, clippy::print_stdout)]
fn main() {
    napi_build::setup();
    // When a worker thread ends, Node closes the addon; a thread of ours that still runs (the reader of
    // a probe's output) must not lose its code.
    if std::env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|env| env == "gnu") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
