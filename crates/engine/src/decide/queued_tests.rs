use super::*;
use crate::decide::write::Write;

fn words(line: &[&str]) -> Vec<OsString> {
    line.iter().map(OsString::from).collect()
}

fn keep(line: &[&str]) -> Queued {
    let words = words(line);
    let Write::Queueable(action) = judge_words(&words) else { panic!("{line:?} is not queueable") };
    queued(&words, &action).unwrap()
}

fn sent(line: &[&str], step: Step, number: Option<u64>) -> String {
    let repo = Repo::new("github.com", "acme", "widget");
    let known = |seq: u32| (seq == 7).then_some(70);
    command(&keep(line), step, number, &repo, &known).map_or("-".into(), |command| command.argv.join(" "))
}

#[test]
fn a_command_is_kept_the_way_it_was_understood() {
    let kept = |line: &[&str]| keep(line).argv.join(" ");
    assert_eq!(kept(&["issue", "comment", "#12", "-bhello --title x"]), "issue comment 12 --body-file -");
    assert_eq!(
        kept(&["issue", "edit", "https://github.com/acme/widget/issues/12", "--add-label=a,b", "-F-"]),
        "issue edit 12 --add-label a,b --body-file -"
    );
    assert_eq!(
        kept(&["-R", "acme/widget", "issue", "new", "-t", "--web", "-b", "x"]),
        "issue create --repo acme/widget --title --web --body-file -"
    );
    assert_eq!(
        kept(&["issue", "edit", "3", "--remove-milestone", "--title", "t"]),
        "issue edit 3 --remove-milestone --title t"
    );
    assert_eq!(kept(&["issue", "close", "BOB-Q3", "-c", "done"]), "issue close BOB-Q3 --comment done");
}

#[test]
fn what_was_kept_is_read_back_as_the_same() {
    for line in [
        &["issue", "comment", "12", "-b", "x"][..],
        &["issue", "create", "-t", "-b", "-F", "f", "-l", "a,b", "--project", "P"],
        &["issue", "edit", "9", "--remove-milestone", "--add-label", "--web"],
        &["issue", "reopen", "4", "-c", "--help"],
    ] {
        let kept = keep(line);
        let mut argv = kept.argv.clone();
        if let Some(word) = kept.body_word {
            argv[word] = "/q/000001.d/body.md".into();
        }
        let (again, action) = reread(&argv).unwrap_or_else(|| panic!("{argv:?}"));
        assert_eq!(again, kept);
        assert_eq!(body_file(&action), kept.body_word.map(|_| "/q/000001.d/body.md"));
    }
}

#[test]
fn a_delivery_names_its_repository_and_feeds_its_body() {
    assert_eq!(
        sent(&["issue", "comment", "12", "-b", "x"], Step::Comment, Some(12)),
        "issue comment 12 --repo github.com/acme/widget --body-file -"
    );
    assert_eq!(
        sent(&["issue", "close", "12", "-c", "bye", "-r", "not planned"], Step::Comment, Some(12)),
        "issue comment 12 --repo github.com/acme/widget --body-file -"
    );
    assert_eq!(
        sent(&["issue", "close", "12", "-c", "bye", "-r", "not planned"], Step::State, Some(12)),
        "issue close 12 --reason not planned --repo github.com/acme/widget"
    );
    let create =
        &["issue", "create", "-t", "T", "-b", "x", "-p", "Roadmap", "-l", "bug", "--parent", "BOB-Q7"];
    assert_eq!(
        sent(create, Step::Create, None),
        "issue create --title T --project Roadmap --label bug --parent 70 --repo github.com/acme/widget --body-file -"
    );
    assert_eq!(
        sent(create, Step::Extras, Some(5)),
        "issue edit 5 --add-project Roadmap --parent 70 --repo github.com/acme/widget"
    );
    let waits = &["issue", "create", "-t", "T", "-b", "x", "--parent", "BOB-Q8"];
    assert_eq!((sent(waits, Step::Create, None), keep(waits).needs), ("-".into(), vec![8]));
}

#[test]
fn steps_follow_what_gh_does() {
    let of = |line: &[&str]| steps(&keep(line));
    assert_eq!(of(&["issue", "close", "1"]), [Step::State]);
    assert_eq!(of(&["issue", "reopen", "1", "-c", "x"]), [Step::Comment, Step::State]);
    assert_eq!(of(&["issue", "create", "-t", "t", "-b", "x", "-l", "bug"]), [Step::Create]);
    assert_eq!(of(&["issue", "create", "-t", "t", "-b", "x", "-a", "@me"]), [Step::Create, Step::Extras]);
    assert!(has_several_steps(&keep(&["issue", "edit", "1", "-t", "x"])));
    assert!(!has_several_steps(&keep(&["issue", "comment", "1", "-b", "x"])));
}

#[test]
fn a_word_is_a_handle_only_as_a_whole() {
    assert_eq!(handle_in("BOB-Q3"), Some(3));
    assert_eq!(handle_in("#BOB-Q3"), Some(3));
    assert_eq!(handle_in("https://github.com/acme/widget/issues/BOB-Q3"), Some(3));
    for word in ["see BOB-Q3", "BOB-Q", "BOB-Q3x", "bob-q3", "https://github.com/acme/widget/pull/BOB-Q3"] {
        assert_eq!(handle_in(word), None, "{word}");
    }
}
