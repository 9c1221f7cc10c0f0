//! Counters of running programs for Prometheus: as a text, and over HTTP.
//!
//! The text is of Prometheus' text exposition format, version 0.0.4. Names of channels and programs
//! are anybody's, so labels are escaped, and each series is there once whatever they are.

use super::{keys, reasons, say_skipped, wanted};
use crate::arguments::StatArguments;
use crate::exit::Exit;
use crate::terminal;
use anyhow::Context;
use onbeat::clock::pause;
use onbeat::shared_log::Counters;
use onbeat_model::record::Role;
use onbeat_run::inspect::{LiveEndpoint, Seen, Skipped};
use oxhttp::Server;
use oxhttp::model::header::{ALLOW, CONNECTION, CONTENT_TYPE};
use oxhttp::model::{Body, HeaderValue, Method, Request, Response, StatusCode, Version};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Where the counters are served.
const PATH: &str = "/metrics";
/// What Prometheus calls the format.
const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";
/// What is said of anything else.
const PLAIN: &str = "text/plain; charset=utf-8";
/// How long a client may say nothing, or take nothing: shorter than Prometheus waits.
const CLIENT_WITHIN: Duration = Duration::from_secs(5);
/// The most clients at once; further ones wait.
const CLIENTS_MAX: usize = 16;

/// A counter of ends, as Prometheus knows it.
struct Metric {
    name: &'static str,
    help: &'static str,
    /// At which ends this can happen; none: at both.
    at: Option<Role>,
    of: fn(&Counters) -> u64,
}

/// All counters but those of rejected frames, which have a reason besides.
const METRICS: [Metric; 9] = [
    Metric {
        name: "onbeat_messages_sent_total",
        help: "Messages that the program wrote.",
        at: Some(Role::Talker),
        of: |counters| counters.sent,
    },
    Metric {
        name: "onbeat_writes_held_total",
        help: "Writes that the declared rate did not allow at once.",
        at: Some(Role::Talker),
        of: |counters| counters.rate_exceeded,
    },
    Metric {
        name: "onbeat_messages_received_total",
        help: "Messages that the program received, each once.",
        at: Some(Role::Listener),
        of: |counters| counters.received,
    },
    Metric {
        name: "onbeat_messages_lost_total",
        help: "Messages missing by their numbers.",
        at: Some(Role::Listener),
        of: |counters| counters.lost,
    },
    Metric {
        name: "onbeat_messages_late_total",
        help: "Messages that came after capture + D.",
        at: Some(Role::Listener),
        of: |counters| counters.late,
    },
    Metric {
        name: "onbeat_messages_expired_total",
        help: "Received messages that were older than their lifespan and not handed over.",
        at: Some(Role::Listener),
        of: |counters| counters.expired,
    },
    Metric {
        name: "onbeat_messages_duplicate_total",
        help: "Further copies of received messages.",
        at: Some(Role::Listener),
        of: |counters| counters.duplicate,
    },
    Metric {
        name: "onbeat_latency_breaks_total",
        help: "Messages that took longer than --break-us allows.",
        at: Some(Role::Listener),
        of: |counters| counters.breaks,
    },
    Metric {
        name: "onbeat_messages_unrecorded_total",
        help: "Messages for whose record there was no room.",
        at: None,
        of: |counters| counters.unrecorded,
    },
];

/// All that was seen as a document of Prometheus' text format. What cannot happen at an end has no
/// series, and a metric without series is not there.
pub(super) fn document(seen: &Seen) -> String {
    let ends: Vec<(&LiveEndpoint, String)> = seen
        .ends
        .iter()
        .zip(keys(&seen.ends))
        .map(|(end, (.., index))| (end, labels(end, index)))
        .collect();
    let mut text = head("onbeat_endpoints", "gauge", "Endpoints that are shown.");
    let _ = writeln!(text, "onbeat_endpoints {}", ends.len());
    for Metric { name, help, at, of } in &METRICS {
        let those = ends.iter().filter(|(end, _)| at.is_none_or(|at| end.identity.role == at));
        let series = those.map(|(end, labels)| (labels, of(&end.counters)));
        metric(&mut text, (name, "counter", help), series);
    }
    rejected(&mut text, &ends);
    skipped(&mut text, &seen.skipped);
    text
}

/// The lines before the first series of a metric.
fn head(name: &str, kind: &str, help: &str) -> String {
    format!("# HELP {name} {help}\n# TYPE {name} {kind}\n")
}

/// A metric's name, kind and help, and then its series, if there are any.
fn metric<L: Display>(
    text: &mut String,
    (name, kind, help): (&str, &str, &str),
    series: impl Iterator<Item = (L, u64)>,
) {
    for (at, (labels, value)) in series.enumerate() {
        if at == 0 {
            text.push_str(&head(name, kind, help));
        }
        let _ = writeln!(text, "{name}{{{labels}}} {value}");
    }
}

/// Which end it is; `index` tells those of one process, stream and role apart.
fn labels(end: &LiveEndpoint, index: usize) -> String {
    let LiveEndpoint { pid, uid, program, identity, .. } = end;
    let role = if identity.role == Role::Talker { "talker" } else { "listener" };
    format!(
        "channel=\"{}\",role=\"{role}\",program=\"{}\",pid=\"{pid}\",uid=\"{uid}\",\
         stream_id=\"{}\",index=\"{index}\"",
        escaped(&identity.channel),
        escaped(program),
        identity.stream_id.0,
    )
}

/// A label's value between its quotes. Control characters other than the newline, at which parsers
/// may stop or break lines, become U+FFFD.
fn escaped(value: &str) -> Cow<'_, str> {
    if !value.contains(|c: char| matches!(c, '\\' | '"') || c.is_control()) {
        return Cow::Borrowed(value);
    }
    let mut text = String::with_capacity(value.len() + 8);
    for c in value.chars() {
        match c {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            c if c.is_control() => text.push('\u{fffd}'),
            c => text.push(c),
        }
    }
    Cow::Owned(text)
}

/// How many frames were rejected at listeners, by reason.
fn rejected(text: &mut String, ends: &[(&LiveEndpoint, String)]) {
    let listeners = ends.iter().filter(|(end, _)| end.identity.role == Role::Listener);
    let series = listeners.flat_map(|(end, labels)| {
        let labelled = move |reason| format!("{labels},reason=\"{reason}\"");
        reasons(&end.counters).map(move |(reason, count)| (labelled(reason), count))
    });
    let help = "Frames that never reached the program.";
    metric(text, ("onbeat_frames_rejected_total", "counter", help), series);
}

/// Which users have programs that are not shown, and how much there is to say of it.
fn skipped(text: &mut String, skipped: &[Skipped]) {
    let mut users = BTreeMap::new();
    for Skipped { uid, .. } in skipped {
        *users.entry(*uid).or_insert(0_u64) += 1;
    }
    let series = users.into_iter().map(|(uid, count)| (format!("uid=\"{uid}\""), count));
    let help = "Notes on what was not examined of a user's programs.";
    metric(text, ("onbeat_skipped", "gauge", help), series);
}

/// Serves the counters over HTTP until it is interrupted. Each answer has those of its moment.
pub(super) fn serve(arguments: &StatArguments, at: SocketAddr) -> anyhow::Result<Exit> {
    let interrupted = super::interrupted()?;
    // A request that is no URI of a server may make a thread of the library panic: that costs the
    // client its connection, and nobody a line for each.
    let (own, say) = (std::thread::current().id(), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().id() == own {
            say(panic);
        }
    }));
    let (pid, channel) = (arguments.pid, arguments.channel.clone());
    // One look at a time: a look reads of all processes which files they have open.
    let looking = Mutex::new(BTreeSet::new());
    let server = Server::new(move |request| {
        answer(request, || {
            let mut said = looking.lock().unwrap_or_else(PoisonError::into_inner);
            let seen = wanted(pid, channel.as_deref())?;
            say_skipped(&seen.skipped, &mut said);
            Ok(document(&seen))
        })
    });
    let server = server
        .bind(at)
        .with_global_timeout(CLIENT_WITHIN)
        .with_max_concurrent_connections(CLIENTS_MAX)
        .spawn()
        .with_context(|| at.to_string())?;
    terminal::say(format_args!("onbeat: http://{at}{PATH} has the counters until interrupted"));
    let ended = Arc::new(AtomicBool::new(false));
    let has_ended = Arc::clone(&ended);
    std::thread::Builder::new().spawn(move || {
        let _ = server.join(); // only ever after a panic
        has_ended.store(true, Ordering::Relaxed);
    })?;
    while !interrupted.load(Ordering::Relaxed) {
        anyhow::ensure!(!ended.load(Ordering::Relaxed), "{at} is no longer served");
        pause(super::LOOK_AGAIN);
    }
    Ok(Exit::Fine)
}

/// The answer to a request. A connection has one: who asks once a minute should not hold a thread,
/// nor be told in between that it said nothing for too long.
fn answer(
    request: &mut Request<Body>,
    document: impl FnOnce() -> anyhow::Result<String>,
) -> Response<Body> {
    request.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    let plain = |status, text: String| (status, PLAIN, text);
    let (status, format, text) = if request.uri().path() != PATH {
        plain(StatusCode::NOT_FOUND, format!("The counters are at {PATH}.\n"))
    } else if request.method() != Method::GET {
        plain(StatusCode::METHOD_NOT_ALLOWED, "The counters can be read only.\n".to_owned())
    } else {
        match document() {
            Ok(text) => (StatusCode::OK, FORMAT, text),
            Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, format!("{error:#}\n")),
        }
    };
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    *response.version_mut() = Version::HTTP_10; // in which the server closes what it has answered
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(format));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(ALLOW, HeaderValue::from_static("GET"));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use onbeat::shared_log::Identity;
    use onbeat_model::units::StreamId;
    use std::collections::HashSet;

    fn end(channel: &str, program: &str, role: Role, counters: Counters) -> LiveEndpoint {
        let identity = Identity { channel: channel.to_owned(), stream_id: StreamId(7), role };
        let program = program.to_owned();
        let (interval, other_talker) = (None, None);
        LiveEndpoint { pid: 42, uid: 1000, program, identity, counters, interval, other_talker }
    }

    /// Two ends of one kind, one that listens, and something that was not looked at.
    fn seen() -> Seen {
        let talker = Counters { sent: 5, rate_exceeded: 2, ..Counters::default() };
        let rejected = [3, 0, 1, 5, 2, 0, 4, 0, 0, u64::MAX];
        let received = Counters { received: 4, lost: 1, late: 6, duplicate: 7, ..talker };
        let listener = Counters { breaks: 8, unrecorded: 9, rejected, ..received };
        let skipped = |uid, why: &str| Skipped { uid, why: why.to_owned() };
        Seen {
            ends: vec![
                end("c", "arm", Role::Talker, talker),
                end("c", "arm", Role::Talker, Counters::default()),
                end("\"q\" \\ \n\0", "ü}", Role::Listener, listener),
            ],
            skipped: vec![skipped(1, "a"), skipped(1, "b"), skipped(2, "a")],
        }
    }

    #[test]
    fn labels_are_escaped_and_cannot_end_a_line() {
        assert_eq!(escaped("joint_targets ü"), "joint_targets ü");
        assert_eq!(escaped("a\\n\"b\n"), r#"a\\n\"b\n"#);
        assert_eq!(escaped("\r\0\x1b[2J\u{85}"), "\u{fffd}\u{fffd}\u{fffd}[2J\u{fffd}");
    }

    #[test]
    fn a_document_has_what_can_happen_at_each_end() {
        insta::assert_snapshot!(document(&seen()));
    }

    #[test]
    fn no_series_is_there_twice_and_heads_come_once_before_theirs() {
        let text = document(&seen());
        assert!(text.ends_with('\n') && !text.contains("\n\n"));
        let (mut series, mut metrics, mut current) = (HashSet::new(), HashSet::new(), "");
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                current = rest.split(' ').next().expect("a name");
                assert!(metrics.insert(current), "{line}");
                assert_eq!(rest.ends_with(" counter"), current.ends_with("_total"), "{line}");
            } else if !line.starts_with('#') {
                let (name, count) = line.rsplit_once(' ').expect("a value");
                assert!(count.parse::<u64>().is_ok() && series.insert(name), "{line}");
                assert_eq!(name.split('{').next(), Some(current), "{line}");
            }
        }
        assert_eq!(series.len(), 1 + 2 * 3 + 7 + 10 + 2, "{text}");
    }

    #[test]
    fn where_nothing_runs_the_document_says_so() {
        let text = document(&Seen::default());
        let head = "# HELP onbeat_endpoints Endpoints that are shown.\n\
                    # TYPE onbeat_endpoints gauge\n";
        assert_eq!(text, format!("{head}onbeat_endpoints 0\n"));
    }

    #[test]
    fn what_is_asked_decides_what_is_answered() {
        let ask = |method: Method, path: &str, document: anyhow::Result<String>| {
            let request = Request::builder().method(method).uri(path).body(Body::empty());
            let response = answer(&mut request.expect("a request"), || document);
            (response.status().as_u16(), response.headers()[CONTENT_TYPE] == FORMAT)
        };
        assert_eq!(ask(Method::GET, "/metrics", Ok(String::new())), (200, true));
        assert_eq!(ask(Method::GET, "/metrics?x=y", Ok(String::new())), (200, true));
        assert_eq!(ask(Method::POST, "/metrics", Ok(String::new())), (405, false));
        assert_eq!(ask(Method::GET, "/", Ok(String::new())), (404, false));
        assert_eq!(ask(Method::GET, "/metrics/", Ok(String::new())), (404, false));
        let failed = Err(anyhow::anyhow!("/proc"));
        assert_eq!(ask(Method::GET, "/metrics", failed), (500, false));
    }
}
