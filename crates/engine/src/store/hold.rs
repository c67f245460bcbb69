//! `hold.env`: until when a rate-limited answer has closed a quota for every caller on the machine, and who
//! goes first after it (`CONTRACT` section 5).

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::budget::{pairs, text};
use super::lock::Lock;
use super::{atomic, private};
use crate::decide::gate::Closed;
use crate::decide::reading::Each;
use crate::decide::resource::Resource;

/// How long a caller waits for the file's lock; without it, it goes by what it knows.
const LOCK_WAIT: Duration = Duration::from_secs(1);

/// What is on file; a file that cannot be read closes nothing.
pub fn read(state: &Path) -> Each<Closed> {
    let mut closed = Each::default();
    let Ok(text) = text(&path(state)) else { return closed };
    for (key, value) in pairs(&text) {
        let Some((name, what)) = key.split_once('_') else { continue };
        let (Some(resource), Ok(number)) = (Resource::parse(name), value.parse::<u64>()) else { continue };
        let entry: &mut Closed = &mut closed[resource];
        match what {
            "closed_until_ms" => entry.until_ms = number,
            "line_ms" => entry.line_ms = number,
            "strikes" => entry.strikes = u32::try_from(number).unwrap_or(0),
            _ => {}
        }
    }
    closed
}

/// Changes one quota's entry under the file's lock, and returns what `change` returned.
///
/// # Errors
/// The lock is not to be had in time, or the file cannot be written.
pub fn update<T>(state: &Path, resource: Resource, change: impl FnOnce(&mut Closed) -> T) -> io::Result<T> {
    private::ensure_folder(state)?;
    let lock = Lock::exclusive(&state.join("hold.lock"), LOCK_WAIT)?;
    let _held = lock.ok_or(io::ErrorKind::WouldBlock)?;
    let mut closed = read(state);
    let result = change(&mut closed[resource]);
    atomic::replace(&path(state), content(&closed).as_bytes())?;
    Ok(result)
}

fn path(state: &Path) -> PathBuf {
    state.join("hold.env")
}

fn content(closed: &Each<Closed>) -> String {
    let mut text = String::from("schema=bob-forge-hold/1\n");
    for resource in Resource::ALL {
        let (name, Closed { until_ms, line_ms, strikes }) = (resource.as_str(), closed[resource]);
        text += &format!(
            "{name}_closed_until_ms={until_ms}\n{name}_line_ms={line_ms}\n{name}_strikes={strikes}\n"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_hundred_callers_get_two_hundred_moments() {
        let home = tempfile::tempdir().unwrap();
        update(home.path(), Resource::Graphql, |closed| closed.close(10_000)).unwrap();
        let waiting: Vec<_> = (0..8)
            .map(|_| {
                let state = home.path().to_path_buf();
                std::thread::spawn(move || {
                    let line_up = |closed: &mut Closed| closed.line_up(closed.until_ms);
                    let one = |_| update(&state, Resource::Graphql, line_up).unwrap();
                    (0..25).map(one).collect::<Vec<u64>>()
                })
            })
            .collect();
        let mut moments: Vec<u64> = waiting.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        moments.sort_unstable();
        assert_eq!(moments, (0..200).map(|n| 10_000 + n * 500).collect::<Vec<u64>>());
        assert_eq!(read(home.path()).core, Closed::default());
    }

    #[test]
    fn an_odd_file_closes_nothing() {
        let home = tempfile::tempdir().unwrap();
        for odd in ["", "graphql_closed_until_ms=99", "graphql_closed_until_ms=soon\nodd_line_ms=5\nx\n"] {
            std::fs::write(path(home.path()), odd).unwrap();
            assert_eq!(read(home.path()), Each::default(), "{odd}");
        }
    }
}
