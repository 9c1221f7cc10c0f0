//! The state machine on devices that do what RFC 6241 8.3 and 8.4 say, with failures anywhere.

use super::keys::key;
use super::tree::{BASE, Tree};
use super::*;
use proptest::prelude::*;

const OLD: &str = "<c xmlns='urn:x:m'><v>old</v></c>";
const NEW: &str = "<c xmlns='urn:x:m'><v>new</v></c>";
const MINUTE: PushOptions = PushOptions { confirm_within: Span::from_s(60), only_try: false };
const TRY: PushOptions = PushOptions { only_try: true, ..MINUTE };

/// What goes wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// The device does not do it, and says so.
    Refused,
    /// The session breaks before the device has the request.
    LostBefore,
    /// The session breaks after it has done it.
    LostAfter,
    /// It does it and answers with something else.
    Garbled,
    /// The client is killed when the device has done it.
    Killed,
    /// It is done, and then the user wants no more.
    Interrupted,
}

const FAULTS: [Fault; 6] = [
    Fault::Refused,
    Fault::LostBefore,
    Fault::LostAfter,
    Fault::Garbled,
    Fault::Killed,
    Fault::Interrupted,
];

/// A device with a candidate configuration and confirmed commits.
#[derive(Debug)]
struct Model {
    running: &'static str,
    candidate: &'static str,
    /// What it goes back to.
    rollback: Option<&'static str>,
    is_locked: bool,
    has_session: bool,
    confirmations: usize,
}

impl Model {
    fn new() -> Self {
        Self {
            running: OLD,
            candidate: OLD,
            rollback: None,
            is_locked: false,
            has_session: false,
            confirmations: 0,
        }
    }

    fn end(&mut self) {
        self.running = self.rollback.take().unwrap_or(self.running);
        (self.is_locked, self.has_session, self.candidate) = (false, false, self.running);
    }

    fn answer(&mut self, rpc: &str) -> String {
        assert!(self.has_session);
        let rpc = Tree::read(rpc).expect("a request is XML");
        let data = |content: &str| format!("<data>{content}</data>");
        let content = match &*rpc.name {
            "get" => data(&format!(
                "<modules-state xmlns='{}'><module><namespace>urn:x:m</namespace></module>\
                 </modules-state>",
                super::rpc::LIBRARY
            )),
            "get-config" => data(self.running),
            other => {
                match other {
                    "lock" => self.is_locked = true,
                    "unlock" => (self.is_locked, self.candidate) = (false, self.running),
                    "edit-config" => self.candidate = NEW,
                    "discard-changes" => self.candidate = self.running,
                    "commit" if rpc.find("confirmed").is_some() => {
                        self.rollback = Some(self.running);
                        self.running = self.candidate;
                    }
                    "commit" => {
                        self.rollback.take().expect("a confirmation has something to confirm");
                        self.confirmations += 1;
                    }
                    "cancel-commit" => self.running = self.rollback.take().unwrap_or(self.running),
                    "close-session" => self.end(),
                    "validate" => {}
                    other => panic!("an unknown request: {other}"),
                }
                "<ok/>".to_owned()
            }
        };
        format!("<rpc-reply xmlns='{BASE}'>{content}</rpc-reply>")
    }
}

fn capabilities() -> Vec<String> {
    let names = ["base:1.1", "capability:candidate:1.0", "capability:confirmed-commit:1.1"];
    let names = names.iter().chain(&["capability:validate:1.1"]);
    names.map(|name| format!("urn:ietf:params:netconf:{name}")).collect()
}

pub(super) fn trees(text: &str) -> Vec<Tree> {
    Tree::read(&format!("<all>{text}</all>")).expect("XML").nodes
}

/// What a server that does what RFC 6241 7.2 says makes of an edit.
pub(super) fn apply(edit: &[Tree], running: &[Tree]) -> Vec<Tree> {
    let mut nodes = running.to_vec();
    for tree in edit {
        let at = nodes.iter().position(|other| key(other) == key(tree));
        let plain = |tree: &Tree| Tree { operation: None, ..tree.clone() };
        match (tree.operation, at) {
            (Some("remove"), Some(at)) => drop(nodes.remove(at)),
            (Some("remove"), None) => {}
            (Some("replace"), Some(at)) => nodes[at] = plain(tree),
            (None, Some(at)) if !tree.nodes.is_empty() => {
                nodes[at].nodes = apply(&tree.nodes, &nodes[at].nodes);
            }
            (None, Some(at)) => nodes[at] = plain(tree),
            (_, None) => {
                let nodes_of = apply(&tree.nodes, &[]);
                nodes.push(Tree { nodes: nodes_of, ..plain(tree) });
            }
            (Some(other), _) => panic!("an operation {other}"),
        }
    }
    nodes
}

fn targets(count: usize) -> Vec<PushTarget> {
    vec![PushTarget::new(&[document("s.xml", NEW)], &[]).expect("XML"); count]
}

fn document(name: &str, text: &str) -> PushDocument {
    PushDocument { name: name.to_owned(), text: text.to_owned() }
}

/// Runs a deployment to its end, with faults by the number of the request. Whether it survived.
fn run(push: &mut Push, models: &mut [Model], fault: impl Fn(usize) -> Option<Fault>) -> bool {
    for number in 0.. {
        let Action::Do { device, step, rpc } = push.next(Span::from_ms(number as i64)) else {
            break;
        };
        let (model, fault) = (&mut models[device], fault(number));
        let lost = || Event::Lost("the session ended".to_owned());
        let event = match fault {
            Some(Fault::LostBefore) => {
                model.end();
                lost()
            }
            Some(Fault::Refused) if step != PushStep::Connect => Event::Answered(format!(
                "<rpc-reply xmlns='{BASE}'><rpc-error><error-tag>in-use</error-tag></rpc-error>\
                 </rpc-reply>"
            )),
            Some(Fault::Refused) => lost(),
            _ => {
                let answer = match &rpc {
                    Some(rpc) => Event::Answered(model.answer(rpc)),
                    None => {
                        model.has_session = true;
                        Event::Connected(capabilities())
                    }
                };
                match fault {
                    None | Some(Fault::Interrupted) => answer,
                    Some(Fault::Garbled) => Event::Answered("<rpc-reply>".to_owned()),
                    Some(Fault::LostAfter) => {
                        model.end();
                        lost()
                    }
                    Some(_) => {
                        models.iter_mut().for_each(Model::end);
                        return false;
                    }
                }
            }
        };
        push.happened(event);
        if fault == Some(Fault::Interrupted) {
            push.interrupt();
        }
    }
    // The caller ends, and what it has not closed ends with it.
    models.iter_mut().for_each(Model::end);
    true
}

/// What must hold whatever happened.
fn judge(push: &Push, models: &[Model], survived: bool) {
    let decided = models.iter().any(|model| model.confirmations > 0);
    for (at, model) in models.iter().enumerate() {
        assert_eq!(model.running == NEW, model.confirmations > 0);
        if survived {
            match push.state(at) {
                PushState::Deployed => assert_eq!(model.running, NEW),
                PushState::Unknown => {}
                PushState::Unchanged | PushState::TakenBack | PushState::GoesBack => {
                    assert_eq!(model.running, OLD);
                }
                PushState::NotAsBefore => panic!("a device that does what it should"),
            }
        }
    }
    if !decided {
        assert!(models.iter().all(|model| model.running == OLD));
    }
    if survived {
        let all_new = models.iter().all(|model| model.running == NEW);
        match push.ending() {
            Ending::Deployed => assert!(all_new),
            Ending::Unchanged | Ending::Tried => assert!(!decided),
            Ending::Mixed => assert!(!push.failures().is_empty() || push.is_interrupted()),
        }
    }
}

#[test]
fn without_failures_all_devices_have_what_they_were_told() {
    for count in 0..4 {
        let mut models: Vec<_> = (0..count).map(|_| Model::new()).collect();
        let mut push = Push::new(&targets(count), MINUTE);
        assert!(run(&mut push, &mut models, |_| None));
        assert_eq!((push.ending(), push.failures()), (Ending::Deployed, &[][..]));
        judge(&push, &models, true);
    }
}

#[test]
fn to_try_changes_nothing() {
    let mut models = [Model::new(), Model::new()];
    let mut push = Push::new(&targets(2), TRY);
    assert!(run(&mut push, &mut models, |_| None));
    assert_eq!(push.ending(), Ending::Tried);
    assert!(models.iter().all(|model| model.running == OLD));
}

#[test]
fn one_failure_anywhere_leaves_all_as_they_were_before_the_first_confirmation() {
    for count in 1..4 {
        for fault in FAULTS {
            // More requests than there are: the last ones have no failure.
            for at in 0..count * 14 {
                let mut models: Vec<_> = (0..count).map(|_| Model::new()).collect();
                let mut push = Push::new(&targets(count), MINUTE);
                let survived =
                    run(&mut push, &mut models, |number| (number == at).then_some(fault));
                judge(&push, &models, survived);
                let undecided = push.failures().first().is_some_and(|failure| {
                    !matches!(failure.step, PushStep::Confirm | PushStep::Unlock | PushStep::Close)
                });
                if undecided {
                    assert!(models.iter().all(|model| model.running == OLD), "{fault:?} {at}");
                    assert_eq!(push.ending() == Ending::Mixed, push_goes_back(&push, count));
                }
            }
        }
    }
}

/// Whether a device goes back by itself.
fn push_goes_back(push: &Push, count: usize) -> bool {
    (0..count).any(|device| push.state(device) == PushState::GoesBack)
}

#[test]
fn a_confirmation_that_is_refused_first_takes_all_back_and_later_only_its_own() {
    for (refused, ending) in [(0, Ending::Unchanged), (1, Ending::Mixed), (2, Ending::Mixed)] {
        let mut models = [Model::new(), Model::new(), Model::new()];
        let mut push = Push::new(&targets(3), MINUTE);
        // Six requests and the connection to each, an edit, a commit, a reading.
        let at = 3 * 10 + refused;
        run(&mut push, &mut models, |number| (number == at).then_some(Fault::Refused));
        assert_eq!(push.failures()[0].step, PushStep::Confirm);
        assert_eq!(push.ending(), ending);
        let new: Vec<_> = models.iter().map(|model| model.running == NEW).collect();
        let expected = |device| refused > 0 && device != refused;
        assert_eq!(new, (0..3).map(expected).collect::<Vec<_>>());
        judge(&push, &models, true);
    }
}

#[test]
fn a_device_that_refuses_to_go_back_does_so_when_its_session_ends() {
    let mut models = [Model::new(), Model::new()];
    let mut push = Push::new(&targets(2), MINUTE);
    // The first commit is done and not understood; then the device says that it is busy.
    let fault = |number| match number {
        16 => Some(Fault::Garbled),
        17 => Some(Fault::Refused),
        _ => None,
    };
    assert!(run(&mut push, &mut models, fault));
    let steps: Vec<_> = push.failures().iter().map(|failure| failure.step).collect();
    assert_eq!(steps, [PushStep::Commit, PushStep::Cancel]);
    assert_eq!((push.state(0), push.ending()), (PushState::GoesBack, Ending::Mixed));
    judge(&push, &models, true);
}

#[test]
fn nothing_is_confirmed_when_devices_may_have_gone_back() {
    let mut push = Push::new(&targets(1), MINUTE);
    let mut model = Model::new();
    let mut steps = Vec::new();
    loop {
        let now = if steps.contains(&PushStep::Verify) { Span::from_s(45) } else { Span::ZERO };
        let Action::Do { step, rpc, .. } = push.next(now) else { break };
        steps.push(step);
        push.happened(match rpc {
            Some(rpc) => Event::Answered(model.answer(&rpc)),
            None => {
                model.has_session = true;
                Event::Connected(capabilities())
            }
        });
    }
    assert!(!steps.contains(&PushStep::Confirm) && steps.contains(&PushStep::Cancel));
    assert_eq!((push.ending(), model.running), (Ending::Unchanged, OLD));
    assert_eq!(push.state(0), PushState::TakenBack);
}

#[test]
fn what_a_device_lacks_is_said_of_all_before_anything_is_written() {
    let mut push = Push::new(&targets(2), MINUTE);
    let mut written = Vec::new();
    while let Action::Do { device, step, .. } = push.next(Span::ZERO) {
        written.push(step);
        push.happened(match (step, device) {
            (PushStep::Connect, 0) => Event::Connected(capabilities()[..2].to_vec()),
            (PushStep::Connect, _) => Event::Connected(capabilities()),
            (PushStep::Library, _) => {
                Event::Answered(format!("<rpc-reply xmlns='{BASE}'><data/></rpc-reply>"))
            }
            _ => Event::Answered(format!("<rpc-reply xmlns='{BASE}'><ok/></rpc-reply>")),
        });
    }
    let expected =
        [PushStep::Connect, PushStep::Connect, PushStep::Library, PushStep::Close, PushStep::Close];
    assert_eq!(written, expected);
    let said: Vec<_> = push.failures().iter().map(|it| (it.device, it.why.to_string())).collect();
    let lacks = |what: &str| format!("it lacks the {what}");
    let capability = |name| lacks(&format!("NETCONF capability urn:ietf:params:netconf:{name}"));
    assert_eq!(
        said,
        [
            (0, capability("capability:confirmed-commit:1.1")),
            (0, capability("capability:validate:1.1")),
            (1, lacks("YANG module m (urn:x:m), which `s.xml` needs")),
        ]
    );
}

proptest! {
    #[test]
    fn several_failures_at_once_break_no_promise(
        count in 1_usize..4,
        faults in proptest::collection::vec((0_usize..60, 0_usize..FAULTS.len()), 1..6),
    ) {
        let mut models: Vec<_> = (0..count).map(|_| Model::new()).collect();
        let mut push = Push::new(&targets(count), MINUTE);
        let fault = |number| {
            faults.iter().find(|(at, _)| *at == number).map(|(_, kind)| FAULTS[*kind])
        };
        let survived = run(&mut push, &mut models, fault);
        judge(&push, &models, survived);
    }
}
