//! gh's own flag grammar, read from a table: which command, which operands, which flags.
