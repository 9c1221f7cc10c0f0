//! The verb `bounds` for a FIFO network in the form of Saihu and panco.

use crate::arguments::{BoundsArguments, Method};
use crate::bounds::timed;
use crate::chosen::WrongArgument;
use crate::exit::Exit;
use crate::input;
use crate::terminal;
use anyhow::bail;
use comfy_table::Cell;
use onbeat_bounds::fifo::Bounds;
use onbeat_bounds::import::{Imported, import};
use onbeat_model::time::Span;
use onbeat_report::grid::{grid, right, ruled};
use serde_json::{Map, Value, json};

/// The most of a file of a network.
const NETWORK_OCTETS: u64 = 64 << 20;

/// Nanobits of an octet.
const OCTET: i128 = 8_000_000_000;

/// What one method found, and how much of the processor's time it took.
struct Found {
    method: Method,
    /// None: it finds no bound for this network.
    bounds: Option<Bounds>,
    cpu: Span,
}

/// Bounds every flow with each method.
pub(crate) fn bounds(arguments: &BoundsArguments) -> anyhow::Result<Exit> {
    if arguments.unprotected {
        bail!(WrongArgument("--unprotected is for descriptions: networks reserve nothing".into()));
    }
    let path = &arguments.subject;
    let text = input::text(path, NETWORK_OCTETS).map_err(anyhow::Error::msg)?;
    let named = match import(&text) {
        Ok(named) => named,
        Err(error) => {
            terminal::say(format_args!("onbeat: {}: {error}", path.display()));
            return Ok(Exit::Description);
        }
    };
    let methods = [Method::TotalFlow, Method::Best].into_iter();
    let methods = methods.filter(|m| arguments.method.is_none_or(|only| only == *m));
    let mut found = Vec::new();
    for method in methods {
        let (bounds, cpu) = timed(|| match method {
            Method::TotalFlow => named.network.total_flow(),
            Method::Best => named.network.bounds(),
        });
        match bounds {
            Ok(bounds) => found.push(Found { method, bounds, cpu }),
            Err(error) => {
                terminal::say(format_args!("onbeat: {}: {error}", path.display()));
                return Ok(Exit::Description);
            }
        }
    }
    if arguments.json {
        terminal::print_json(&to_json(&named, &found))?;
    } else {
        terminal::print(table(&named, &found));
    }
    Ok(Exit::Fine)
}

impl Method {
    const fn as_str(self) -> &'static str {
        match self {
            Self::TotalFlow => "total-flow",
            Self::Best => "best",
        }
    }
}

impl Found {
    /// From a flow's source to leaving its last server: the format's flows have one path each. What
    /// is known of a server before that may be more, as a way that is known as a whole counts a
    /// burst once.
    fn flow(&self, flow: usize) -> Option<Span> {
        self.bounds.as_ref()?.hops[flow].last().map(|hop| hop.total)
    }

    /// What may wait in a server at once, in octets, rounded up.
    fn backlog(&self, server: usize) -> Option<i128> {
        let nanobits = self.bounds.as_ref()?.backlog[server];
        Some((nanobits + OCTET - 1) / OCTET)
    }
}

fn table(named: &Imported, found: &[Found]) -> String {
    let columns: Vec<_> = found.iter().map(|f| f.method.as_str()).collect();
    let shown = |value: Option<String>| right(value.unwrap_or_else(|| "no bound".to_owned()));
    let mut flows = grid(&[&["flow"], &columns[..]].concat());
    for (at, name) in named.flows.iter().enumerate() {
        let bounds = found.iter().map(|f| shown(f.flow(at).map(|span| span.to_string())));
        flows.add_row([Cell::new(name)].into_iter().chain(bounds));
    }
    let mut servers = grid(&[&["server, octets"], &columns[..]].concat());
    for (at, name) in named.servers.iter().enumerate() {
        let backlogs = found.iter().map(|f| shown(f.backlog(at).map(|octets| octets.to_string())));
        servers.add_row([Cell::new(name)].into_iter().chain(backlogs));
    }
    let mut text = format!("{}\n\nWhat may wait at once\n{}\n", ruled(&flows), ruled(&servers));
    for found in found {
        let worst = (0..named.flows.len()).filter_map(|flow| found.flow(flow)).max();
        let worst = worst.map_or("no bound".to_owned(), |worst| format!("{worst} at most"));
        let method = found.method.as_str();
        text += &format!("\n{method}: {worst}, {} of processor time", found.cpu);
    }
    text
}

fn to_json(named: &Imported, found: &[Found]) -> Value {
    let per_method = |of: &dyn Fn(&Found) -> Value| {
        let mut values = Map::new();
        for f in found {
            values.insert(f.method.as_str().to_owned(), of(f));
            // The old name of `best`, which version 1 keeps.
            if f.method == Method::Best {
                values.insert("tight".to_owned(), of(f));
            }
        }
        values
    };
    let flows = named.flows.iter().enumerate().map(|(at, name)| {
        json!({ "name": name, "bound_ns": per_method(&|f| json!(f.flow(at).map(Span::as_ns))) })
    });
    let servers = named.servers.iter().enumerate().map(|(at, name)| {
        let octets = |f: &Found| json!(f.backlog(at).and_then(|o| i64::try_from(o).ok()));
        json!({ "name": name, "backlog_octets": per_method(&octets) })
    });
    json!({
        "format": "onbeat-network-bounds",
        "version": 1,
        "network": named.name,
        "cpu_ns": per_method(&|f| json!(f.cpu.as_ns())),
        "flows": flows.collect::<Vec<_>>(),
        "servers": servers.collect::<Vec<_>>(),
    })
}
