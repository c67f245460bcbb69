//! The command behind `bob forge …`.
fn main() {}
