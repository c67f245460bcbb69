//! The write queue through the shim: what is spooled, what is not, and what the caller sees.

use crate::support::forge::{Forge, REAL_GH};
use crate::support::queued::Scene;
use crate::support::spawn::Exit;
use serde_json::json;

#[test]
fn an_outage_a_create_a_comment_on_its_handle_an_edit_and_everything_is_there_once_in_order() {
    let forge = Forge::start(&["--repo", "acme/widget"]);
    for version in REAL_GH {
        let scene = Scene::new(&forge, version);
        scene.outage();
        let url = scene.spooled(&["issue", "create", "--title", "todo", "--body-file", "-"], b"the body\n");
        assert_eq!(url, "https://github.com/acme/widget/issues/BOB-Q1\n");
        let said = scene.gh_with(&["issue", "comment", "BOB-Q1", "--body-file", "-"], b"on it");
        assert_eq!(
            said.err(),
            "[forge-queue] not delivered yet — BOB-Q1 has not been created yet, so the live call was not made. \
             Spooled as q000002; it replays in order when the forge recovers (queue depth 2).\n"
        );
        assert_eq!((said.exit, said.out().as_str()), (Exit::Code(0), ""));
        scene.spooled(&["issue", "edit", "1", "--title", "renamed"], b"");
        let said = scene.gh(&["issue", "close", "2"]);
        assert_eq!(
            said.err(),
            "[forge-queue] not delivered yet — the live call failed (server). Spooled as q000004; it replays in \
             order when the forge recovers (queue depth 4).\n"
        );
        scene.recovery();
        let read = scene.gh(&["api", "rate_limit"]);
        assert_eq!(read.exit, Exit::Code(0));
        assert_eq!(scene.depth(), 0, "{}", read.err());
        assert_eq!(scene.issues().len(), 3);
        let made = scene.issue(3);
        assert_eq!((&made["title"], &made["body"]), (&json!("todo"), &json!("the body\n")));
        assert_eq!(scene.comments(3), ["on it"]);
        assert_eq!(scene.issue(1)["title"], "renamed");
        assert_eq!(scene.issue(2)["state"], "closed");
        assert!(!scene.sandbox.state().join("queue-dirty").exists());
        let live = scene.gh(&["issue", "comment", "BOB-Q1", "--body", "later"]);
        assert_eq!(live.exit, Exit::Code(0), "{}", live.err());
        assert_eq!(scene.comments(3), ["on it", "later"]);
    }
}
