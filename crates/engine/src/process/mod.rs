//! CHILDREN, SIGNALS, CLOCK, ENVIRONMENT: the only user of `std::process`, `std::env` and the clock.
#![allow(clippy::disallowed_methods)]
