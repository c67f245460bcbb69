//! The quota budget: one view of the token's quotas for every process on a machine, one gate that every call
//! passes, and the report about both (#3190, #3978).

mod look;
mod messages;
mod refresh;
mod report;
mod turn;

pub use refresh::Machine;
pub use report::{compact, doctor_line, document, known, lines, plan, refresh, resource_for, trim};
pub use turn::{Again, Around, Calling, Passage, Turn};

/// The exit code of a background call that was refused ("try again later" in sysexits.h).
pub const REFUSED: i32 = 75;
