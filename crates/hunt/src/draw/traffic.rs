//! Channels, streams, noise and faults.

use super::{Draft, Table, table};
use crate::dice::Dice;
use serde_json::{Value, json};

/// Octets of a redundancy tag, which are no room for a message.
const R_TAG: i64 = 6;

/// What a frame occupies of the wire beside itself: preamble, delimiter and gap.
const PREAMBLE_AND_GAP: i64 = 20;

/// The longest message that one frame carries.
const ONE_FRAME: i64 = 1_476;

/// The same of a channel that may be authenticated.
const PROTECTED_MOST: i64 = ONE_FRAME - 32;

impl Draft<'_> {
    pub(super) fn channels(&mut self) {
        let share = self.mix.channels;
        if !self.chance(share) {
            return;
        }
        let count = self.dice.between(1, 5);
        let in_manifest = self.chance(15);
        let mut talker = self.dice.below(self.hosts.len() as u64) as usize;
        let mut manifest = Vec::new();
        for number in 0..count {
            let mut listeners = self.listeners(talker);
            // Apart from all other draws, which stay what they were.
            let mut apart = Dice::new(self.dice.clone().bits());
            let others = listeners.clone();
            if apart.chance(10) {
                listeners.push(talker);
                // Sometimes it is alone.
                listeners.drain(..if apart.chance(15) { others.len() } else { 0 });
            }
            let (all, attributes) = self.channel(number, talker, &listeners, in_manifest);
            if in_manifest {
                manifest.push(attributes);
            }
            self.push("channel", all);
            // The next one continues from a listener, so that there are chains.
            talker = if self.chance(70) { others[0] } else { self.two_hosts().0 };
        }
        if in_manifest {
            let text =
                format!("struct channel_attrs nc_channels[] = {{\n{}}};\n", manifest.concat());
            self.root.insert("manifest".into(), json!("manifest.h"));
            self.files.insert("manifest.h".into(), text);
        }
    }

    /// A channel, and its entry of a manifest.
    fn channel(
        &mut self,
        number: i64,
        talker: usize,
        listeners: &[usize],
        in_manifest: bool,
    ) -> (Table, String) {
        let name = format!("c{number}");
        let mut channel = table(json!({
            "name": name,
            "talker": self.hosts[talker].name,
            "listeners": self.host_names(listeners),
        }));
        let class = self.dice.one(&["A", "A", "A", "B", "B", "scheduled"]);
        let reserve = self.chance(if class == "scheduled" { 50 } else { 85 });
        let is_one = listeners.len() == 1 && listeners[0] != talker;
        let unicast = is_one && number == 0 && self.chance(40);
        let destination = match unicast {
            true => self.hosts[listeners[0]].mac.clone(),
            false => format!("01:00:5e:00:02:{number:02x}"),
        };
        let stream_id = if in_manifest { json!(number + 1) } else { self.stream_id(number) };
        // Some messages are longer than a frame; those with windows are not.
        let longer = class != "scheduled" && self.chance(6);
        let usual = match longer {
            true => self.dice.magnitude(ONE_FRAME + 1, 8_000),
            false => self.dice.magnitude(1, 1_400),
        };
        let mut size = self.number("Channel.size_octets", usual);
        if class == "scheduled" {
            size = json!(size.as_i64().expect("a size").min(ONE_FRAME));
        }
        let usual = self.dice.one(&[250_000, 1_000_000, 1_000_000, 2_000_000, 20_000_000]);
        let (key, value) = if self.chance(30) {
            ("rate_hz", self.number("Channel.rate_hz", 1_000_000_000 / usual))
        } else {
            ("interval_ns", self.number("Channel.interval_ns", usual))
        };
        let interval = if key == "rate_hz" {
            1_000_000_000 / value.as_i64().expect("a rate")
        } else {
            value.as_i64().expect("a time")
        };
        let octets: Vec<_> = destination.split(':').map(|octet| format!("0x{octet}")).collect();
        let entry = format!(
            "\t{{ .dst = {{{}}}, .stream_id = {stream_id}, .sc = {}, .size = {size}, \
             .interval_ns = {interval}, .name = \"{name}\" }},\n",
            octets.join(", "),
            match class {
                "A" => "SC_CLASS_A",
                "B" => "SC_CLASS_B",
                _ => "SC_TAS",
            }
        );
        if !in_manifest || self.chance(20) {
            channel.insert("destination".into(), json!(destination));
            channel.insert("stream_id".into(), stream_id);
            channel.insert("class".into(), json!(class));
            channel.insert("size_octets".into(), size.clone());
            channel.insert(key.into(), value);
        }
        if !reserve || self.optional() {
            channel.insert("reserve".into(), json!(reserve));
        }
        // A trailer takes room of the frame.
        let has_room = |size| class != "scheduled" || size <= PROTECTED_MOST;
        if size.as_i64().is_some_and(has_room) && self.optional() {
            let integrity = self.dice.one(&["none", "crc", "authenticated"]);
            channel.insert("integrity".into(), json!(integrity));
        }
        if self.chance(10) {
            channel.insert("talker_address".into(), json!(self.hosts[talker].mac));
        }
        self.reserved[0] |= reserve && class == "A";
        self.reserved[1] |= reserve && class == "B";
        self.channel_options(&mut channel, interval);
        (channel, entry)
    }

    /// Makes some channels asynchronous. No manifest has a word for that.
    pub(super) fn sporadic(&mut self) {
        if self.root.contains_key("manifest") || !self.chance(40) {
            return;
        }
        let Some(Value::Array(mut channels)) = self.root.remove("channel") else { return };
        for channel in &mut channels {
            if self.chance(50) {
                channel["class"] = json!("asynchronous");
            }
        }
        self.root.insert("channel".into(), Value::Array(channels));
    }

    /// Names the structs of some messages, which some leave to give the size. What is drawn after
    /// the rest changes none of it.
    pub(super) fn types(&mut self) {
        let Some(Value::Array(mut channels)) = self.root.remove("channel") else { return };
        let mut structs = String::new();
        for (number, channel) in channels.iter_mut().enumerate() {
            let size = channel["size_octets"].as_i64();
            let Some(size) = size.filter(|_| self.chance(20)) else { continue };
            let last = if size % 4 == 0 && self.chance(50) {
                format!("unsigned int words[{}];", size / 4)
            } else {
                format!("unsigned char octets[{size}];")
            };
            structs += &format!("struct s{number} {{ {last} }};\n");
            let channel = channel.as_object_mut().expect("a table");
            channel.insert("type".into(), json!(format!("messages.h:s{number}")));
            if self.chance(50) {
                channel.remove("size_octets");
            }
        }
        self.root.insert("channel".into(), Value::Array(channels));
        if !structs.is_empty() {
            self.files.insert("messages.h".into(), structs);
        }
    }

    /// Leaves the class of some channels open.
    pub(super) fn open_classes(&mut self) {
        if self.root.contains_key("manifest") || !self.chance(30) {
            return;
        }
        let Some(Value::Array(mut channels)) = self.root.remove("channel") else { return };
        for channel in &mut channels {
            if self.chance(60) {
                channel["class"] = json!("any");
                let delay = self.dice.magnitude(50, 60_000);
                let channel = channel.as_object_mut().expect("a table");
                channel.remove("pcp");
                channel.entry("fixed_delay_us").or_insert(json!(delay));
            }
        }
        self.root.insert("channel".into(), Value::Array(channels));
    }

    /// Replicates some channels, and leaves the paths of some streams to the plan.
    pub(super) fn replicate(&mut self) {
        if !self.chance(15) {
            return;
        }
        // What a manifest says of a message's size may leave no room for the tag.
        let kinds: &[&str] = match self.root.contains_key("manifest") {
            true => &["stream"],
            false => &["channel", "stream"],
        };
        for kind in kinds.iter().copied() {
            let Some(Value::Array(mut flows)) = self.root.remove(kind) else { continue };
            for flow in &mut flows {
                let flow = flow.as_object_mut().expect("a table");
                let host = |name: &Value| name.as_str()?.strip_prefix('h')?.parse::<usize>().ok();
                let listeners = flow["listeners"].as_array().cloned().unwrap_or_default();
                let is_given = flow.contains_key("paths");
                let (Some(talker), [listener]) = (host(&flow["talker"]), &listeners[..]) else {
                    continue;
                };
                if is_given || host(listener) == Some(talker) || !self.chance(50) {
                    continue;
                }
                if let Some(size) = flow.get("size_octets").and_then(Value::as_i64) {
                    flow["size_octets"] = json!((size.min(PROTECTED_MOST) - R_TAG).max(1));
                }
                if kind == "channel" && self.chance(50) {
                    self.paths(flow, talker, host(listener).into_iter().collect());
                } else {
                    let count = self.dice.one(&[2, 2, 2, 3]);
                    let key = if kind == "channel" { "Channel" } else { "Stream" };
                    let count = self.number(&format!("{key}.disjoint_paths"), count);
                    flow.insert("disjoint_paths".into(), count);
                    if self.chance(50) {
                        let usual = self.dice.one(&[2, 16, 64]);
                        flow.insert(
                            "history".into(),
                            self.number(&format!("{key}.history"), usual),
                        );
                    }
                }
            }
            self.root.insert(kind.into(), Value::Array(flows));
        }
    }

    /// One that no other channel has, whatever it is.
    fn stream_id(&mut self, number: i64) -> Value {
        let [least, most] = self.schema.range("Channel.stream_id").clone();
        match number {
            0 if self.dice.below(1_000) < self.mix.extreme => least,
            1 if self.dice.below(1_000) < self.mix.extreme => most,
            _ => json!(self.dice.bits() >> 8 << 4 | number as u64),
        }
    }

    fn channel_options(&mut self, channel: &mut Table, interval: i64) {
        self.maybe(channel, "Channel.burst_messages", |dice| dice.one(&[1, 1, 2, 5]));
        self.maybe(channel, "Channel.fixed_delay_us", |dice| dice.magnitude(100, 60_000));
        self.maybe(channel, "Channel.deadline_us", |dice| {
            let least = (interval + 999) / 1_000;
            least.saturating_mul(dice.between(1, 4)).min(2_592_000_000_000)
        });
        let delay = channel.get("fixed_delay_us").and_then(Value::as_i64).unwrap_or(60_000);
        self.maybe(channel, "Channel.lifespan_us", |dice| delay.saturating_mul(dice.between(1, 4)));
        self.maybe(channel, "Channel.vlan", |dice| dice.one(&[2, 2, 3]));
        self.maybe(channel, "Channel.pcp", |dice| dice.between(0, 7));
        self.maybe(channel, "Channel.phase_ns", |dice| {
            dice.between(0, interval.clamp(1, 100_000_000))
        });
        self.maybe(channel, "Channel.phase_jitter_ns", |dice| dice.magnitude(1, 1_000_000));
    }

    pub(super) fn streams(&mut self) {
        let count = if self.root.contains_key("channel") {
            self.dice.between(0, 8)
        } else {
            self.dice.between(1, 12)
        };
        // A brim: all to one listener in one class, so that its link is what is full.
        let brim = self.chance(25).then(|| (self.two_hosts().1, self.dice.below(8) as i64));
        for number in 0..count {
            self.stream(number, count, brim);
        }
    }

    fn stream(&mut self, number: i64, count: i64, brim: Option<(usize, i64)>) {
        let (mut talker, to) = self.two_hosts();
        let mut listeners = self.listeners(talker);
        if let Some((listener, _)) = brim {
            talker = if listener == talker { to } else { talker };
            listeners = vec![listener];
        }
        let class = brim.map_or_else(|| self.class(), |(_, class)| class);
        let mut stream = table(json!({ "name": format!("s{number}"),
            "talker": self.hosts[talker].name, "traffic_class": class }));
        let longest = self.dice.one(&[68, 100, 300, 700, 1_522]);
        let interval = self.source(&mut stream, longest, count);
        let listeners = self.paths(&mut stream, talker, listeners);
        stream.insert("listeners".into(), self.host_names(&listeners));
        if brim.is_none() && self.optional() {
            stream.insert("traffic_class".into(), self.number("Stream.traffic_class", class));
        }
        self.maybe(&mut stream, "Stream.vlan", |dice| dice.one(&[2, 2, 3]));
        self.maybe(&mut stream, "Stream.pcp", |dice| dice.between(0, 7));
        self.maybe(&mut stream, "Stream.deadline_us", |dice| dice.magnitude(10, 10_000_000));
        self.maybe(&mut stream, "Stream.phase_ns", |dice| {
            dice.between(0, interval.clamp(1, 100_000_000))
        });
        self.buckets(&mut stream, interval);
        self.push("stream", stream);
    }

    /// Any class; where channels have a reservation in 7 or 6, mostly another.
    fn class(&mut self) -> i64 {
        let class = self.dice.one(&[7, 7, 6, 6, 5, 4, 3, 2, 1, 0]);
        let taken = (class == 7 && self.reserved[0]) || (class == 6 && self.reserved[1]);
        if taken && self.chance(90) { self.dice.between(0, 5) } else { class }
    }

    /// When a stream's frames come, and how long they are; gives the interval.
    fn source(&mut self, stream: &mut Table, longest: i64, count: i64) -> i64 {
        if self.chance(12) {
            return self.trace(stream);
        }
        let octets = self.number("Stream.frame_octets", longest);
        let longest = octets.as_i64().expect("a length");
        stream.insert("frame_octets".into(), octets);
        if self.chance(30) {
            let usual = self.dice.between(68, longest);
            let shortest = self.number("Stream.frame_octets_min", usual);
            let shortest = shortest.as_i64().expect("a length").min(longest);
            stream.insert("frame_octets_min".into(), json!(shortest));
        }
        let (mut burst, mut batch) = (None, 1);
        let kind = self.dice.below(10);
        if kind == 0 || kind == 1 {
            let usual = self.dice.between(2, 6);
            let value = self.number("Stream.burst_frames", usual);
            batch = value.as_i64().expect("a count");
            burst = Some(value);
        }
        let wire = self.slowest_ns((longest + PREAMBLE_AND_GAP) * batch);
        let exact =
            i128::from(wire) * i128::from(count) * 1_000_000 / i128::from(self.mix.load_ppm);
        let exact = i64::try_from(exact).unwrap_or(i64::MAX).clamp(1_000, 1_000_000_000_000);
        let cycles = self.cycle_ns * (exact / self.cycle_ns + 1);
        let usual = match self.dice.below(4) {
            0 => exact,
            1 => cycles,
            2 => cycles + self.dice.one(&[-1, 1, 100, 20_000]),
            _ => self.dice.between(exact / 2, exact.saturating_mul(4)),
        };
        let interval = if self.chance(15) {
            let value = self.number("Stream.rate_hz", 1_000_000_000 / usual.max(1));
            let hz = value.as_i64().expect("a rate");
            stream.insert("rate_hz".into(), value);
            1_000_000_000 / hz
        } else {
            let value = self.number("Stream.interval_ns", usual);
            stream.insert("interval_ns".into(), value.clone());
            value.as_i64().expect("a time")
        };
        match kind {
            0 | 1 => {
                stream.insert("burst_frames".into(), burst.expect("it was drawn"));
            }
            2 | 3 => {
                let usual = self.dice.between(0, 150_000);
                stream.insert("jitter_ns".into(), self.number("Stream.jitter_ns", usual));
            }
            4 | 5 => {
                let usual = interval.saturating_add(self.dice.one(&[0, 1, 30_000]));
                let mean = self.number("Stream.mean_interval_ns", usual);
                let mean = mean.as_i64().expect("a time").max(interval);
                stream.insert("mean_interval_ns".into(), json!(mean));
            }
            _ => {}
        }
        interval
    }

    fn trace(&mut self, stream: &mut Table) -> i64 {
        let gap = self.slowest_ns(1_542).saturating_mul(4).clamp(1, 10_000_000);
        let mut at = 0;
        let frames: Vec<(i64, i64)> = (0..self.dice.between(1, 30))
            .map(|_| {
                at += self.dice.one(&[0, 0, 1, gap, 2 * gap]);
                (at, self.dice.one(&[68, 100, 700, 1_522]))
            })
            .collect();
        if self.chance(40) {
            let name = format!("trace{}.csv", self.files.len());
            let lines: Vec<_> =
                frames.iter().map(|(at, octets)| format!("{at},{octets}")).collect();
            self.files.insert(name.clone(), lines.join("\n"));
            stream.insert("trace_file".into(), json!(name));
        } else {
            stream.insert("trace".into(), json!(frames));
        }
        gap
    }

    /// Paths that the stream must take, sometimes, and the listeners that it then may have.
    fn paths(&mut self, stream: &mut Table, talker: usize, listeners: Vec<usize>) -> Vec<usize> {
        let share = self.mix.paths;
        let ends = (self.hosts[talker].bridge, self.hosts[listeners[0]].bridge);
        let (Some(from), Some(to)) = ends else { return listeners };
        if !self.chance(share) {
            return listeners;
        }
        let count = self.dice.one(&[1, 2, 2, 2, 3]);
        let mut paths: Vec<Vec<usize>> = Vec::new();
        for _ in 0..8 {
            let path = self.path(from, to);
            if paths.len() < count && path.last() == Some(&to) && !paths.contains(&path) {
                paths.push(path);
            }
        }
        if paths.is_empty() {
            return listeners;
        }
        let named = |path: &Vec<usize>| path.iter().map(|b| format!("b{b}")).collect::<Vec<_>>();
        stream.insert("paths".into(), json!(paths.iter().map(named).collect::<Vec<_>>()));
        if paths.len() > 1 && self.chance(60) {
            let usual = self.dice.one(&[2, 16, 64]);
            stream.insert("history".into(), self.number("Stream.history", usual));
        }
        listeners[..1].to_vec()
    }

    /// A random walk over bridges that meets none twice; it may end early.
    fn path(&mut self, from: usize, to: usize) -> Vec<usize> {
        let mut path = vec![from];
        while path.last() != Some(&to) {
            let last = *path.last().expect("it begins somewhere");
            let next = self.edges.iter().filter_map(|&(a, b)| match last {
                last if last == a => Some(b),
                last if last == b => Some(a),
                _ => None,
            });
            let next: Vec<usize> = next.filter(|b| !path.contains(b)).collect();
            if next.is_empty() {
                break;
            }
            path.push(self.dice.one(&next));
        }
        path
    }

    /// A regulator and a meter that the source keeps or, now and then, does not.
    fn buckets(&mut self, stream: &mut Table, interval: i64) {
        let longest = stream.get("frame_octets").and_then(Value::as_i64).unwrap_or(1_522);
        let batch = stream.get("burst_frames").and_then(Value::as_i64).unwrap_or(1);
        let wire = longest + PREAMBLE_AND_GAP;
        let load = i128::from(wire * batch) * 8_000_000_000 / i128::from(interval.max(1));
        let load = i64::try_from(load).unwrap_or(i64::MAX).clamp(1, 1_000_000_000_000);
        let (asynchronous, policing) = (self.mix.asynchronous, self.mix.policing);
        if self.chance(asynchronous.max(10)) {
            let bucket = self.bucket("Bucket", load, wire, batch);
            stream.insert("regulator".into(), Value::Object(bucket));
        }
        if self.chance(policing) {
            let mut policing = match self.dice.below(3) {
                0 => Table::new(),
                _ => self.bucket("Policing", load, wire, batch),
            };
            if policing.is_empty() || self.chance(30) {
                let usual = self.dice.one(&[longest, longest, 300]);
                let most = self.number("Policing.frame_octets_max", usual);
                policing.insert("frame_octets_max".into(), most);
            }
            self.maybe_bool(&mut policing, "block");
            stream.insert("policing".into(), Value::Object(policing));
        }
    }

    fn bucket(&mut self, kind: &str, load: i64, wire: i64, batch: i64) -> Table {
        let mut bucket = Table::new();
        let share = self.dice.one(&[100, 100, 101, 130, 90]);
        let rate = (i128::from(load) * share / 100 + 1).min(1_000_000_000_000) as i64;
        let (key, usual) =
            if self.chance(30) { ("rate_mbps", rate / 1_000_000 + 1) } else { ("rate_bps", rate) };
        bucket.insert(key.into(), self.number(&format!("{kind}.{key}"), usual));
        let usual = wire * (batch + self.dice.below(3) as i64).min(10_000);
        let burst = self.number(&format!("{kind}.burst_octets"), usual);
        let burst = burst.as_i64().expect("a length").max(wire);
        bucket.insert("burst_octets".into(), json!(burst));
        bucket
    }

    pub(super) fn noise(&mut self) {
        let share = self.mix.noise;
        if !self.chance(share) {
            return;
        }
        for number in 0..self.dice.between(1, 3) {
            let (from, to) = self.two_hosts();
            let mut noise = table(json!({ "name": format!("n{number}"),
                "from": self.hosts[from].name, "to": self.hosts[to].name }));
            let usual = self.dice.one(&[1, 100, 700, 1_472]);
            noise.insert("size_octets".into(), self.number("Noise.size_octets", usual));
            let (key, value) = self.noise_rate();
            noise.insert(key.into(), value);
            self.maybe_bool(&mut noise, "jitter");
            self.noise_cycle(&mut noise);
            self.push("noise", noise);
        }
    }

    pub(super) fn tcp(&mut self) {
        let share = self.mix.noise;
        if !self.chance(share) || !self.chance(50) {
            return;
        }
        for number in 0..self.dice.between(1, 2) {
            let (talker, listener) = self.two_hosts();
            let mut flow = table(json!({ "name": format!("t{number}"),
                "talker": self.hosts[talker].name, "listener": self.hosts[listener].name }));
            let count = self.dice.between(1, 3);
            let mut write = || {
                let usual = self.dice.one(&[1, 21, 300, 1_460, 5_000]);
                self.number("Tcp.writes_octets[]", usual)
            };
            let writes: Vec<_> = (0..count).map(|_| write()).collect();
            flow.insert("writes_octets".into(), json!(writes));
            let usual = self.dice.magnitude(100_000, 100_000_000);
            flow.insert("interval_ns".into(), self.number("Tcp.interval_ns", usual));
            self.maybe(&mut flow, "Tcp.phase_ns", |dice| dice.between(0, 10_000_000));
            self.maybe(&mut flow, "Tcp.after_us", |dice| dice.between(0, 5_000));
            if self.optional() {
                flow.insert("lag_ns".into(), self.delay());
            }
            self.maybe_bool(&mut flow, "nagle");
            self.maybe_bool(&mut flow, "delayed_ack");
            self.push("tcp", flow);
        }
    }

    fn noise_rate(&mut self) -> (&'static str, Value) {
        let mbps = (self.slowest_bps / 1_000_000).clamp(1, 10_000);
        let share = self.dice.one(&[5, 30, 70, 100, 100, 120]);
        if self.chance(40) {
            let usual = self.dice.magnitude(100, 100_000);
            return ("frames_per_s", self.number("Noise.frames_per_s", usual));
        }
        ("rate_mbps", self.number("Noise.rate_mbps", mbps * share / 100))
    }

    fn noise_cycle(&mut self, noise: &mut Table) {
        // Mostly from the start: simulations are short.
        if self.chance(10) {
            self.noise_time(noise, "start", |draft| draft.dice.one(&[0, 1, 2]));
        }
        if self.chance(20) {
            self.noise_time(noise, "on", |draft| draft.dice.between(1, 5));
            if self.chance(70) {
                self.noise_time(noise, "off", |draft| draft.dice.between(0, 5));
            }
        }
    }

    fn noise_time(&mut self, noise: &mut Table, what: &str, usual: impl Fn(&mut Self) -> i64) {
        let unit = self.dice.one(&["ms", "ms", "ms", "s"]);
        let (key, usual) = (format!("{what}_{unit}"), usual(self));
        let value = self.number(&format!("Noise.{key}"), usual);
        noise.insert(key, value);
    }

    pub(super) fn faults(&mut self) {
        let share = self.mix.faults;
        if !self.chance(share) {
            return;
        }
        for _ in 0..self.dice.between(1, 3) {
            let mut fault = Table::new();
            let port = self.dice.below(self.ports.len() as u64) as usize;
            let port = self.ports[port].name.clone();
            match self.dice.below(5) {
                0 => {
                    fault.insert("link".into(), json!(port));
                }
                1 => {
                    fault.insert("link".into(), json!(port));
                    let usual = self.dice.magnitude(1_000, 500_000_000);
                    fault.insert("errors_ppb".into(), self.number("Fault.errors_ppb", usual));
                }
                2 => {
                    let node = port.split_once('.').map_or("h0", |(node, _)| node).to_owned();
                    fault.insert("node".into(), json!(node));
                }
                3 => {
                    let Some(node) = self.steady_node(&port) else { continue };
                    fault.insert("node".into(), json!(node));
                    let usual = self.dice.magnitude(1, 50_000_000) * self.dice.one(&[1, -1]);
                    let step = self.number("Fault.clock_step_ns", usual);
                    fault.insert("clock_step_ns".into(), step);
                }
                _ => {
                    let streams = self.root.get("stream").and_then(Value::as_array);
                    let count = streams.map_or(0, Vec::len);
                    if count == 0 {
                        continue;
                    }
                    let stream = self.dice.below(count as u64);
                    fault.insert("babble".into(), json!(format!("s{stream}")));
                }
            }
            let from = self.dice.below(3) as i64;
            self.maybe(&mut fault, "Fault.from_ms", |_| from);
            let from = fault.get("from_ms").and_then(Value::as_i64).unwrap_or(0);
            if self.chance(50) && from < 2_592_000_000 {
                let usual = from + self.dice.between(1, 10);
                let until = self.number("Fault.until_ms", usual);
                let until = until.as_i64().expect("a time").max(from + 1);
                fault.insert("until_ms".into(), json!(until));
            }
            self.push("fault", fault);
        }
    }

    /// A host, or the bridge of a port, whose clock does not step yet.
    fn steady_node(&mut self, port: &str) -> Option<String> {
        let node = match port.split_once('.') {
            Some((node, _)) if self.chance(50) => node.to_owned(),
            _ => {
                let host = self.dice.below(self.hosts.len() as u64) as usize;
                self.hosts[host].name.clone()
            }
        };
        let faults = self.root.get("fault").and_then(Value::as_array);
        let steps = |f: &Value| f["node"] == node.as_str() && !f["clock_step_ns"].is_null();
        let is_steady = !faults.is_some_and(|faults| faults.iter().any(steps));
        is_steady.then_some(node)
    }
}
