//! FILES: the only user of `std::fs`.
//!
//! | file in the state folder | format | written by | lock | why `kill -9` is safe |
//! | --- | --- | --- | --- | --- |
//! | `observations.log` | TSV, nine columns | every shim, probes, `record` | `observations.lock` | one `write` a line; the next writer ends a torn line before its own, readers stop at the last newline |
//! | `observations.lock` | `size lines` | whoever holds it | itself, never unlinked | a memo: a size that is not the log's makes the next holder count again |
//! | `health.json` | JSON | every `status` that derived a verdict | none | written aside and renamed; valid only for the very log it names |
//! | `health.lock` | empty | nobody | itself, never unlinked | the kernel lets go of it |
//! | `cache.log`, `cache.lock` | TSV, seven columns | every shim that fell back on a stored answer, or on one past its bound | `cache.lock` | as `observations.log` |
//! | `writes.log`, `writes.lock` | TSV: epoch-ms, repository, issue | every shim whose write went live | `writes.lock` | as `observations.log` |
//! | `budget.env` | `key=value` | whoever refreshed the quota | `budget.lock`, a folder that is a lease | the token is the new file, renamed over the old one |
//! | `rate.log` | TSV: epoch, quota, `fg` or `bg` | every gated call | `rate.log.lock`; an older shim's `rate.lock` folder is honoured | one `write` a slot, which is taken before the call is made |
//! | `hold.env` | `key=value` | whoever met a rate limit, or waits | `hold.lock` | written aside and renamed |
//! | `budget.log`, `quota.log`, `ratelimit.log` | TSV | the gate, the refresh, every shim | `NAME.log.lock` | as `observations.log` |
//! | `queue-dirty` | one project's real path a line | whoever queues, and the replay that drains | `queue-dirty.lock` | written aside, synced, renamed; made before the entry, so that none is without it |
//! | `queue.key` | 32 random bytes | the first who queues | none | synced, with the names of the folders above it, and then linked into place, which never replaces one |
//! | `measure.PID.N/` | the shim, and a record of one line a call | `forge budget measure`, the recorder | none | one `write` a line; a folder left behind is not used again |
//!
//! | file in `<project>/.claude/forge/cache` | format | written by | lock | why `kill -9` is safe |
//! | --- | --- | --- | --- | --- |
//! | `NAME.entry` | a header line, the key, the answer's exact bytes, a seal | every shim whose cacheable read succeeded | `lock` | written aside and renamed; a reader trusts the seal alone |
//! | `lock` | `entries bytes` | whoever holds it | itself | counted before the entry is written: too high at worst, and then counted anew |
//!
//! The files of `<project>/.claude/forge/queue` are in the table of [`queue`].
//!
//! Rules: a reader accepts a torn last line and unknown trailing columns; nothing but a memo in
//! a lock file is edited in place (append, or write aside and rename); folders are 700 and files 600 whatever
//! the umask; no lock is held across a child or a sleep, but `health.lock` across a probe (see `ops::health`)
//! the lease `budget.lock` across a refresh of the quota, and `replay.lock`, which the delivering child inherits.
#![allow(clippy::disallowed_methods)]

pub mod atomic;
pub mod budget;
pub mod cache;
pub mod cache_log;
pub mod dirty;
pub mod folder;
pub mod hold;
pub mod ledger;
pub mod lock;
pub mod lockdir;
pub mod observations;
pub mod own_writes;
pub mod private;
pub mod project;
pub mod queue;
pub mod recorder;
pub mod records;
pub mod remotes;
pub mod ring;
pub mod text;
pub mod verdict;
