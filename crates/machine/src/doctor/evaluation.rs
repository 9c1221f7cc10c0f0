//! Findings as they are made: what a check says, and whether that blocks a guarantee.

use super::facts::{Fact, Facts};
use super::finding::{Check, Finding, State};
use super::requirements::Requirements;
use std::fmt::Display;

/// What all areas evaluation by, and what they have found.
pub(super) struct Evaluation<'a> {
    pub(super) facts: &'a Facts,
    pub(super) requirements: &'a Requirements,
    findings: Vec<Finding>,
}

impl<'a> Evaluation<'a> {
    pub(super) fn new(facts: &'a Facts, requirements: &'a Requirements) -> Self {
        Self { facts, requirements, findings: Vec::new() }
    }

    /// In the order in which they were made.
    pub(super) fn into_findings(self) -> Vec<Finding> {
        self.findings
    }

    /// A finding. Without a system what would block is only advice; with one, what no guarantee
    /// rests on is as it may be.
    pub(super) fn say(
        &mut self,
        check: &'static Check,
        state: State,
        value: impl Display,
        wanted: impl Display,
    ) {
        self.push(check, None, state, value.to_string(), wanted.to_string());
    }

    /// The same of one part of the machine.
    pub(super) fn say_of(
        &mut self,
        subject: &str,
        check: &'static Check,
        state: State,
        value: impl Display,
        wanted: impl Display,
    ) {
        let subject = Some(subject.to_owned());
        self.push(check, subject, state, value.to_string(), wanted.to_string());
    }

    /// Something that could not be seen.
    pub(super) fn unknown(&mut self, check: &'static Check, why: &str, wanted: impl Display) {
        self.push(check, None, State::Unknown, why.to_owned(), wanted.to_string());
    }

    /// As it should be, or advice.
    pub(super) fn require(
        &mut self,
        check: &'static Check,
        right: bool,
        value: impl Display,
        wanted: impl Display,
    ) {
        self.say(check, if right { State::Ok } else { State::Advice }, value, wanted);
    }

    /// The same of a fact that may be unknown.
    pub(super) fn fact<T: Display>(
        &mut self,
        check: &'static Check,
        fact: &Fact<T>,
        wanted: impl Display,
        right: impl FnOnce(&T) -> bool,
    ) {
        match fact {
            Fact::Known(value) => self.require(check, right(value), value, wanted),
            Fact::Unknown(why) => self.unknown(check, why, wanted),
        }
    }

    fn push(
        &mut self,
        check: &'static Check,
        subject: Option<String>,
        state: State,
        value: String,
        wanted: String,
    ) {
        let general = self.requirements.is_general();
        let rests = check.against.iter().any(|need| self.requirements.rests_on(*need));
        let (state, wanted) = match state {
            State::Blocks if general => (State::Advice, wanted),
            State::Ok => (State::Ok, wanted),
            // What no guarantee rests on is not worth a word.
            _ if !general && !rests && !check.against.is_empty() => {
                (State::Ok, format!("{wanted}, if needed"))
            }
            State::Blocks if !rests => (State::Advice, wanted),
            state => (state, wanted),
        };
        let fix = check.fix.to_owned();
        self.findings.push(Finding { check, state, subject, value, wanted, fix });
    }
}
