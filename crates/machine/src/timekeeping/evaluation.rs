//! Whether a clock is on the network's time, and if not, why: a pure function of what was found.

use onbeat::interface::{PortState, PtpPort, PtpSurvey, SYNC_RECEIPT_TIMEOUT, SyncAge};
use onbeat_model::time::Span;

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// What ptp4l says, in the domain and profile that are wanted.
    pub survey: Option<PtpSurvey>,
    /// How old the last Sync is that it measured.
    pub sync: SyncAge,
    /// Whether the offset is seen to be by the Syncs that come now.
    pub measured: bool,
    /// Else the profile and domain of a ptp4l that answers in others.
    pub elsewhere: Option<(u8, u8)>,
    /// The profile and domain of what a neighbour says, if they are others and there is no master.
    pub heard: Option<(u8, u8)>,
    /// The wanted domain.
    pub domain: u8,
    /// The interfaces that were named, and whether each carries frames.
    pub links: Vec<(String, bool)>,
    /// Whether the machine's clock is to be on network time: not in emulation.
    pub steered: bool,
    /// CLOCK_TAI less CLOCK_REALTIME.
    pub tai_offset: Span,
    /// Programs that steer the machine's clock, too.
    pub rivals: Vec<String>,
    /// How far the interface's hardware clock is ahead of CLOCK_TAI, if there is one.
    pub apart: Option<Span>,
}

/// One reason why it is not in sync.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// No daemon answers.
    #[error("ptp4l does not answer: it does not run, or this user may not ask it")]
    NoPtp4l,
    /// It has other settings.
    #[error(
        "ptp4l answers in domain {domain} and {}, not in domain {wanted} with gPTP's: set \
         domainNumber {wanted} and transportSpecific 0x1", with_profile(*.profile)
    )]
    Elsewhere {
        /// transportSpecific.
        profile: u8,
        /// Its domain.
        domain: u8,
        /// The domain asked for.
        wanted: u8,
    },
    /// No cable, or not up.
    #[error("interface `{0}` has no link: it is down, or nothing is at its other end")]
    LinkDown(String),
    /// Measured, and longer than allowed.
    #[error(
        "port {port} is not capable of gPTP: the delay to its neighbour is {delay}, more than \
         neighborPropDelayThresh, {threshold}: with software time stamps that must be some \
         milliseconds"
    )]
    Threshold {
        /// The port's number.
        port: u16,
        /// The delay that was measured.
        delay: Span,
        /// The longest that is allowed.
        threshold: Span,
    },
    /// The other end of the link does not measure.
    #[error(
        "port {0} is not capable of gPTP: its neighbour does not answer its measurements of the \
         delay: is a ptp4l with delay_mechanism P2P and the same transportSpecific there?"
    )]
    NoAnswer(u16),
    /// The neighbour answers, and still it is not capable.
    #[error("port {0} is not capable of gPTP yet: the delay to its neighbour is being measured")]
    Measuring(u16),
    /// A neighbour with other settings.
    #[error(
        "a neighbour speaks PTP in domain {domain} and {}, not in domain {wanted} with gPTP's: set \
         domainNumber and transportSpecific alike", with_profile(*.profile)
    )]
    Foreign {
        /// transportSpecific.
        profile: u8,
        /// Its domain.
        domain: u8,
        /// This node's domain.
        wanted: u8,
    },
    /// Masters are there that do not count.
    #[error("port {0} hears masters and follows none: is its link capable of gPTP?")]
    Unfollowed(u16),
    /// No node announces itself as master.
    #[error("port {0} hears no master: is a grandmaster there?")]
    NoMaster(u16),
    /// A master, and not locked yet.
    #[error("port {0} has found a master and does not follow it closely yet")]
    Uncalibrated(u16),
    /// Announced, and never measured.
    #[error("port {0} hears of a grandmaster and has measured no Sync of it")]
    NoSync(u16),
    /// Stamped, and nothing computed of it.
    #[error(
        "port {0} has computed no offset of the Syncs that come: is the delay to its neighbour \
         being measured?"
    )]
    NoOffset(u16),
    /// Measured once, not any more.
    #[error(
        "port {port} measures no Sync any more: {limit} ({SYNC_RECEIPT_TIMEOUT} Sync intervals) \
         are over: is the grandmaster still there?"
    )]
    SyncLost {
        /// The port's number.
        port: u16,
        /// After which time a Sync is missing.
        limit: Span,
    },
    /// It leads, for want of a better one.
    #[error(
        "port {0} leads because it hears nobody better, and was not made grandmaster: nothing \
         tells whether its time is right (`onbeat clock config --role master` makes it one)"
    )]
    NotAppointed(u16),
    /// Broken.
    #[error("port {port} is {state}")]
    State {
        /// Its number.
        port: u16,
        /// What it says.
        state: PortState,
    },
    /// UTC.
    #[error(
        "CLOCK_TAI has no leap-second offset (0 s{}): etf and taprio would be wrong by that; \
         phc2sys -a sets it, or adjtimex", by_network(*.network)
    )]
    NoTaiOffset {
        /// currentUtcOffset, if somebody says it.
        network: Option<i16>,
    },
    /// Two that steer one clock.
    #[error("{0} steers this machine's clock, too: stop it")]
    Rival(String),
    /// Too far off.
    #[error("the clock is wrong by {error}, more than {limit}")]
    Error {
        /// By how much.
        error: Span,
        /// What is allowed.
        limit: Span,
    },
}

fn with_profile(number: u8) -> &'static str {
    if number == 1 { "with gPTP's transportSpecific" } else { "without gPTP's transportSpecific" }
}

fn by_network(utc_offset: Option<i16>) -> String {
    utc_offset.map_or(String::new(), |seconds| format!("; the network says {seconds} s"))
}

/// The verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// By how much the clock is wrong, as far as is known.
    pub error: Option<Span>,
    /// Why it is not on network time; nothing: it is.
    pub reasons: Vec<Reason>,
}

impl Status {
    /// What it is but for figures: a change of these alone is not told.
    pub fn kind(&self) -> String {
        let kinds = self.reasons.iter().map(|r| format!("{:?}", std::mem::discriminant(r)));
        kinds.collect()
    }

    /// Whether it is on network time.
    pub fn in_sync(&self) -> bool {
        self.reasons.is_empty()
    }
}

/// Judges; `limit` is by how much the clock may be wrong.
pub fn evaluate(facts: &Facts, limit: Span) -> Status {
    let mut reasons = Vec::new();
    for (name, _) in facts.links.iter().filter(|(_, up)| !up) {
        reasons.push(Reason::LinkDown(name.clone()));
    }
    let (mut error, mut known) = (None, false);
    match &facts.survey {
        None => reasons.push(match facts.elsewhere {
            Some((profile, domain)) => Reason::Elsewhere { profile, domain, wanted: facts.domain },
            None => Reason::NoPtp4l,
        }),
        Some(survey) => match follows(survey, facts) {
            Ok(offset) => (error, known) = (offset, true),
            Err(more) => {
                let domain = facts.domain;
                reasons.extend(facts.heard.map(|(profile, heard)| Reason::Foreign {
                    profile,
                    domain: heard,
                    wanted: domain,
                }));
                reasons.extend(more);
            }
        },
    }
    if facts.steered {
        if facts.tai_offset == Span::ZERO {
            let network = facts.survey.as_ref().map(|survey| survey.utc_offset);
            reasons.push(Reason::NoTaiOffset { network });
        }
        // A grandmaster's clock is the source: something may well keep it.
        if !facts.survey.as_ref().is_some_and(leads) {
            reasons.extend(facts.rivals.iter().cloned().map(Reason::Rival));
        }
        // A grandmaster's time is right by definition; its system's clock need not have it.
        let apart = facts.apart.map(Span::abs);
        error = match error {
            None if known => apart,
            error => error.map(|error| error + apart.unwrap_or_default()),
        };
    }
    if let Some(error) = error.filter(|error| *error > limit) {
        reasons.push(Reason::Error { error, limit });
    }
    Status { error, reasons }
}

/// How far the clock is from its master's by the last Sync, or why that is not known. Of a
/// grandmaster nothing is measured: its time is the network's. A free-running ptp4l measures and
/// never calls itself calibrated.
fn follows(survey: &PtpSurvey, facts: &Facts) -> Result<Option<Span>, Vec<Reason>> {
    let Some(port) = survey.deciding() else { return Err(vec![Reason::NoPtp4l]) };
    let leads = port.state == PortState::Master && !survey.has_grandmaster;
    match port.state {
        PortState::Slave | PortState::Uncalibrated if !survey.has_grandmaster => {
            Err(vec![Reason::NoMaster(port.number)])
        }
        PortState::Uncalibrated if facts.steered => Err(vec![Reason::Uncalibrated(port.number)]),
        PortState::Uncalibrated if !facts.measured && facts.sync.is_fresh(survey.sync.interval) => {
            Err(vec![Reason::NoOffset(port.number)])
        }
        PortState::Slave | PortState::Uncalibrated => {
            measured(survey, port.number, facts.sync).map(Some)
        }
        PortState::Master if leads && !is_alone(survey) => match survey.appointed {
            true => Ok(None),
            false => Err(vec![Reason::NotAppointed(port.number)]),
        },
        PortState::Listening | PortState::Master => Err(alone(port)),
        state => Err(vec![Reason::State { port: port.number, state }]),
    }
}

/// What the last Sync said, if there is one and no other has been missing since.
fn measured(survey: &PtpSurvey, port: u16, sync: SyncAge) -> Result<Span, Vec<Reason>> {
    let interval = survey.sync.interval;
    match sync {
        age if age.is_fresh(interval) => Ok(survey.offset.abs()),
        SyncAge::Never => Err(vec![Reason::NoSync(port)]),
        SyncAge::Unknown | SyncAge::AtMost(_) => {
            let limit = interval * SYNC_RECEIPT_TIMEOUT;
            Err(vec![Reason::SyncLost { port, limit }])
        }
    }
}

fn leads(survey: &PtpSurvey) -> bool {
    let master = |port: &PtpPort| port.state == PortState::Master;
    !survey.has_grandmaster && survey.deciding().is_some_and(master)
}

/// Whether a clock that has no master has no one to be master of either.
fn is_alone(survey: &PtpSurvey) -> bool {
    let with_neighbour = |port: &PtpPort| port.capable.is_none_or(|(_, capable)| capable);
    !survey.ports.iter().any(with_neighbour)
}

/// Why a port hears no master.
fn alone(port: &PtpPort) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let number = port.number;
    let incapable = port.capable.filter(|(_, capable)| !capable && port.peer_to_peer);
    if let Some((threshold, _)) = incapable {
        let delay = port.peer_delay;
        reasons.push(match port.came {
            _ if delay.abs() > threshold => Reason::Threshold { port: number, delay, threshold },
            Some((_, 0)) => Reason::NoAnswer(number),
            _ => Reason::Measuring(number),
        });
    }
    match port.came {
        Some((announces, _)) if announces > 0 => reasons.push(Reason::Unfollowed(number)),
        _ => reasons.push(Reason::NoMaster(number)),
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;
    use onbeat::interface::ClockIdentity;

    const LIMIT: Span = Span::from_us(1);
    const THRESHOLD: Span = Span::from_ns(800);

    fn port(state: PortState) -> PtpPort {
        PtpPort {
            number: 1,
            state,
            peer_delay: Span::from_ns(400),
            peer_to_peer: true,
            capable: Some((THRESHOLD, true)),
            came: Some((9, 9)),
        }
    }

    fn facts(port: PtpPort) -> Facts {
        Facts {
            survey: Some(PtpSurvey {
                profile: 1,
                offset: Span::from_ns(-300),
                grandmaster: ClockIdentity([1; 8]),
                has_grandmaster: matches!(port.state, PortState::Slave | PortState::Uncalibrated),
                appointed: port.state == PortState::Master,
                utc_offset: 37,
                ports: vec![port],
                ..PtpSurvey::default()
            }),
            sync: SyncAge::AtMost(Span::from_ms(100)),
            measured: true,
            elsewhere: None,
            heard: None,
            domain: 0,
            links: vec![("eth0".to_owned(), true)],
            steered: true,
            tai_offset: Span::from_s(37),
            rivals: Vec::new(),
            apart: Some(Span::from_ns(200)),
        }
    }

    fn reasons(facts: &Facts) -> Vec<Reason> {
        evaluate(facts, LIMIT).reasons
    }

    #[test]
    fn a_slave_within_the_limit_and_a_grandmaster_with_a_neighbour_are_in_sync() {
        let slave = evaluate(&facts(port(PortState::Slave)), LIMIT);
        assert!(slave.in_sync() && slave.error == Some(Span::from_ns(500)), "{slave:?}");
        let master = evaluate(&facts(port(PortState::Master)), LIMIT);
        assert!(master.in_sync() && master.error == Some(Span::from_ns(200)), "{master:?}");
        let far = Facts { apart: Some(Span::from_ns(701)), ..facts(port(PortState::Slave)) };
        assert_eq!(reasons(&far), [Reason::Error { error: Span::from_ns(1_001), limit: LIMIT }]);
    }

    #[test]
    fn nothing_is_in_sync_without_a_measured_sync_of_a_master_that_is_still_there() {
        let limit = Span::from_ms(375);
        for (steered, state) in [(true, PortState::Slave), (false, PortState::Uncalibrated)] {
            let with = |sync| Facts { sync, steered, ..facts(port(state)) };
            assert!(evaluate(&with(SyncAge::AtMost(Span::from_ms(300))), LIMIT).in_sync());
            assert_eq!(reasons(&with(SyncAge::Never)), [Reason::NoSync(1)]);
            let lost = [Reason::SyncLost { port: 1, limit }];
            for old in [SyncAge::Unknown, SyncAge::AtMost(limit)] {
                assert_eq!(reasons(&with(old)), lost, "{old:?}");
            }
            let mut alone = with(SyncAge::AtMost(Span::ZERO));
            alone.survey.as_mut().expect("it answers").has_grandmaster = false;
            assert_eq!(reasons(&alone), [Reason::NoMaster(1)]);
            assert_eq!(evaluate(&alone, LIMIT).error, None, "nothing was measured");
        }
    }

    #[test]
    fn who_leads_for_want_of_a_better_one_is_not_in_sync() {
        let mut stand_in = facts(port(PortState::Master));
        stand_in.survey.as_mut().expect("it answers").appointed = false;
        let verdict = evaluate(&stand_in, LIMIT);
        assert_eq!((verdict.reasons, verdict.error), (vec![Reason::NotAppointed(1)], None));
        let appointed = Facts { steered: false, ..facts(port(PortState::Master)) };
        let verdict = evaluate(&appointed, LIMIT);
        assert!(verdict.in_sync() && verdict.error.is_none(), "nothing is measured: {verdict:?}");
    }

    #[test]
    fn a_threshold_below_the_measured_delay_is_named() {
        let delay = Span::from_us(15);
        let low = PtpPort {
            peer_delay: delay,
            capable: Some((THRESHOLD, false)),
            ..port(PortState::Master)
        };
        let named = Reason::Threshold { port: 1, delay, threshold: THRESHOLD };
        assert_eq!(reasons(&facts(low)), [named, Reason::Unfollowed(1)]);
    }

    #[test]
    fn a_neighbour_that_does_not_answer_and_a_missing_master_are_named() {
        let silent = PtpPort {
            peer_delay: Span::ZERO,
            capable: Some((THRESHOLD, false)),
            came: Some((0, 0)),
            ..port(PortState::Listening)
        };
        let expected = [Reason::NoAnswer(1), Reason::NoMaster(1)];
        assert_eq!(reasons(&facts(silent)), expected);
        let foreign = port(PortState::Listening);
        assert_eq!(reasons(&facts(foreign)), [Reason::Unfollowed(1)]);
        let spoken = Reason::Foreign { profile: 0, domain: 7, wanted: 0 };
        let heard = Facts { heard: Some((0, 7)), ..facts(foreign) };
        assert_eq!(reasons(&heard), [spoken, Reason::Unfollowed(1)]);
        let faulty = port(PortState::Faulty);
        let state = PortState::Faulty;
        assert_eq!(reasons(&facts(faulty)), [Reason::State { port: 1, state }]);
    }

    #[test]
    fn what_is_wrong_with_the_machine_is_named_unless_its_clock_is_left_alone() {
        let wrong = Facts {
            tai_offset: Span::ZERO,
            rivals: vec!["chronyd (42)".to_owned()],
            links: vec![("eth0".to_owned(), false)],
            ..facts(port(PortState::Slave))
        };
        let down = Reason::LinkDown("eth0".to_owned());
        let (tai, rival) =
            (Reason::NoTaiOffset { network: Some(37) }, Reason::Rival("chronyd (42)".to_owned()));
        assert_eq!(reasons(&wrong), [down.clone(), tai, rival]);
        assert_eq!(reasons(&Facts { steered: false, ..wrong.clone() }), [down]);
        let survey = facts(port(PortState::Master)).survey;
        let master = Facts { survey, links: Vec::new(), tai_offset: Span::from_s(37), ..wrong };
        assert!(reasons(&master).is_empty(), "NTP may keep a grandmaster's clock");
    }

    #[test]
    fn a_free_running_slave_is_judged_by_what_it_measures() {
        let uncalibrated = facts(port(PortState::Uncalibrated));
        assert_eq!(reasons(&uncalibrated), [Reason::Uncalibrated(1)]);
        let free = evaluate(&Facts { steered: false, ..uncalibrated.clone() }, LIMIT);
        assert!(free.in_sync() && free.error == Some(Span::from_ns(300)), "{free:?}");
        let early = evaluate(&Facts { steered: false, measured: false, ..uncalibrated }, LIMIT);
        assert_eq!((early.reasons, early.error), (vec![Reason::NoOffset(1)], None));
        let slave = Facts { measured: false, ..facts(port(PortState::Slave)) };
        assert!(evaluate(&slave, LIMIT).in_sync(), "a servo's offset may well stay");
    }

    #[test]
    fn a_ptp4l_of_another_domain_or_profile_and_none_at_all_are_told_apart() {
        let none = Facts { survey: None, ..facts(port(PortState::Slave)) };
        assert_eq!(reasons(&none), [Reason::NoPtp4l]);
        let other = reasons(&Facts { elsewhere: Some((0, 7)), ..none });
        assert_eq!(other, [Reason::Elsewhere { profile: 0, domain: 7, wanted: 0 }]);
        assert!(other[0].to_string().contains("transportSpecific 0x1"), "{}", other[0]);
    }
}
