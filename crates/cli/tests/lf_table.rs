//! The table of channels of a federation: `onbeat lf import` writes it, and programs read it.

use crate::common::{TestSystem, root, run, two_hosts};
use crate::lf_runtime::{DELAY_NS, FEDERATION, INLINE, WRAPS, compile, expected, fuzz, lf, tagged};
use crate::lf_runtime::{said, whole};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// A copy of a model of `conformance/lf` with what it imports, in a decentralised federation.
fn decentralised(name: &str, into: &Path) {
    let directory = root().join("conformance/lf");
    std::fs::create_dir_all(into.join("lib")).expect("made");
    std::fs::copy(directory.join("lib/basics.lf"), into.join("lib/basics.lf")).expect("copied");
    let text = std::fs::read_to_string(directory.join(name)).expect("a model");
    let target = "\ntarget C {\n  coordination: decentralized\n}\n";
    let changed = text.replacen("\ntarget C\n", target, 1);
    assert_ne!(changed, text, "{name}");
    std::fs::write(into.join(name), changed).expect("written");
}

/// The rows of a table without channel, octets and delay.
fn rows(text: &str) -> Vec<String> {
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("onbeat-lf-channels 1"));
    let rows = lines.filter(|line| !line.starts_with('#'));
    rows.map(|row| row.split(' ').take(4).collect::<Vec<_>>().join(" ")).collect()
}

/// What the programs' own parser reads in a table: rows by the inputs that they lead to.
fn parsed(program: &Path, text: &str) -> Vec<String> {
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("written");
    let output = child.wait_with_output().expect("it ends");
    let found = String::from_utf8(output.stdout).expect("UTF-8");
    found.lines().map(str::to_owned).collect()
}

#[test]
fn a_table_has_the_numbers_that_lfc_gives_and_programs_read_it() {
    let place = tempfile::tempdir().expect("a directory");
    let parser = fuzz(place.path());
    let counted: [(&str, &[&str]); 9] = [
        ("after.lf", &["0 a.out 1 0"]),
        (
            "bank-of-multiports.lf",
            &["0 a_0.out[0] 2 0", "0 a_0.out[1] 2 1", "1 a_1.out[0] 3 0", "1 a_1.out[1] 3 1"],
        ),
        (
            "interleaved.lf",
            &["0 a_0.out[0] 2 0", "0 a_0.out[1] 3 0", "1 a_1.out[0] 2 1", "1 a_1.out[1] 3 1"],
        ),
        (
            "interleaved-left.lf",
            &[
                "0 a_0.out[0] 2 0",
                "1 a_1.out[0] 2 1",
                "0 a_0.out[1] 2 2",
                "1 a_1.out[1] 2 3",
                "0 a_0.out[2] 2 4",
                "1 a_1.out[2] 2 5",
            ],
        ),
        ("broadcast-list.lf", &["0 a.out 2 0", "1 c.out 3 0", "0 a.out 4 0", "1 c.out 5 0"]),
        ("multiport-to-bank.lf", &["0 a.out[0] 1 0", "0 a.out[1] 2 0", "0 a.out[2] 3 0"]),
        ("request-and-response.lf", &["0 c.request 1 0", "1 s.out 0 0"]),
        // The echo of each ear to itself is its first input, and its alarm the last.
        (
            "numbered.lf",
            &[
                "2 h_0.out[0] 0 1",
                "2 h_0.out[1] 0 2",
                "3 h_1.out[0] 0 3",
                "3 h_1.out[1] 1 3",
                "2 h_0.late 1 1",
                "3 h_1.late 1 2",
            ],
        ),
        ("physical.lf", &[]),
    ];
    for (model, expected) in counted {
        decentralised(model, place.path());
        let arguments = ["lf", "import", model, "--table", "table", "--json"];
        let output = run(&arguments, place.path(), 0);
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let text = std::fs::read_to_string(place.path().join("table")).expect("written");
        assert_eq!(rows(&text), expected, "{model}");
        // The rest of each row is the channel's.
        let channels = document["channels"].as_array().expect("channels");
        let channels: Vec<_> = channels.iter().filter(|one| one["physical"] == false).collect();
        let mut wanted: Vec<(String, String)> = expected
            .iter()
            .zip(channels)
            .map(|(row, channel)| {
                let [from, port, to, input] = row.split(' ').collect::<Vec<_>>()[..] else {
                    unreachable!("four fields")
                };
                assert_eq!(channel["from"], port);
                let name = channel["name"].as_str().expect("a name");
                let octets = &channel["value_octets"];
                let key = format!("{to:0>5} {input:0>5}");
                (key, format!("{from} {to} {input} {name} {octets} {DELAY_NS}"))
            })
            .collect();
        wanted.sort();
        let wanted: Vec<String> = wanted.into_iter().map(|(_, row)| row).collect();
        assert_eq!(parsed(&parser, &text), wanted, "{model}");
    }
}

#[test]
fn a_row_has_the_size_and_the_delay_that_the_channel_has() {
    let place = tempfile::tempdir().expect("a directory");
    std::fs::copy(lf("test/Federation.lf"), place.path().join("Federation.lf")).expect("copied");
    let output =
        run(&["lf", "import", "Federation.lf", "-o", ".", "--table", "."], place.path(), 0);
    let told = said(&output);
    assert!(told.contains("onbeat: 1 channel: ./lf-channels.txt"), "{told}");
    let table = std::fs::read_to_string(place.path().join("lf-channels.txt")).expect("written");
    assert!(table.ends_with("\n0 s.reading 1 0 s_reading_l_reading 8 2000000\n"), "{table}");
    let sidecar = "format = 1\n[[connection]]\nfrom = \"s.reading\"\nclass = \"B\"\n\
                   fixed_delay_us = 7_500\nsize_octets = 100\n";
    std::fs::write(place.path().join("with.toml"), sidecar).expect("written");
    let arguments = ["lf", "import", "Federation.lf", "--with", "with.toml", "--table", "table"];
    run(&arguments, place.path(), 0);
    let table = std::fs::read_to_string(place.path().join("table")).expect("written");
    assert!(table.ends_with("\n0 s.reading 1 0 s_reading_l_reading 100 7500000\n"), "{table}");
}

#[test]
fn connections_without_a_channel_have_no_row_and_other_federations_no_table() {
    let place = tempfile::tempdir().expect("a directory");
    decentralised("numbered.lf", place.path());
    // The hubs and the first ear share a station.
    let station = |name: &str| format!("[[federate]]\nname = \"{name}\"\nstation = \"here\"\n");
    let sidecar = format!("format = 1\n{}{}", station("h"), station("e_0"));
    std::fs::write(place.path().join("with.toml"), sidecar).expect("written");
    let arguments = ["lf", "import", "numbered.lf", "--with", "with.toml", "--table", "table"];
    let told = said(&run(&arguments, place.path(), 0));
    assert!(told.contains("physical connections stay on TCP: 1"), "{told}");
    let table = || std::fs::read_to_string(place.path().join("table"));
    let text = table().expect("written");
    assert_eq!(rows(&text), ["3 h_1.out[1] 1 3", "2 h_0.late 1 1", "3 h_1.late 1 2"]);

    std::fs::remove_file(place.path().join("table")).expect("removed");
    let model = std::fs::read_to_string(place.path().join("numbered.lf")).expect("a model");
    for (from, to, why) in [
        ("coordination: decentralized", "", "with centralized coordination"),
        ("target C {", "target Python {", "programs of target Python"),
    ] {
        std::fs::write(place.path().join("other.lf"), model.replace(from, to)).expect("written");
        let sizes = "format = 1\n[[connection]]\nfrom = \"h.out\"\nsize_octets = 1\n\
                     [[connection]]\nfrom = \"h.late\"\nsize_octets = 1\n\
                     [[connection]]\nfrom = \"h.early\"\nsize_octets = 1\n";
        std::fs::write(place.path().join("sizes.toml"), sizes).expect("written");
        let arguments = ["lf", "import", "other.lf", "--with", "sizes.toml", "--table", "table"];
        let told = said(&run(&arguments, place.path(), 1));
        assert!(told.contains("OB1520") && told.contains(why), "{told}");
        assert!(table().is_err());
    }
}

/// The model that `lf/test/federation.c` is a program of.
const MODEL: &str = "target C { coordination: decentralized, clock-sync: off, timeout: 400 ms }
reactor Sensor {
  output reading: int
  output status: char
  output alarm: char
  timer tick(0, 10 ms)
  reaction(tick) -> reading, status, alarm {= =}
}
reactor Logic {
  input reading: int
  input status: char
  input alarm: char
  reaction(reading, status, alarm) {= =}
}
federated reactor {
  s = new Sensor() at a
  @maxwait(forever)
  l = new Logic() at b
  s.status -> l.status after 2 ms
  s.reading -> l.reading after 2 ms
  s.alarm ~> l.alarm
}
";

/// Its network, sizes and programs.
fn sidecar() -> String {
    let network = two_hosts("").replace("hang_timeout_s = 2", "hang_timeout_s = 20");
    let network = network.replace("propagation_ns = 100\n", "propagation_ns = 700000\n");
    let (network, _) = network.split_once("[[channel]]").expect("a channel");
    let size = "[[connection]]\nfrom = \"s.reading\"\nsize_octets = 10\n";
    let program = |host: &str, arguments: &str| {
        format!(
            "[[program]]\nname = \"on-{host}\"\nhost = \"{host}\"\n\
             command = [\"build/federate\", {arguments}]\n"
        )
    };
    let sensor = program("a", r#""0", "300", "octets:sent""#);
    let logic = program("b", r#""1", "400", "octets:given""#);
    format!("{network}{size}{sensor}{logic}")
}

#[test]
fn programs_run_with_the_description_and_the_table_of_their_model() {
    let system = TestSystem::new("");
    std::fs::write(system.path().join("model.lf"), MODEL).expect("written");
    std::fs::write(system.path().join("model.toml"), sidecar()).expect("written");
    let arguments =
        ["lf", "import", "model.lf", "--with", "model.toml", "-o", ".", "--table", "table"];
    run(&arguments, system.path(), 0);
    let table = std::fs::read_to_string(system.path().join("table")).expect("written");
    assert_eq!(rows(&table), ["0 s.status 1 1", "0 s.reading 1 0"]);
    compile(&system, "federate", "federation.c", &FEDERATION, &[&WRAPS[..], &[INLINE]].concat());
    std::fs::write(system.path().join("given"), []).expect("written");
    crate::lf_runtime::run(&system, &[], 0);
    std::fs::rename(system.path().join("sent"), system.path().join("given")).expect("renamed");
    let output = crate::lf_runtime::run(&system, &[], 0);
    let found = tagged(&output);
    let values = found.iter().map(|line| [line[0].clone(), line[1].clone(), line[2].clone()]);
    assert_eq!(values.collect::<Vec<_>>(), expected(0..30), "{}", said(&output));
    for line in &found {
        let tag = whole(&line[1]) * 10_000_000 + DELAY_NS;
        assert_eq!(line[3..], [tag.to_string(), "0".into(), "in-time".into()], "{line:?}");
    }
    let told = said(&output);
    assert!(told.contains("federate 1: s_status_l_status: received 30, late 0"), "{told}");
    assert!(told.contains("federate 1: s_reading_l_reading: received 23, late 0"), "{told}");
    assert!(told.contains("over the socket: 0 tagged, 4 physical, 31 absent"), "{told}");
}
