//! The five queueable shapes, and each reason against.

use super::super::argv::parse;
use super::super::argv::tests::{Random, words};
use super::super::repo::Repo;
use super::*;

fn of(line: &str) -> Write {
    judge(&parse(&words(line)))
}

fn queueable(line: &str) -> Action {
    match of(line) {
        Write::Queueable(action) => action,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn each_refusal_has_its_reason() {
    let rows = [
        ("issue create", WhyNot::NoTitle),
        ("issue create -b B", WhyNot::NoTitle),
        ("issue create -t '' -b B", WhyNot::NoTitle),
        ("issue create -t T", WhyNot::NoBody),
        ("issue create -t T -F ''", WhyNot::NoBody),
        ("issue create -t T -b B x", WhyNot::Usage),
        ("issue create -t T -b", WhyNot::Usage),
        ("issue create -t T -b B --web", WhyNot::Interactive),
        ("issue create -t T -b B -e", WhyNot::Interactive),
        ("issue create --recover f", WhyNot::Interactive),
        ("issue create -t T -b B --attach f.png", WhyNot::Attachment),
        ("issue create -t T -b B --sparkle", WhyNot::UnknownFlag),
        ("issue comment 12", WhyNot::NoBody),
        ("issue comment -b x", WhyNot::NoTarget),
        ("issue comment 12 -e", WhyNot::Interactive),
        ("issue comment 12 -w", WhyNot::Interactive),
        ("issue comment 12 --edit-last -b x", WhyNot::LastComment),
        ("issue comment 12 --delete-last --yes", WhyNot::LastComment),
        ("issue comment 12 --create-if-none -b x", WhyNot::LastComment),
        ("issue comment 12 -b x -F f", WhyNot::Usage),
        ("issue comment 12 13 -b x", WhyNot::SeveralTargets),
        ("issue comment o/r#12 -b x", WhyNot::NoTarget),
        ("issue comment 12 -b x -Z", WhyNot::UnknownFlag),
        ("issue edit 12", WhyNot::NoChange),
        ("issue edit 12 -R o/r", WhyNot::NoChange),
        ("issue edit 12 -b ''", WhyNot::EmptyEdit),
        ("issue edit 12 -t T --body=", WhyNot::EmptyEdit),
        ("issue edit 12 13 -t T", WhyNot::SeveralTargets),
        ("issue edit 12 -b x -F f", WhyNot::Usage),
        ("issue close", WhyNot::NoTarget),
        ("issue close 12 13", WhyNot::SeveralTargets),
        ("issue close 12 --force", WhyNot::UnknownFlag),
        ("issue reopen twelve", WhyNot::NoTarget),
    ];
    for (line, expected) in rows {
        match of(line) {
            Write::Refused { why, .. } => assert_eq!(why, expected, "{line}"),
            other => panic!("{line}: {other:?}"),
        }
    }
}

#[test]
fn a_refused_write_still_names_its_issues() {
    let Write::Refused { kind, targets, .. } = of("issue edit 12 BOB-Q3 x -t T") else { panic!("refused") };
    assert_eq!(kind, WriteKind::Edit);
    assert_eq!(targets, [Target::Number(12), Target::Handle(3)]);
}

#[test]
fn destructive_moves_and_reads_are_none_of_the_five() {
    for line in [
        "issue delete 12 --yes",
        "issue transfer 12 o/r",
        "issue lock 12",
        "issue list",
        "pr comment 12 -b x",
    ] {
        assert_eq!(of(line), Write::None, "{line}");
    }
}

#[test]
fn a_body_comes_from_where_the_flags_say() {
    let place = |word, value| Place { word, value: Some(value) };
    let rows = [
        ("issue create -t T -b B", Body::Inline("B".into(), place(4, (5, 0)))),
        ("issue create -t T -bB", Body::Inline("B".into(), place(4, (4, 2)))),
        ("issue create -t T --body=", Body::Inline("".into(), place(4, (4, 7)))),
        ("issue create -t T -b A -b B", Body::Inline("B".into(), place(6, (7, 0)))),
        ("issue create -t T -F f.md", Body::File("f.md".into(), place(4, (5, 0)))),
        ("issue create -t T -F - -b B", Body::Stdin(place(4, (5, 0)))),
        ("issue create -t T --body-file=-", Body::Stdin(place(4, (4, 12)))),
        ("issue comment 12 -F-", Body::Stdin(place(3, (3, 2)))),
        ("issue comment 12 -b -", Body::Inline("-".into(), place(3, (4, 0)))),
        ("issue edit 12 --body-file -", Body::Stdin(place(3, (4, 0)))),
    ];
    for (line, expected) in rows {
        assert_eq!(queueable(line).body(), Some(&expected), "{line}");
    }
    assert_eq!(queueable("issue edit 12 --add-label a").body(), None);
}

#[test]
fn every_form_of_an_issue_is_a_target() {
    let repo = || Repo::new("github.com", "acme", "widget");
    let rows = [
        ("issue close 12", Target::Number(12), 2),
        ("issue close #12", Target::Number(12), 2),
        ("-R o/r issue close 012", Target::Number(12), 4),
        ("issue close BOB-Q3", Target::Handle(3), 2),
        ("issue close -c x https://github.com/acme/widget/issues/9", Target::Url(repo(), 9), 4),
        ("issue close https://github.com/acme/widget/issues/BOB-Q1", Target::HandleUrl(repo(), 1), 2),
    ];
    for (line, target, word) in rows {
        assert_eq!(queueable(line).on(), Some(&Issue { target, word }), "{line}");
    }
}

#[test]
fn a_close_and_a_reopen_carry_their_comment() {
    let on = || Issue { target: Target::Number(12), word: 2 };
    assert_eq!(queueable("issue close 12 -c done"), Action::Close { on: on(), comment: Some("done".into()) });
    assert_eq!(queueable("issue close 12 -r completed"), Action::Close { on: on(), comment: None });
    assert_eq!(
        queueable("issue reopen 12 --comment=again"),
        Action::Reopen { on: on(), comment: Some("again".into()) }
    );
}

#[test]
fn a_body_of_white_space_alone_is_blank() {
    for blank in ["", " ", "\n\t \r\n", "\u{a0}\u{2003}", "\u{feff}\n"] {
        assert!(is_blank(blank.as_bytes()), "{blank:?}");
    }
    assert!(!is_blank(b"x\n"));
    assert!(!is_blank(b"\xff"));
}

#[test]
fn names_of_kinds_read_back() {
    for kind in WriteKind::ALL {
        assert_eq!(WriteKind::parse(kind.as_str()), Some(kind));
    }
    assert_eq!(WriteKind::parse("delete"), None);
}

#[test]
fn a_body_is_pointed_at_its_file_and_nothing_else_changes() {
    let rows = [
        ("issue comment 12 --body hi", "issue comment 12 --body-file P"),
        ("issue comment 12 --body=hi", "issue comment 12 --body-file P"),
        ("issue comment 12 -b hi", "issue comment 12 --body-file P"),
        ("issue comment 12 -bhi", "issue comment 12 --body-file P"),
        ("issue comment 12 -b=hi", "issue comment 12 --body-file P"),
        ("issue comment 12 -b= -R o/r", "issue comment 12 --body-file P -R o/r"),
        ("issue comment -F- 12", "issue comment --body-file P 12"),
        ("issue comment --body-file - 12 -R o/r", "issue comment --body-file P 12 -R o/r"),
        ("issue create -t T -b A -b B -l x", "issue create -t T --body-file P -l x"),
        ("issue create -F f -t T -b B", "issue create -t T --body-file P"),
        ("-b hi issue comment 12", "--body-file P issue comment 12"),
        ("issue comment 12 -wbhi", "issue comment 12 -w --body-file P"),
        ("issue comment 12 -wb=hi", "issue comment 12 -w --body-file P"),
        ("issue comment 12 -wb hi", "issue comment 12 -w --body-file P"),
        ("issue create -t -b -b -t", "issue create -t -b --body-file P"),
        ("issue comment -b x -- 12", "issue comment --body-file P -- 12"),
        ("issue close 12 -c done", "issue close 12 -c done"),
    ];
    for (line, expected) in rows {
        assert_eq!(with_body_file(&words(line), OsStr::new("P")), words(expected), "{line}");
    }
}

#[test]
fn no_command_line_loses_anything_but_its_body() {
    let mut random = Random(3186);
    for _ in 0..5_000 {
        let mut args = words(["issue comment", "issue create", "issue edit"][random.below(3)]);
        args.extend(random.argv());
        let before = parse(&args);
        let rewritten = with_body_file(&args, OsStr::new("P"));
        let after = parse(&rewritten);
        if !before.faults.is_empty() {
            continue;
        }
        let rest = |call: &argv::Parsed<'_>| -> Vec<(&'static str, String)> {
            let others = call.flags.iter().filter(|flag| !matches!(flag.name, "body" | "body-file"));
            let flags = others.map(|flag| (flag.name, format!("{:?}", flag.value)));
            flags.chain(call.operands.iter().map(|o| ("", format!("{:?}", o.text)))).collect()
        };
        assert_eq!(after.named, before.named, "{args:?}");
        assert_eq!(rest(&after), rest(&before), "{args:?}");
        let has_body = before.given("body") || before.given("body-file");
        assert_eq!(after.value("body-file"), has_body.then_some(OsStr::new("P")), "{args:?}");
        assert!(!after.given("body"), "{args:?}");
    }
}
