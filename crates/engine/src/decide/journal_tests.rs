use super::*;

fn line(at_ms: u64, event: Event) -> Line {
    Line { at_ms, seq: 3, step: Some(Step::Comment), event }
}

#[test]
fn every_line_is_read_back() {
    let events = [
        Event::Attempt,
        Event::Delivered("https://github.com/a/b/issues/1".into()),
        Event::Found(String::new()),
        Event::Failed(Reach::Unknown, "gh said: no".into()),
        Event::Ended(Status::Skipped, "it is gone".into()),
    ];
    for event in events {
        let line = line(7, event);
        assert_eq!(Line::parse(&line.to_text()), Some(line.clone()));
        let whole = Line { step: None, ..line };
        assert_eq!(Line::parse(&whole.to_text()), Some(whole));
    }
    let odd = line(7, Event::Failed(Reach::Nothing, "a\tb\nc\u{1b}".into()));
    assert_eq!(odd.to_text(), "7\tfailed\tq000003\tcomment\tnothing\ta b c ");
    for text in [
        "",
        "7\tattempt\tq000003\tcomment\t-",
        "7\tsplendid\tq000003\t-\t-\t-",
        "x\tattempt\tq000003\t-\t-\t-",
    ] {
        assert_eq!(Line::parse(text), None, "{text}");
    }
}

#[test]
fn an_attempt_without_an_outcome_may_have_got_through() {
    let entry: Entry = serde_json::from_str(
        r#"{"schema":"","seq":3,"id":"","kind":"comment","repo":"","argv":[],"status":"pending",
            "live":{"started_ms":10,"ended_ms":20,"reach":"perhaps"}}"#,
    )
    .unwrap();
    let open = |lines: &[Line]| history(&entry, Step::Comment, lines).open;
    assert_eq!(open(&[]), Some(Open { first_ms: 10, last_ms: 20, is_lost: false }));
    let dangling = history(&entry, Step::Comment, &[line(50, Event::Attempt)]);
    assert!(dangling.is_dangling);
    assert_eq!(dangling.open, Some(Open { first_ms: 10, last_ms: 50, is_lost: true }));
    let refused = [line(50, Event::Attempt), line(60, Event::Failed(Reach::Nothing, String::new()))];
    assert_eq!(open(&refused), Some(Open { first_ms: 10, last_ms: 20, is_lost: false }));
    let landed = [line(50, Event::Attempt), line(60, Event::Delivered("u".into()))];
    assert_eq!(history(&entry, Step::Comment, &landed).done.as_deref(), Some("u"));
    assert_eq!(history(&entry, Step::State, &landed).done, None);
    assert_eq!((claimed(&landed, 3), claimed(&landed, 4)), (vec![], vec!["u"]));
}

#[test]
fn a_handle_is_the_number_in_its_creates_url() {
    let made = Line {
        at_ms: 1,
        seq: 3,
        step: Some(Step::Create),
        event: Event::Delivered("https://github.com/a/b/issues/42".into()),
    };
    assert_eq!(number_of(std::slice::from_ref(&made), 3), Some(42));
    assert_eq!(number_of(&[made], 4), None);
}
