//! How every stream of this host's interfaces stands.

use super::{LOOK_AGAIN, interrupted};
use crate::exit::Exit;
use crate::terminal;
use anyhow::{Context, bail};
use clap::Args;
use onbeat::clock::{MonoTime, pause};
use onbeat::interface::srp::mrpd::{MrpdAttribute, Notice};
use onbeat::interface::srp::{
    Neighbour, Phase, SrpConnection, StreamStatus, Summary, mrpd_says, services,
};
use onbeat_model::record::Role;
use onbeat_model::time::Span;
use onbeat_model::units::StreamId;
use onbeat_report::grid::{grid, right, ruled};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;

pub(super) const HELP: &str = "Examples:
  onbeat srp
  onbeat srp status --interface eth0 --json
  onbeat srp --watch

Exits with 0 if bandwidth is reserved for every stream, with 1 if not for each, with 5 if no service
and no mrpd runs here. docs/reservation.md explains the states.";

/// How often `--watch` shows it.
const REFRESH: Span = Span::from_s(1);
/// Where the kernel lists Unix sockets, and the most octets of the list.
const SOCKETS: &str = "/proc/net/unix";
const SOCKETS_OCTETS: u64 = 64 << 20;
const HEADINGS: [&str; 9] =
    ["interface", "stream", "end", "state", "destination", "VLAN", "PCP", "latency", "process"];

#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    /// Interface to show [default: all]
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// Shows it each second, until interrupted
    #[arg(long)]
    watch: bool,
    /// Prints JSON for machines (docs/cli.md)
    #[arg(long)]
    json: bool,
}

/// What one interface's service, or mrpd, says.
struct Seen {
    interface: String,
    streams: Vec<StreamStatus>,
    /// mrpd does not say which end is whose, nor any of this.
    summary: Option<Summary>,
}

/// A stream's identifier, as tables and JSON have it.
pub(super) fn stream(stream: StreamId) -> String {
    format!("{:#018x}", stream.0)
}

/// Shows it once, or each second.
pub(super) fn status(arguments: &StatusArguments) -> anyhow::Result<Exit> {
    let show = |seen: &[Seen]| match arguments.json {
        true => json_of(seen).to_string(),
        false => table(seen),
    };
    if !arguments.watch {
        let seen = look(arguments.interface.as_deref())?;
        terminal::print(show(&seen));
        let mut streams = seen.iter().flat_map(|seen| &seen.streams);
        let all = streams.all(|stream| stream.phase.is_reserved());
        return Ok(if all { Exit::Fine } else { Exit::Description });
    }
    let interrupted = interrupted()?;
    while !interrupted.load(Ordering::Relaxed) {
        let now = MonoTime::now();
        let text = show(&look(arguments.interface.as_deref())?);
        let is_seen = match arguments.json {
            true => terminal::print_to_reader(&text),
            false => terminal::refresh(&text),
        };
        if !is_seen? {
            break; // whoever looked has gone
        }
        while MonoTime::now() < now + REFRESH && !interrupted.load(Ordering::Relaxed) {
            pause(LOOK_AGAIN);
        }
    }
    Ok(Exit::Fine)
}

fn look(interface: Option<&str>) -> anyhow::Result<Vec<Seen>> {
    let names = match interface {
        Some(name) => vec![name.to_owned()],
        None => services(&sockets()?),
    };
    let mut seen = Vec::new();
    for interface in names {
        let shown = SrpConnection::open(&interface).and_then(|connection| connection.show());
        match shown {
            Ok((streams, summary)) => {
                seen.push(Seen { interface, streams, summary: Some(summary) });
            }
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {}
            Err(error) => return Err(error).context(format!("interface `{interface}`")),
        }
    }
    if seen.is_empty() {
        match mrpd_says() {
            Some(notices) => {
                let (interface, streams) = ("mrpd".to_owned(), streams_of(&notices));
                seen.push(Seen { interface, streams, summary: None });
            }
            None => bail!(
                "no reservation service runs here: start one with `onbeat srp serve --interface \
                 {}`",
                interface.unwrap_or("NAME")
            ),
        }
    }
    Ok(seen)
}

/// The table of this network namespace's Unix sockets.
fn sockets() -> anyhow::Result<String> {
    let octets = onbeat::regular::read(Path::new(SOCKETS), SOCKETS_OCTETS).context(SOCKETS)?;
    // Names may be any octets; those of services are text.
    Ok(String::from_utf8_lossy(&octets).into_owned())
}

/// The streams that mrpd knows. Which end is this host's it does not say: the talker's is shown.
fn streams_of(notices: &[Notice]) -> Vec<StreamStatus> {
    let mut streams: BTreeMap<StreamId, StreamStatus> = BTreeMap::new();
    let new = |stream, phase| StreamStatus { phase, ..StreamStatus::new(Role::Talker, stream) };
    for notice in notices.iter().filter(|notice| notice.is_there) {
        if let MrpdAttribute::Talker { stream, failure, .. } = notice.attribute {
            let phase = failure.map_or(Phase::Advertised, Phase::Failed);
            let known = streams.entry(stream).or_insert_with(|| new(stream, phase));
            if let MrpdAttribute::Talker {
                destination,
                vid,
                tspec,
                priority_and_rank,
                latency_ns,
                ..
            } = notice.attribute
            {
                known.destination = Some(destination);
                (known.vid, known.priority) = (Some(vid), Some(priority_and_rank >> 5));
                known.tspec = Some(tspec);
                known.latency = Some(Span::from_ns(latency_ns.into()));
            }
        }
    }
    for notice in notices.iter().filter(|notice| notice.is_there) {
        let MrpdAttribute::Listener(stream, value) = notice.attribute else { continue };
        let known = streams.entry(stream).or_insert_with(|| new(stream, Phase::NoTalker));
        known.phase = match (known.phase, value) {
            (Phase::Advertised, 1) => Phase::AskingFailed,
            (Phase::Advertised, 2) => Phase::Ready,
            (Phase::Advertised, 3) => Phase::ReadyFailed,
            (phase, _) => phase,
        };
    }
    streams.into_values().collect()
}

/// A state in words, with the reason of a failure.
fn phase(status: &StreamStatus) -> String {
    match status.phase {
        Phase::Failed(failure) => {
            let (code, bridge) = (failure.code, failure.bridge);
            format!("failed: {} (code {}) at {bridge}", code.meaning(), code.0)
        }
        phase if status.is_static => format!("{} (static)", phase.name()),
        phase => phase.name().to_owned(),
    }
}

fn neighbour(neighbour: Neighbour) -> &'static str {
    match neighbour {
        Neighbour::LinkDown => "the link is down",
        Neighbour::Asking => "it is not known yet whether the neighbour speaks MSRP",
        Neighbour::Msrp => "the neighbour speaks MSRP",
        Neighbour::Silent => "the neighbour does not speak MSRP: shares of this port are static",
    }
}

fn table(seen: &[Seen]) -> String {
    let mut grid = grid(&HEADINGS);
    let or = |text: Option<String>| text.unwrap_or("-".to_owned());
    for Seen { interface, streams, .. } in seen {
        for status in streams {
            let end = match status.role {
                _ if interface == "mrpd" => "-",
                Role::Talker => "talker",
                Role::Listener => "listener",
            };
            grid.add_row(vec![
                interface.clone().into(),
                stream(status.stream).into(),
                end.into(),
                phase(status).into(),
                or(status.destination.map(|address| address.to_string())).into(),
                right(or(status.vid.map(|vid| vid.to_string()))),
                right(or(status.priority.map(|priority| priority.to_string()))),
                right(or(status.latency.map(|latency| latency.to_string()))),
                right(or((status.process != 0).then(|| status.process.to_string()))),
            ]);
        }
    }
    let mut lines = Vec::new();
    match seen.iter().all(|seen| seen.streams.is_empty()) {
        true => lines.push("No streams.".to_owned()),
        false => lines.push(ruled(&grid)),
    }
    for Seen { interface, summary, .. } in seen {
        let Some(summary) = summary else { continue };
        let [a, b] = summary.reserved;
        let [share_a, share_b] = summary.share;
        lines.push(format!(
            "{interface}: {}; of {}, talkers here have {a} of {share_a} in class A, {b} of \
             {share_b} in class B",
            neighbour(summary.neighbour),
            summary.rate
        ));
    }
    lines.join("\n")
}

fn json_of(seen: &[Seen]) -> Value {
    let interfaces: Vec<_> = seen.iter().map(interface_json).collect();
    json!({ "format": "onbeat-srp", "version": 1, "interfaces": interfaces })
}

fn interface_json(seen: &Seen) -> Value {
    let Seen { interface, streams, summary } = seen;
    let is_mrpd = summary.is_none();
    let streams: Vec<_> = streams.iter().map(|status| stream_json(status, is_mrpd)).collect();
    let domain = |domain: Option<(u8, u16)>| {
        domain.map(|(priority, vid)| json!({ "pcp": priority, "vlan": vid }))
    };
    let summary = summary.as_ref();
    let class = |at: usize| {
        summary.map(|s| {
            json!({
                "share_bps": s.share[at].as_bps(),
                "reserved_bps": s.reserved[at].as_bps(),
                "domain": domain(s.domains[at]),
            })
        })
    };
    json!({
        "interface": (!is_mrpd).then_some(interface),
        "by": if is_mrpd { "mrpd" } else { "onbeat" },
        "neighbour": summary.map(|summary| match summary.neighbour {
            Neighbour::LinkDown => "link-down",
            Neighbour::Asking => "asking",
            Neighbour::Msrp => "msrp",
            Neighbour::Silent => "silent",
        }),
        "rate_bps": summary.map(|summary| summary.rate.as_bps()),
        "class_a": class(0),
        "class_b": class(1),
        "streams": streams,
    })
}

fn stream_json(status: &StreamStatus, is_mrpd: bool) -> Value {
    let role = match status.role {
        Role::Talker => "talker",
        Role::Listener => "listener",
    };
    let failure = match status.phase {
        Phase::Failed(failure) => Some(json!({
            "code": failure.code.0,
            "meaning": failure.code.meaning(),
            "bridge": failure.bridge.to_string(),
        })),
        _ => None,
    };
    json!({
        "stream_id": stream(status.stream),
        "end": (!is_mrpd).then_some(role),
        "state": status.phase.name().replace(' ', "-"),
        "static": status.is_static,
        "failure": failure,
        "destination": status.destination.map(|address| address.to_string()),
        "vlan": status.vid,
        "pcp": status.priority,
        "max_frame_size_octets": status.tspec.map(|tspec| tspec.max_frame_size),
        "max_interval_frames": status.tspec.map(|tspec| tspec.max_interval_frames),
        "accumulated_latency_ns": status.latency.map(Span::as_ns),
        "pid": (status.process != 0).then_some(status.process),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use onbeat::interface::srp::mrpd::notices;
    use onbeat_runtime::msrp::{BridgeId, FailureCode, FailureInformation};

    #[test]
    fn a_failure_is_in_words_with_its_bridge() {
        let bridge = BridgeId([0x80, 0, 2, 0, 0, 0xcc, 0, 1]);
        let failure = FailureInformation { bridge, code: FailureCode::BANDWIDTH };
        let status = StreamStatus {
            phase: Phase::Failed(failure),
            ..StreamStatus::new(Role::Listener, StreamId(7))
        };
        let said = "failed: insufficient bandwidth (code 1) at 8000.02:00:00:cc:00:01";
        assert_eq!(phase(&status), said);
        let json = stream_json(&status, false);
        assert_eq!(json["state"], "failed");
        assert_eq!(json["failure"]["bridge"], "8000.02:00:00:cc:00:01");
        assert_eq!(json["stream_id"], "0x0000000000000007");
    }

    #[test]
    fn what_mrpd_says_of_streams_is_put_together() {
        let said = "T:S=0000000000000007,A=91e0f000fe01,V=0002,Z=32,I=1,P=112,L=125000,\
                    B=0000000000000000,C=0 R=020000000001 QA/IN\n\
                    L:D=2,S=0000000000000007 R=020000000001 QA/IN\n\
                    L:D=2,S=0000000000000008 R=020000000001 QA/IN\n";
        let notices: Vec<_> = notices(said.as_bytes()).collect();
        let streams = streams_of(&notices);
        let phases: Vec<_> = streams.iter().map(|s| (s.stream.0, s.phase)).collect();
        assert_eq!(phases, [(7, Phase::Ready), (8, Phase::NoTalker)]);
    }
}
