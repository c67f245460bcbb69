//! The `gh` that sits first on PATH.
fn main() {}
