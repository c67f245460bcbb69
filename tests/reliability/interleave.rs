//! Use cases run side by side in every order of their steps (`engine::checkpoint`): one thread each, of which
//! only one ever runs. Every order with at most so many preemptions is taken, and each from a fresh start.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Condvar, Mutex};

use engine::checkpoint;

use super::tally::{Bad, Tally};

/// What one of them does.
pub type Actor = Box<dyn FnOnce() + Send>;
/// What has to hold when all are done.
pub type Judge<'a> = Box<dyn FnOnce(&str, &mut Tally) + 'a>;

/// Opening and looking at a folder reads nothing that another may change on the way: no turn is given there.
const IDLE: [&str; 4] = ["folder: open", "folder: open the root", "state: look at the folder", "state: open"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It runs, or has not come to its first step yet.
    Running,
    /// It stands at a step.
    Ready,
    /// It waits for another one, and has looked since the last one moved.
    Waiting,
    Done,
}

struct Board {
    states: Vec<State>,
    turn: Option<usize>,
    has_panicked: bool,
}

type Stage = Arc<(Mutex<Board>, Condvar)>;

/// One decision: who could go on, who did, and who had until then.
struct Choice {
    options: Vec<usize>,
    taken: usize,
    /// Whether another choice than the first takes the turn away from one that could go on.
    is_preemption: bool,
}

/// Runs `body` with the guards switched off in this process too.
pub fn without_guards(tally: &mut Tally, body: impl FnOnce(&mut Tally)) {
    let switch = |guards: &str| {
        // SAFETY: no other thread of this process runs between two tests.
        unsafe { std::env::set_var("FORGE_CONTROL", guards) }
    };
    switch(tally.without);
    body(tally);
    switch("");
}

/// What one of them does, by its work.
pub fn actor(work: impl FnOnce() + Send + 'static) -> Actor {
    Box::new(work)
}

/// Runs what `start` returns in every order of steps with at most `preemptions`.
pub fn explore<'a>(
    tally: &mut Tally,
    preemptions: usize,
    mut start: impl FnMut() -> (Vec<Actor>, Judge<'a>),
) {
    let mut open: Vec<Vec<usize>> = vec![Vec::new()];
    while let Some(prefix) = open.pop() {
        let (actors, judge) = start();
        let (choices, has_panicked) = run(&prefix, actors);
        tally.runs += 1;
        tally.interleavings += 1;
        let order: String = choices.iter().map(|choice| char::from(b'a' + choice.taken as u8)).collect();
        tally.expect(!has_panicked, Bad::Wrong, || format!("a panic in the order {order}"));
        judge(&format!("in the order {order}"), tally);
        if tally.is_settled() {
            return;
        }
        let mut spent = 0;
        for (at, choice) in choices.iter().enumerate() {
            let cost = usize::from(choice.is_preemption);
            if at >= prefix.len() && spent + cost <= preemptions {
                for other in choice.options.iter().filter(|option| **option != choice.taken) {
                    let before = choices[..at].iter().map(|choice| choice.taken);
                    open.push(before.chain([*other]).collect());
                }
            }
            spent += usize::from(choice.is_preemption && choice.taken != choice.options[0]);
        }
    }
}

fn run(prefix: &[usize], actors: Vec<Actor>) -> (Vec<Choice>, bool) {
    let count = actors.len();
    let board = Board { states: vec![State::Running; count], turn: None, has_panicked: false };
    let stage: Stage = Arc::new((Mutex::new(board), Condvar::new()));
    let threads: Vec<_> = actors
        .into_iter()
        .enumerate()
        .map(|(me, actor)| {
            let stage = stage.clone();
            std::thread::spawn(move || act(&stage, me, actor))
        })
        .collect();
    let choices = conduct(&stage, prefix);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let has_panicked = stage.0.lock().unwrap().has_panicked;
    (choices, has_panicked)
}

fn act(stage: &Stage, me: usize, actor: Actor) {
    let at_step = stage.clone();
    yield_turn(stage, me, State::Ready);
    let hook = move |name: Option<&str>| match name {
        Some(name) if IDLE.contains(&name) => {}
        Some(_) => yield_turn(&at_step, me, State::Ready),
        None => yield_turn(&at_step, me, State::Waiting),
    };
    let done = std::panic::catch_unwind(AssertUnwindSafe(|| checkpoint::hooked(hook, actor)));
    let (board, changed) = &**stage;
    let mut board = board.lock().unwrap();
    board.states[me] = State::Done;
    board.has_panicked |= done.is_err();
    board.turn = None;
    changed.notify_all();
}

/// Stands at a step until it is its turn again.
fn yield_turn(stage: &Stage, me: usize, as_what: State) {
    let (board, changed) = &**stage;
    let mut board = board.lock().unwrap();
    board.states[me] = as_what;
    if board.turn == Some(me) {
        board.turn = None;
    }
    changed.notify_all();
    let mut board = changed.wait_while(board, |board| board.turn != Some(me)).unwrap();
    board.states[me] = State::Running;
}

/// Gives the turns: as `prefix` says, and then to whoever had it, as long as that one can go on.
fn conduct(stage: &Stage, prefix: &[usize]) -> Vec<Choice> {
    let (board, changed) = &**stage;
    let (mut choices, mut last): (Vec<Choice>, Option<usize>) = (Vec::new(), None);
    let mut board = board.lock().unwrap();
    loop {
        board = changed
            .wait_while(board, |board| board.turn.is_some() || board.states.contains(&State::Running))
            .unwrap();
        if last.is_some_and(|last| board.states[last] != State::Waiting) {
            // Something has moved: whoever waits may look again.
            board.states.iter_mut().filter(|state| **state == State::Waiting).for_each(|s| *s = State::Ready);
        }
        let of = |wanted: State| {
            let states = board.states.iter().enumerate();
            states.filter(|(_, state)| **state == wanted).map(|(n, _)| n).collect::<Vec<_>>()
        };
        let mut options = of(State::Ready);
        if options.is_empty() {
            // All wait: time passes.
            options = of(State::Waiting);
        }
        if options.is_empty() {
            return choices;
        }
        let goes_on = last.and_then(|last| options.iter().position(|option| *option == last));
        if let Some(at) = goes_on {
            options.swap(0, at);
        }
        let wanted = prefix.get(choices.len()).filter(|wanted| options.contains(wanted));
        let taken = *wanted.unwrap_or(&options[0]);
        choices.push(Choice { options, taken, is_preemption: goes_on.is_some() });
        last = Some(taken);
        board.turn = Some(taken);
        changed.notify_all();
    }
}
