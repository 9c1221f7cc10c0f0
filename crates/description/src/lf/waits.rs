//! Where a model says how long federates wait, so that it can be changed there.

use super::annotations::{self, last};
use super::class::Class;
use super::instances::{Instance, qualified};
use super::syntax::{Attribute, Expression, Instantiation, Literal};
use super::values::Value;
use super::{Loaded, Origin};
use crate::At;
use onbeat_model::federation::MaxWait;
use std::collections::BTreeMap;

/// The parameters that had the time before there was an attribute.
const PARAMETERS: [&str; 3] = ["STP_offset", "STA", "STA_offset"];

/// Where a model says how long is waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitPlace {
    /// Nowhere: an attribute goes before this statement.
    Before(Origin),
    /// This is the time: the value of an attribute or parameter. A parameter's may be that of
    /// several federates.
    Time(Origin),
    /// This decides on it, and is no time that can be replaced: code, another parameter, or a
    /// parameter that the sidecar overrides.
    Elsewhere(Origin),
}

/// Where a model says how long federates wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitPlaces {
    /// Per federate.
    pub federates: Vec<WaitPlace>,
    /// Per connection, its `@absent_after`; none: it has none.
    pub connections: Vec<Option<WaitPlace>>,
}

impl Loaded {
    /// Where the model says how long its federates wait.
    pub const fn wait_places(&self) -> &WaitPlaces {
        &self.details.waits
    }
}

/// The wait that a parameter of a federate gives, as older versions have it.
pub(super) fn of_parameters(instance: &Instance) -> Option<MaxWait> {
    PARAMETERS.iter().find_map(|name| of_parameter(instance, name))
}

fn of_parameter(instance: &Instance, name: &str) -> Option<MaxWait> {
    annotations::wait(instance.parameters.get(name)?.as_time()?)
}

/// Where the wait of a federate is.
pub(super) fn of_federate(
    child: &Instantiation,
    instance: &Instance,
    class: Option<&Class<'_>>,
    given: &BTreeMap<String, Value>,
) -> WaitPlace {
    if let Some(place) = of_attribute(&child.attributes, "maxwait") {
        return place;
    }
    let before = WaitPlace::Before(child.name.at);
    let stated = PARAMETERS.iter().find(|name| of_parameter(instance, name).is_some());
    let Some(name) = stated else { return before };
    let argument = child.arguments.iter().rev().find(|(argument, _)| argument.value == *name);
    let declared = class.into_iter().flat_map(|class| &class.parameters);
    let mut declared = declared.filter(|parameter| parameter.name.value == *name);
    let value = argument
        .map(|(_, value)| value)
        .or_else(|| declared.next().and_then(|parameter| parameter.default.as_ref()));
    let Some(value) = value else { return before };
    let is_given = [&instance.path, &instance.plain]
        .iter()
        .any(|path| given.contains_key(&qualified(path, name)));
    if is_given { WaitPlace::Elsewhere(value.at) } else { of_value(value) }
}

/// Where the value of an attribute is, if it is there.
pub(super) fn of_attribute(attributes: &[Attribute], name: &str) -> Option<WaitPlace> {
    let (_, value) = last(attributes, name)?.values.first()?;
    Some(WaitPlace::Time(value.at))
}

/// Where a value is that a reaction or a parameter has.
pub(super) const fn of_value(value: &At<Expression>) -> WaitPlace {
    match &value.value {
        Expression::Time(_) | Expression::Literal(Literal::Integer(_)) => WaitPlace::Time(value.at),
        _ => WaitPlace::Elsewhere(value.at),
    }
}
