//! FILES: the only user of `std::fs`.
#![allow(clippy::disallowed_methods)]
