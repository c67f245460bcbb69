//! Remote URL forms, `-R` values and URL operands → host/owner/name, and which one gh would pick.
