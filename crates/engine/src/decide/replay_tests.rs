use super::*;
use crate::decide::entry::{Entry, Live, SCHEMA, Status};
use crate::decide::journal::{Event, Line, claimed, history};
use crate::decide::write::WriteKind;

fn history_open(first_ms: u64, last_ms: u64, is_lost: bool) -> History {
    History { open: Some(Open { first_ms, last_ms, is_lost }), ..History::default() }
}

#[test]
fn only_what_may_have_landed_is_looked_for_and_only_after_it_has_settled() {
    let fresh = History::default();
    assert_eq!(next(Step::Comment, &fresh, 10_000, 5), Next::Send);
    assert_eq!(next(Step::State, &fresh, 10_000, 5), Next::Look);
    let lost = history_open(1_000, 2_000, true);
    assert_eq!(next(Step::Comment, &lost, 10_000, 3_000), Next::Wait(9_000));
    assert_eq!(next(Step::Edit, &lost, 10_000, 3_000), Next::Wait(9_000));
    assert_eq!(next(Step::Comment, &lost, 10_000, 12_000), Next::Look);
    assert_eq!(next(Step::Edit, &lost, 10_000, 12_000), Next::Send);
    let answered = history_open(1_000, 2_000, false);
    assert_eq!(next(Step::Create, &answered, 10_000, 2_001), Next::Look);
    let done = History { done: Some("u".into()), ..lost };
    assert_eq!(next(Step::Create, &done, 10_000, 3_000), Next::Done("u".into()));
}

#[test]
fn a_clock_that_was_set_back_does_not_hold_an_entry_for_ever() {
    let lost = history_open(1_000, 100_000_000, true);
    assert_eq!(next(Step::Comment, &lost, 10_000, 50_000), Next::Look);
    let a_little = history_open(1_000, 60_000, true);
    assert_eq!(next(Step::Comment, &a_little, 10_000, 50_000), Next::Wait(10_000));
}

fn shown(url: &str, by: &str, at_s: u64, body: &str) -> Shown {
    Shown { url: url.into(), by: by.into(), at_s, title: String::new(), body: body.into() }
}

#[test]
fn a_match_is_ours_in_its_window_and_nobody_elses() {
    let all = [
        shown("old", "me", 99, "x"),
        shown("other", "you", 101, "x"),
        shown("a", "Me", 100, "x\r\n"),
        shown("b", "me", 110, "x"),
        shown("late", "me", 500, "x"),
    ];
    let wanted = |claimed| Wanted {
        by: Some("me"),
        body: "x\n\n",
        between_s: (100, 220),
        claimed,
        ..Wanted::default()
    };
    assert_eq!(find(&wanted(&[]), &all).unwrap().url, "a");
    assert_eq!(find(&wanted(&["a"]), &all).unwrap().url, "b");
    assert_eq!(find(&wanted(&["a", "b"]), &all), None);
    let anybody = Wanted { by: None, claimed: &["a", "b"], ..wanted(&[]) };
    assert_eq!(find(&anybody, &all).unwrap().url, "other");
    assert_eq!(find(&Wanted { title: "t", ..wanted(&[]) }, &all), None);
}

#[test]
fn clocks_are_compared_by_dated_answers() {
    // The forge is ten seconds ahead; each answer leaves a second of doubt, two answers less.
    let skew = Skew::default().learn(1_000_000, 1_000_100, 1_010).learn(2_000_900, 2_001_000, 2_010);
    let open = Open { first_ms: 3_000_000, last_ms: 3_000_500, is_lost: true };
    let (from_s, to_s) = window_s(open, skew);
    assert!((3_009..=3_010).contains(&from_s), "{from_s}");
    assert!((3_130..=3_132).contains(&to_s), "{to_s}");
    // Clocks that may agree: what was made in the second before is not ours.
    let agree = Skew::default().learn(1_000_500, 1_000_600, 1_000);
    assert_eq!(window_s(Open { first_ms: 5_000_300, ..open }, agree).0, 5_000);
    // A clock that was set between two answers: the newer one is right.
    let set = agree.learn(2_000_000, 2_000_100, 9_000);
    assert!(window_s(open, set).0 > 9_000);
}

#[test]
fn failures_stop_the_replay_wait_or_set_aside_one_entry() {
    let of = |step, signal, reach, attempts| after(step, signal, reach, attempts, 3);
    for signal in [Signal::Net, Signal::Server, Signal::RateLimit] {
        assert_eq!(of(Step::Comment, signal, Reach::Unknown, 2), After::Stop);
    }
    assert_eq!(of(Step::Edit, Signal::Auth, Reach::Nothing, 0), After::Ask);
    assert_eq!((after_auth(false, 0, 3), after_auth(true, 0, 3)), (After::Stop, After::Again));
    assert_eq!(after_auth(true, 2, 3), After::SetAside(Status::Failed));
    assert_eq!(of(Step::Edit, Signal::NotFound, Reach::Nothing, 0), After::SetAside(Status::Skipped));
    assert_eq!(of(Step::Create, Signal::NotFound, Reach::Nothing, 0), After::Again);
    assert_eq!(of(Step::Create, Signal::Other, Reach::Perhaps, 0), After::Look);
    assert_eq!(of(Step::Edit, Signal::Other, Reach::Perhaps, 0), After::Again);
    assert_eq!(after_looking(Step::Create, Signal::Other, 2, 3), After::SetAside(Status::Failed));
}

/// An exhaustive model: every entry is a comment, the forge may commit a request at once, late or never,
/// and the machine may be killed at every step of two replays. Counted is what the forge holds at the end.
mod model {
    use super::*;

    const SETTLE_MS: u64 = 10_000;
    const LATE_COMMIT_MS: u64 = 5_000;

    /// What the forge does with a request.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Fate {
        Commits,
        CommitsLate,
        Never,
    }
    const FATES: [Fate; 3] = [Fate::Commits, Fate::CommitsLate, Fate::Never];

    /// Where a replay is killed while it handles an entry.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Kill {
        BeforeAttempt,
        AfterAttempt,
        AfterSend,
        AfterDone,
        Nowhere,
    }
    const KILLS: [Kill; 5] =
        [Kill::BeforeAttempt, Kill::AfterAttempt, Kill::AfterSend, Kill::AfterDone, Kill::Nowhere];

    #[derive(Clone, Debug, Default)]
    struct Forge {
        /// Visible from this time on.
        comments: Vec<(u64, Shown)>,
    }

    impl Forge {
        fn take(&mut self, now_ms: u64, fate: Fate, body: &str) -> Option<String> {
            let url = format!("c{}", self.comments.len());
            let at_ms = match fate {
                Fate::Commits => now_ms,
                Fate::CommitsLate => now_ms + LATE_COMMIT_MS,
                Fate::Never => return None,
            };
            self.comments.push((at_ms, shown(&url, "me", at_ms / 1_000, body)));
            Some(url)
        }

        fn shows(&self, now_ms: u64) -> Vec<Shown> {
            self.comments.iter().filter(|(at_ms, _)| *at_ms <= now_ms).map(|(_, one)| one.clone()).collect()
        }
    }

    fn entry(seq: u32, live: Option<Live>) -> Entry {
        Entry {
            schema: SCHEMA.into(),
            seq,
            id: crate::decide::entry::id(seq),
            kind: WriteKind::Comment,
            repo: "github.com/acme/widget".into(),
            target: Some("1".into()),
            handle: None,
            key: String::new(),
            argv: Vec::new(),
            body_file: None,
            enqueued_at: 0,
            status: Status::Pending,
            reason: None,
            attempts: 0,
            first_attempt_at: None,
            last_attempt_at: None,
            result: None,
            signal: None,
            live,
            caller: String::new(),
            session: String::new(),
            seal: String::new(),
        }
    }

    /// What is turned off in a control arm.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Guard {
        All,
        NoLook,
        NoSettle,
        NoClaims,
        NoWindow,
    }

    struct Machine {
        forge: Forge,
        lines: Vec<Line>,
        entries: Vec<Entry>,
        now_ms: u64,
        guard: Guard,
    }

    impl Machine {
        fn note(&mut self, seq: u32, event: Event) {
            self.lines.push(Line { at_ms: self.now_ms, seq, step: Some(Step::Comment), event });
        }

        /// One replay; `kill` strikes at the first entry that gets there. False when it was killed.
        fn replay(&mut self, kill: Kill, fate: Fate) -> bool {
            for at in 0..self.entries.len() {
                self.now_ms += 1_000;
                if self.entries[at].status == Status::Pending && !self.entry(at, kill, fate) {
                    return false;
                }
            }
            true
        }

        fn entry(&mut self, at: usize, kill: Kill, fate: Fate) -> bool {
            let entry = self.entries[at].clone();
            if history(&entry, Step::Comment, &self.lines).is_dangling {
                self.note(entry.seq, Event::Failed(Reach::Unknown, String::new()));
            }
            loop {
                let history = history(&entry, Step::Comment, &self.lines);
                let settle_ms = if self.guard == Guard::NoSettle { 0 } else { SETTLE_MS };
                match next(Step::Comment, &history, settle_ms, self.now_ms) {
                    Next::Done(_) => break,
                    Next::Wait(ms) => self.now_ms += ms,
                    Next::Look => {
                        if let Some(url) = self.look(&entry, history.open.unwrap()) {
                            self.note(entry.seq, Event::Found(url));
                            break;
                        }
                        return self.send(at, kill, fate);
                    }
                    Next::Send => return self.send(at, kill, fate),
                }
            }
            self.entries[at].status = Status::Delivered;
            true
        }

        fn look(&self, entry: &Entry, open: Open) -> Option<String> {
            if self.guard == Guard::NoLook {
                return None;
            }
            let exact = Skew::default().learn(self.now_ms, self.now_ms, self.now_ms / 1_000);
            let window = if self.guard == Guard::NoWindow { (0, u64::MAX) } else { window_s(open, exact) };
            let claimed =
                if self.guard == Guard::NoClaims { Vec::new() } else { claimed(&self.lines, entry.seq) };
            let wanted = Wanted {
                by: Some("me"),
                body: "x",
                between_s: window,
                claimed: &claimed,
                ..Wanted::default()
            };
            find(&wanted, &self.forge.shows(self.now_ms)).map(|one| one.url.clone())
        }

        fn send(&mut self, at: usize, kill: Kill, fate: Fate) -> bool {
            let seq = self.entries[at].seq;
            if kill == Kill::BeforeAttempt {
                return false;
            }
            self.note(seq, Event::Attempt);
            if kill == Kill::AfterAttempt {
                return false;
            }
            let taken = self.forge.take(self.now_ms, fate, "x");
            if kill == Kill::AfterSend {
                return false;
            }
            match taken.filter(|_| fate == Fate::Commits) {
                Some(url) => self.note(seq, Event::Delivered(url)),
                None => {
                    self.note(seq, Event::Failed(Reach::Unknown, String::new()));
                    return true;
                }
            }
            if kill == Kill::AfterDone {
                return false;
            }
            self.entries[at].status = Status::Delivered;
            true
        }
    }

    /// Scenes: what was on the forge before, and how the entries came to be.
    #[derive(Clone, Copy, Debug)]
    enum Scene {
        Single,
        Twins,
        AnEqualOneBefore,
        AnEqualOneMeanwhile,
        LiveLost(Fate),
        LiveLostThenATwin(Fate),
        LiveLostAfterAnEqualOne(Fate),
    }

    /// Runs one case; how many comments are missing and how many are too many.
    fn run(scene: Scene, fates: [Fate; 2], kills: [Kill; 2], guard: Guard) -> (usize, usize) {
        let mut m = Machine {
            forge: Forge::default(),
            lines: Vec::new(),
            entries: Vec::new(),
            now_ms: 1_000_000,
            guard,
        };
        let mut wanted = 1;
        let live = |m: &mut Machine, fate: Fate| {
            m.now_ms += 5_000;
            let started_ms = m.now_ms;
            m.forge.take(m.now_ms, fate, "x");
            m.now_ms += 500;
            Some(Live { started_ms, ended_ms: m.now_ms, reach: Reach::Unknown })
        };
        let before = |m: &mut Machine| drop(m.forge.take(m.now_ms, Fate::Commits, "x"));
        match scene {
            Scene::Single => m.entries.push(entry(1, None)),
            Scene::Twins => m.entries.extend([entry(1, None), entry(2, None)]),
            Scene::AnEqualOneBefore => {
                before(&mut m);
                m.now_ms += 3_000;
                m.entries.push(entry(1, None));
            }
            Scene::AnEqualOneMeanwhile => {
                m.entries.push(entry(1, None));
                m.now_ms += 300_000;
                before(&mut m);
                m.now_ms += 3_000;
            }
            Scene::LiveLost(fate) => {
                let live = live(&mut m, fate);
                m.entries.push(entry(1, live));
            }
            Scene::LiveLostThenATwin(fate) => {
                let live = live(&mut m, fate);
                m.now_ms += 20_000;
                m.entries.extend([entry(1, live), entry(2, None)]);
            }
            Scene::LiveLostAfterAnEqualOne(fate) => {
                before(&mut m);
                let live = live(&mut m, fate);
                m.entries.push(entry(1, live));
            }
        }
        wanted = match scene {
            Scene::Twins | Scene::AnEqualOneBefore | Scene::AnEqualOneMeanwhile => 2,
            Scene::LiveLostThenATwin(_) | Scene::LiveLostAfterAnEqualOne(_) => 2,
            _ => wanted,
        };
        for (kill, fate) in kills.into_iter().zip(fates) {
            m.replay(kill, fate);
            m.now_ms += 1_000;
        }
        for _ in 0..3 {
            m.replay(Kill::Nowhere, Fate::Commits);
            m.now_ms += 60_000;
        }
        assert!(m.entries.iter().all(|entry| entry.status == Status::Delivered));
        let held = m.forge.shows(u64::MAX).len();
        (wanted.max(held) - held, held.max(wanted) - wanted)
    }

    fn all(guard: Guard) -> (usize, usize, usize) {
        let mut scenes =
            vec![Scene::Single, Scene::Twins, Scene::AnEqualOneBefore, Scene::AnEqualOneMeanwhile];
        for fate in FATES {
            scenes.extend([
                Scene::LiveLost(fate),
                Scene::LiveLostThenATwin(fate),
                Scene::LiveLostAfterAnEqualOne(fate),
            ]);
        }
        let (mut cases, mut lost, mut doubled) = (0, 0, 0);
        for scene in scenes {
            for first in FATES {
                for second in FATES {
                    for kill in KILLS {
                        for again in KILLS {
                            let (missing, surplus) = run(scene, [first, second], [kill, again], guard);
                            (cases, lost, doubled) = (cases + 1, lost + missing, doubled + surplus);
                        }
                    }
                }
            }
        }
        (cases, lost, doubled)
    }

    #[test]
    fn nothing_is_lost_and_nothing_doubled_whatever_the_forge_does_and_wherever_we_are_killed() {
        assert_eq!(all(Guard::All), (2_925, 0, 0));
    }

    #[test]
    fn without_any_one_of_its_guards_something_is_lost_or_doubled() {
        for guard in [Guard::NoLook, Guard::NoSettle, Guard::NoClaims, Guard::NoWindow] {
            let (_, lost, doubled) = all(guard);
            assert!(lost + doubled > 0, "{guard:?}: lost {lost}, doubled {doubled}");
        }
    }
}
