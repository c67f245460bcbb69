use super::*;
use serde_json::json;

fn node(number: u64) -> Value {
    json!({"__typename": "Issue", "number": number, "title": "t", "state": "OPEN", "body": "b",
        "labels": {"nodes": [{"id": "L1", "name": "bug", "description": null, "color": "d73a4a"}],
            "pageInfo": {"hasNextPage": false, "endCursor": null}}})
}

fn not_found(alias: &str) -> Value {
    json!({"type": "NOT_FOUND", "path": ["repository", alias], "message": "Could not resolve to an issue"})
}

/// `i`: an issue, `m`: missing, `?`: unread.
fn seen(numbers: &[u64], succeeded: bool, answer: &str) -> String {
    let parts = read(numbers, &Field::USUAL, succeeded, answer.as_bytes());
    let letter = |part: Part| match part.read {
        Read::Issue(_) => 'i',
        Read::Missing => 'm',
        Read::Unread => '?',
    };
    parts.into_iter().map(letter).collect()
}

#[test]
fn only_what_was_read_whole_is_an_issue_and_only_what_the_forge_denies_is_missing() {
    let answer = |repository: Value, errors: Value| {
        json!({"data": {"repository": repository}, "errors": errors}).to_string()
    };
    let good = |errors| answer(json!({"i1": node(1), "i2": node(2)}), errors);
    let one = |errors| answer(json!({"i1": node(1), "i2": null}), errors);
    let without = |field: &str| {
        let mut node = node(2);
        node.as_object_mut().unwrap().remove(field);
        answer(json!({"i1": node}), json!([]))
    };
    let mut endless = node(2);
    endless["labels"]["pageInfo"] = json!({"hasNextPage": true, "endCursor": null});
    let deep = json!([{"path": ["repository", "i2", "labels"], "type": "SERVICE_UNAVAILABLE"}]);
    let table = [
        ("two issues", true, good(json!([])), "ii"),
        (
            "without a word about errors",
            true,
            json!({"data": {"repository": {"i1": node(1)}}}).to_string(),
            "i?",
        ),
        ("one is missing", false, one(json!([not_found("i2")])), "im"),
        ("null without a reason", true, one(json!([])), "i?"),
        (
            "another reason than that it is missing",
            false,
            one(json!([{"path": ["repository", "i2"], "type": "FORBIDDEN"}])),
            "i?",
        ),
        ("two reasons", false, one(json!([not_found("i2"), {"path": ["repository", "i2"]}])), "i?"),
        ("a part of one failed", false, good(deep), "i?"),
        ("an error about all of it", false, good(json!([{"message": "Something went wrong"}])), "??"),
        (
            "the repository is gone",
            false,
            answer(Value::Null, json!([{"type": "NOT_FOUND", "path": ["repository"]}])),
            "??",
        ),
        ("gh failed and the answer does not say why", false, good(json!([])), "??"),
        ("gh succeeded on an answer with errors", true, one(json!([not_found("i2")])), "??"),
        ("no body", true, without("body"), "??"),
        ("no labels", true, without("labels"), "??"),
        ("labels that lead nowhere", true, answer(json!({"i1": node(1), "i2": endless}), json!([])), "i?"),
        ("a limit", false, json!({"errors": [{"type": "RATE_LIMITED", "message": "m"}]}).to_string(), "??"),
        ("a refusal", false, json!({"message": "Bad credentials"}).to_string(), "??"),
        ("a page", true, "<html>".into(), "??"),
        ("nothing", true, String::new(), "??"),
        ("half of it", true, good(json!([]))[..200].to_string(), "??"),
    ];
    for (what, succeeded, answer, expected) in table {
        assert_eq!(seen(&[1, 2], succeeded, &answer), expected, "{what}");
    }
}

#[test]
fn an_issue_has_the_shape_that_gh_prints() {
    let answer = json!({"data": {"repository": {"i1": node(1)}}}).to_string();
    let parts = read(&[1], &Field::USUAL, true, answer.as_bytes());
    let Read::Issue(issue) = &parts[0].read else { panic!("{parts:?}") };
    let expected = json!({"number": 1, "title": "t", "state": "OPEN", "body": "b", "isPullRequest": false,
        "labels": [{"id": "L1", "name": "bug", "description": "", "color": "d73a4a"}]});
    assert_eq!(Value::from(issue.clone()), expected);
}

#[test]
fn less_can_be_asked_for_and_a_pull_request_is_told_apart() {
    let pull = json!({"__typename": "PullRequest", "number": 7, "pullState": "MERGED", "closedAt": null});
    let answer = json!({"data": {"repository": {"i7": pull}}}).to_string();
    let parts = read(&[7], &[Field::State, Field::ClosedAt], true, answer.as_bytes());
    let Read::Issue(issue) = &parts[0].read else { panic!("{parts:?}") };
    let expected = json!({"number": 7, "state": "MERGED", "closedAt": null, "isPullRequest": true});
    assert_eq!(Value::from(issue.clone()), expected);
}

#[test]
fn labels_go_on_where_the_first_page_ends() {
    let mut first = node(1);
    first["labels"]["pageInfo"] = json!({"hasNextPage": true, "endCursor": "Y\"3"});
    let answer = |node: &Value| json!({"data": {"repository": {"i1": node}}}).to_string();
    let parts = read(&[1], &Field::USUAL, true, answer(&first).as_bytes());
    assert_eq!(parts[0].labels_after.as_deref(), Some("Y\"3"));
    assert!(more_labels(&[(1, "Y\"3".into())]).contains(r#"labels(first:100,after:"Y\"3")"#));
    let (labels, after) = labels_page(1, true, answer(&node(1)).as_bytes()).unwrap();
    assert_eq!((labels.len(), after), (1, None));
    assert_eq!(labels_page(1, true, b"{}"), None);
}

#[test]
fn a_query_asks_for_what_is_wanted_and_no_more() {
    let text = query(&[3, 40], &[Field::State, Field::Body]);
    assert!(text.contains("i3:issueOrPullRequest(number:3)") && text.contains("i40:"), "{text}");
    assert!(!text.contains("labels") && !text.contains("title"), "{text}");
    assert!(query(&[3], &Field::USUAL).contains("fragment L on LabelConnection"));
}

#[test]
fn a_single_view_is_read_the_same_way() {
    let view = |labels: usize| {
        json!({"number": 5, "title": "t", "state": "OPEN", "body": "b", "labels": vec![json!({"name": "x"}); labels],
            "url": "https://github.com/o/r/pull/5"})
        .to_string()
    };
    let said = |n: u64| {
        format!(
            "GraphQL: Could not resolve to an issue or pull request with the number of {n}. (repository.issue)\n"
        )
    };
    let read = |exit, out: &str, err: &str| read_view(5, &Field::USUAL, exit, out.as_bytes(), err.as_bytes());
    let part = read(Some(0), &view(1), "");
    let Read::Issue(issue) = &part.read else { panic!("{part:?}") };
    assert_eq!((issue["isPullRequest"].clone(), &part.labels_after), (true.into(), &None));
    assert!(
        !part.is_cached && read(Some(0), &view(1), "[forge-cache] served from cache (age 45s)").is_cached
    );
    assert_eq!(read(Some(0), &view(100), "").labels_after, Some(String::new()));
    assert_eq!(read(Some(1), "", &said(5)).read, Read::Missing);
    let unread = [
        (Some(1), said(55)),
        (Some(1), "GraphQL: Could not resolve to a Repository with the name 'o/r'. (repository)\n".into()),
        (Some(1), "HTTP 404: Not Found (https://api.github.com/graphql)\n".into()),
        (None, said(5)),
        (Some(0), String::new()),
    ];
    for (exit, err) in unread {
        assert_eq!(read(exit, "", &err).read, Read::Unread, "{exit:?} {err}");
    }
    assert_eq!(
        view_args(5, &[Field::State], Some("o/r")),
        ["issue", "view", "5", "--json", "number,url,state", "-R", "o/r"]
    );
}
