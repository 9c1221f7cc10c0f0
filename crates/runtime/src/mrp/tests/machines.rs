//! The machines against tables that are read cell by cell.

use crate::mrp::applicant::{
    ApplicantEvent as E, ApplicantSituation, ApplicantState as S, Sending,
};
use crate::mrp::registrar::{
    LeaveTimer, RegistrarEvent as R, RegistrarMode, RegistrarState, Registration,
};

/// Table 10-3. Cells: what is sent, then the next state; `-`: neither. `¹`: not point to point.
/// `²`: point to point only. `³`: VO if Applicant-Only. `⁴`: AA if the Registrar is not IN.
const APPLICANT: &str = "
          VO     VP     VN     AN     AA     QA     LA     AO     QO     AP     QP     LO
Begin     VO     VO     VO     VO     VO     VO     VO     VO     VO     VO     VO     VO
New       VN     VN     -      -      VN     VN     VN     VN     VN     VN     VN     VN
Join      VP     -      -      -      -      -      AA     AP     QP     -      -      VP
Lv        -      VO     LA     LA     LA     LA     -      -      -      AO     QO     -
rNew      -      -      -      -      -      -      -      -      -      -      -      -
rJoinIn   AO¹    AP¹    -      -      QA     -      -      QO     -      QP     -      -
rIn       -      -      -      -      QA²    -      -      -      -      -      -      -
rJoinMt   -      -      -      -      -      AA     -      -      AO     -      AP     VO
rMt       -      -      -      -      -      AA     -      -      AO     -      AP     VO
rLv       LO³    -      -      VN     VP     VP     -      LO³    LO³    VP     VP     -
rLA       LO³    -      -      VN     VP     VP     -      LO³    LO³    VP     VP     -
Redeclare LO³    -      -      VN     VP     VP     -      LO³    LO³    VP     VP     -
periodic  -      -      -      -      -      AA     -      -      -      -      AP     -
tx        [s]    sJ,AA  sN,AN  sN,QA⁴ sJ,QA  [sJ]   sL,VO  [s]    [s]    sJ,QA  [s]    s,VO
txLA      [s],LO³ s,AA  sN,AN  sN,QA  sJ,QA  sJ     [s],LO³ [s],LO³ [s],LO³ sJ,QA sJ,QA [s]
txLAF     LO³    -      -      VN     VP     VP     LO³    LO³    LO³    VP     VP     -
";

const STATES: [(&str, S); 12] = [
    ("VO", S::VeryAnxiousObserver),
    ("VP", S::VeryAnxiousPassive),
    ("VN", S::VeryAnxiousNew),
    ("AN", S::AnxiousNew),
    ("AA", S::AnxiousActive),
    ("QA", S::QuietActive),
    ("LA", S::LeavingActive),
    ("AO", S::AnxiousObserver),
    ("QO", S::QuietObserver),
    ("AP", S::AnxiousPassive),
    ("QP", S::QuietPassive),
    ("LO", S::LeavingObserver),
];

const EVENTS: [(&str, E); 16] = [
    ("Begin", E::Begin),
    ("New", E::New),
    ("Join", E::Join),
    ("Lv", E::Lv),
    ("rNew", E::ReceivedNew),
    ("rJoinIn", E::ReceivedJoinIn),
    ("rIn", E::ReceivedIn),
    ("rJoinMt", E::ReceivedJoinMt),
    ("rMt", E::ReceivedMt),
    ("rLv", E::ReceivedLv),
    ("rLA", E::ReceivedLeaveAll),
    ("Redeclare", E::Redeclare),
    ("periodic", E::Periodic),
    ("tx", E::Transmit),
    ("txLA", E::TransmitLeaveAll),
    ("txLAF", E::TransmitLeaveAllFull),
];

fn by_name<T: Copy>(all: &[(&str, T)], name: &str) -> T {
    all.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("{name}")).1
}

/// What a cell says in a situation.
fn cell(text: &str, from: S, situation: ApplicantSituation) -> (S, Option<Sending>) {
    let (sends, to) = match text.split_once(',') {
        Some((sends, to)) => (sends, to),
        None if text.starts_with(['s', '[']) => (text, ""),
        None => ("", text),
    };
    let sending = match sends {
        "" => None,
        "sN" => Some(Sending::New),
        "sJ" => Some(Sending::Join),
        "s" => Some(Sending::State),
        "sL" => Some(Sending::Leave),
        "[sJ]" => Some(Sending::OptionalJoin),
        "[s]" => Some(Sending::OptionalState),
        other => panic!("{other}"),
    };
    let name = to.trim_end_matches(['¹', '²', '³', '⁴']);
    let next = match name {
        "" | "-" => from,
        _ if to.ends_with('¹') && situation.is_point_to_point => from,
        _ if to.ends_with('²') && !situation.is_point_to_point => from,
        _ if to.ends_with('³') && situation.is_applicant_only => S::VeryAnxiousObserver,
        _ if to.ends_with('⁴') && !situation.is_registered => S::AnxiousActive,
        name => by_name(&STATES, name),
    };
    (next, sending)
}

#[test]
fn the_applicant_is_that_of_the_table_cell_by_cell() {
    let mut rows = APPLICANT.trim().lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let columns = rows.next().expect("a head");
    assert_eq!(columns.len(), 12);
    let mut cells = 0;
    for row in rows {
        let event = by_name(&EVENTS, row[0]);
        assert_eq!(row.len(), 13, "{row:?}");
        for (column, text) in columns.iter().zip(&row[1..]) {
            let from = by_name(&STATES, column);
            for bits in 0..8 {
                let situation = ApplicantSituation {
                    is_point_to_point: bits & 1 != 0,
                    is_applicant_only: bits & 2 != 0,
                    is_registered: bits & 4 != 0,
                };
                let expected = cell(text, from, situation);
                let what = format!("{} {column} {situation:?}", row[0]);
                assert_eq!(from.after(event, situation), expected, "{what}");
                cells += 1;
            }
        }
    }
    assert_eq!(cells, 16 * 12 * 8);
}

#[test]
fn an_observer_between_two_does_not_become_anxious_or_quiet() {
    // Footnotes: AO, QO, AP and QP are not reached point to point (10.7.7).
    let situation = ApplicantSituation {
        is_point_to_point: true,
        is_applicant_only: false,
        is_registered: false,
    };
    let mut reached = std::collections::BTreeSet::from([S::VeryAnxiousObserver]);
    loop {
        let more: Vec<_> = reached
            .iter()
            .flat_map(|state| EVENTS.map(|(_, event)| state.after(event, situation).0))
            .filter(|state| !reached.contains(state))
            .collect();
        if more.is_empty() {
            break;
        }
        reached.extend(more);
    }
    assert_eq!(reached.len(), 8, "{reached:?}");
    for state in [S::AnxiousObserver, S::QuietObserver, S::AnxiousPassive, S::QuietPassive] {
        assert!(!reached.contains(&state), "{state:?}");
    }
}

/// Table 10-4. Cells: what the application is told, what the leave timer does (`+` starts, `0`
/// stops), the next state.
const REGISTRAR: &str = "
           IN        LV         MT
Begin      0,MT      0,MT       0,MT
rNew       New       New,0,IN   New,IN
rJoin      -         0,IN       Join,IN
rState     -         -          -
rLv        +,LV      -          -
rLA        +,LV      -          -
txLA       +,LV      -          -
Redeclare  +,LV      -          -
Flush      Lv,MT     Lv,0,MT    -
leavetimer -         Lv,MT      -
";

#[test]
fn the_registrar_is_that_of_the_table_cell_by_cell() {
    let events = [
        ("Begin", R::Begin),
        ("rNew", R::ReceivedNew),
        ("rJoin", R::ReceivedJoin),
        ("rState", R::ReceivedState),
        ("rLv", R::ReceivedLv),
        ("rLA", R::ReceivedLeaveAll),
        ("txLA", R::TransmitLeaveAll),
        ("Redeclare", R::Redeclare),
        ("Flush", R::Flush),
        ("leavetimer", R::LeaveTimer),
    ];
    let states = [RegistrarState::In, RegistrarState::Lv, RegistrarState::Mt];
    let rows = REGISTRAR.trim().lines().skip(1);
    let mut cells = 0;
    for row in rows.map(|line| line.split_whitespace().collect::<Vec<_>>()) {
        let event = by_name(&events, row[0]);
        for (from, text) in states.into_iter().zip(&row[1..]) {
            let (mut next, mut told, mut timer) = (from, None, LeaveTimer::Keep);
            for part in text.split(',') {
                match part {
                    "-" => {}
                    "New" => told = Some(Registration::New),
                    "Join" => told = Some(Registration::Join),
                    "Lv" => told = Some(Registration::Leave),
                    "+" => timer = LeaveTimer::Start,
                    "0" => timer = LeaveTimer::Stop,
                    "IN" => next = RegistrarState::In,
                    "LV" => next = RegistrarState::Lv,
                    "MT" => next = RegistrarState::Mt,
                    other => panic!("{other}"),
                }
            }
            let step = from.after(event, RegistrarMode::Normal);
            assert_eq!(step, (next, told, timer), "{} {from:?}", row[0]);
            for (mode, fixed) in [
                (RegistrarMode::Fixed, RegistrarState::In),
                (RegistrarMode::Forbidden, RegistrarState::Mt),
            ] {
                assert_eq!(from.after(event, mode), (fixed, None, LeaveTimer::Keep), "{mode:?}");
            }
            cells += 1;
        }
    }
    assert_eq!(cells, 30);
}
