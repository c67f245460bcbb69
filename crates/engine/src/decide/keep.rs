//! Which answers are worth keeping: exit 0 alone does not say that something was learned.
//!
//! gh ends with 0 on some answers that say nothing, and prints what an empty result looks like
//! (`GH-SURFACE` section 0, item 9). Judged is what can be seen from outside:
//!
//! | command | an empty answer |
//! | --- | --- |
//! | `issue list` | is one: gh fails on an answer without data ("has disabled issues"). Kept |
//! | `issue view` | says nothing, unless `--jq` or `--template` made it empty. Dropped |
//! | `label list` | also what `{"data":null}` looks like. Dropped |
//! | `search issues` | also what an answer without items looks like, `incomplete_results` among them. Dropped |
//!
//! A search that is cut short but not empty cannot be told from a whole one; it is kept. What gh warns
//! of on stderr while it ends with 0 (`warning: …` of a view whose projects could not be read) is not.

/// Why an answer is not kept.
pub type Why = &'static str;

/// Judges the answer of a call that ended with 0. `command` is the plan's, `shaped` says whether
/// `--jq` or `--template` made the answer, `said` is what gh wrote to stderr.
///
/// # Errors
/// Why it is not kept.
pub fn judge(command: &str, shaped: bool, answer: &[u8], said: &[u8]) -> Result<(), Why> {
    if warns(said) {
        return Err("gh warned of something");
    }
    let answer = answer.trim_ascii();
    match command {
        "label list" | "search issues" if is_empty(answer, shaped) => {
            Err("an empty answer of this command may be none at all")
        }
        "issue view" | "issue list" if !shaped && answer == b"null" => Err("it says nothing"),
        "issue view" if !shaped && (answer.is_empty() || answer == b"{}") => Err("it says nothing"),
        _ => Ok(()),
    }
}

/// An empty list, or what becomes of one in a filter that counts, selects or joins.
fn is_empty(answer: &[u8], shaped: bool) -> bool {
    const NOTHING: [&[u8]; 3] = [b"", b"[]", b"null"];
    const FILTERED: [&[u8]; 4] = [b"0", b"{}", b"false", b"\"\""];
    NOTHING.contains(&answer) || (shaped && FILTERED.contains(&answer))
}

/// Whether a line says that something went less than well. Words, not gh's own grammar: what a later
/// version warns of has no known form, and an answer too few in the cache costs nothing but itself.
fn warns(said: &[u8]) -> bool {
    const WORDS: [&str; 12] = [
        "warn",
        "error",
        "fail",
        "could not",
        "cannot",
        "can't",
        "unable",
        "incomplete",
        "partial",
        "timeout",
        "timed out",
        "denied",
    ];
    let text = String::from_utf8_lossy(said).to_lowercase();
    // GH_DEBUG writes requests down; their lines begin with a sign.
    let plain = |line: &&str| !line.trim_start().starts_with(['*', '>', '<', '{', '}', '[']);
    text.lines().filter(plain).any(|line| WORDS.iter().any(|word| line.contains(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_issue_list_is_an_answer() {
        for answer in ["", "\n", "[]", "[]\n", "0\n"] {
            assert_eq!(judge("issue list", false, answer.as_bytes(), b""), Ok(()), "{answer:?}");
        }
        assert!(judge("issue list", false, b"null\n", b"").is_err());
        assert_eq!(judge("issue list", true, b"null\n", b""), Ok(()));
    }

    #[test]
    fn empty_answers_that_may_be_none_are_dropped() {
        for command in ["label list", "search issues"] {
            for answer in ["", "\n", "[]\n", " [] ", "null"] {
                assert!(judge(command, false, answer.as_bytes(), b"").is_err(), "{command} {answer:?}");
                assert!(judge(command, true, answer.as_bytes(), b"").is_err(), "{command} {answer:?}");
            }
            for answer in ["0", "false\n", "\"\"", "{}"] {
                assert!(judge(command, true, answer.as_bytes(), b"").is_err(), "{command} {answer:?}");
                assert_eq!(judge(command, false, answer.as_bytes(), b""), Ok(()), "{command} {answer:?}");
            }
            assert_eq!(judge(command, false, b"[{\"name\":\"bug\"}]\n", b""), Ok(()));
        }
    }

    #[test]
    fn a_view_without_a_word_is_dropped_unless_a_filter_made_it_so() {
        for answer in ["", "\n", "{}\n", "null"] {
            assert!(judge("issue view", false, answer.as_bytes(), b"").is_err(), "{answer:?}");
            assert_eq!(judge("issue view", true, answer.as_bytes(), b""), Ok(()), "{answer:?}");
        }
        assert_eq!(judge("issue view", false, b"title:\tx\n", b""), Ok(()));
    }

    #[test]
    fn what_gh_warns_of_is_dropped_and_what_it_traces_is_not() {
        let warned = |said: &str| judge("issue list", false, b"1\n", said.as_bytes()).is_err();
        assert!(warned("warning: could not load projects\n"));
        assert!(warned("* Request at now\nGraphQL: Something FAILED\n"));
        assert!(!warned(""));
        assert!(!warned(
            "* Request to https://api.github.com/graphql\n> X-Error: 1\n< timeout: 5\n* took 5ms\n"
        ));
        assert!(!warned("A new release of gh is available\n"));
    }
}
