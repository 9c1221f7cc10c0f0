//! Programs in Network Code as a user has them: `onbeat nc`.

use crate::common::{results, root, run};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Output;

const SENSOR: &str = "\
station sensor
medium 100 Mbit/s tagged

output position[3]
message at = 2[3]

begin:
    sync slave, 2 ms
    branch sync_timeout, begin
    create position  # once
    send at
    goto begin
";

/// A description with a channel from the sensor to the controller.
const CELL: &str = r#"
format = 1
name = "cell"
[run]
duration_s = 1
[[host]]
name = "sensor"
[[host]]
name = "controller"
[[bridge]]
name = "bridge"
[[link]]
ends = ["sensor", "bridge"]
rate_mbps = 1000
[[link]]
ends = ["controller", "bridge"]
rate_mbps = 1000
[[channel]]
name = "position"
destination = "91:e0:f0:00:fe:01"
stream_id = 1
class = "A"
size_octets = 10
interval_ns = 1_000_000
talker = "sensor"
listeners = ["controller"]
"#;

fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, text) in files {
        std::fs::write(directory.path().join(name), text).expect("written");
    }
    directory
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text")
}

fn read(directory: &Path, name: &str) -> Vec<u8> {
    std::fs::read(directory.join(name)).expect("a file")
}

fn names(directory: &Path) -> Vec<String> {
    let entries = directory.read_dir().expect("a directory").map(|entry| entry.expect("one"));
    let mut names: Vec<_> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_program_is_assembled_shown_and_assembled_to_the_same_octets() {
    let place = directory(&[("sensor.nc", SENSOR)]);
    let place = place.path();
    let said = stderr(&run(&["nc", "asm", "sensor.nc"], place, 0));
    assert_eq!(said, "onbeat: program of `sensor`: 5 instructions, 1 buffer, 1 message\n");
    assert_eq!(names(place), ["sensor.nc"], "it was only checked");

    let said = stderr(&run(&["nc", "asm", "sensor.nc", "-o", "sensor.ncb"], place, 0));
    assert!(said.ends_with("1 message: sensor.ncb\n"), "{said}");
    let shown = stdout(&run(&["nc", "dis", "sensor.ncb"], place, 0));
    let expected = SENSOR.replace("begin", "L0").replace("  # once", "");
    assert_eq!(shown, expected);
    let noted = stdout(&run(&["nc", "dis", "sensor.ncb", "--words"], place, 0));
    assert!(noted.contains("    send at                               # 003 "), "{noted}");

    for name in ["plain.nc", "noted.nc"] {
        let text = if name == "plain.nc" { &shown } else { &noted };
        std::fs::write(place.join(name), text).expect("written");
        let image = name.replace(".nc", ".ncb");
        run(&["nc", "asm", name, "-o", &image], place, 0);
        let again = stdout(&run(&["nc", "dis", &image], place, 0));
        assert_eq!(again, shown, "{name}");
    }
    run(&["nc", "dis", "sensor.ncb", "-o", "again.nc"], place, 0);
    assert_eq!(read(place, "again.nc"), shown.as_bytes());
}

#[test]
fn json_has_the_program_or_what_is_wrong() {
    let place = directory(&[
        ("sensor.nc", SENSOR),
        ("bad.nc", "station a\nbegin:\n    create b\n    send m\n    goto begin\n"),
    ]);
    let found = results(&["nc", "asm", "sensor.nc"], place.path(), 0);
    let expected = json!({
        "format": "onbeat-network-code",
        "version": 1,
        "file": "sensor.nc",
        "ok": true,
        "station": "sensor",
        "medium": { "rate_bps": 100_000_000, "tagged": true },
        "buffers": [
            { "id": 0, "name": "position", "words": 3, "role": "output", "channel": null },
        ],
        "messages": [{ "id": 2, "name": "at", "words": 3 }],
        "instructions": [
            { "address": 0, "word": "180000000003d090", "text": "sync slave, 2 ms", "line": 8,
              "issue_ns": 8 },
            { "address": 1, "word": "1c00000400000000", "text": "branch sync_timeout, L0",
              "line": 9, "issue_ns": 24 },
            { "address": 2, "word": "0400000000000000", "text": "create position", "line": 10,
              "issue_ns": 16 },
            { "address": 3, "word": "0800008000000000", "text": "send at", "line": 11,
              "issue_ns": 16 },
            { "address": 4, "word": "1c00000000000000", "text": "goto L0", "line": 12,
              "issue_ns": 24 },
        ],
        "diagnostics": [],
    });
    assert_eq!(found, expected);

    let found = results(&["nc", "asm", "bad.nc", "-o", "bad.ncb"], place.path(), 1);
    assert_eq!(found["ok"], false);
    for key in ["station", "medium", "buffers", "messages", "instructions"] {
        assert_eq!(found[key], Value::Null, "{key}");
    }
    let codes = found["diagnostics"].as_array().expect("a list").iter();
    let codes: Vec<_> = codes.map(|it| (it["code"].as_str(), it["line"].as_u64())).collect();
    assert_eq!(codes, [(Some("OB6017"), Some(3)), (Some("OB6018"), Some(4))]);
    assert_eq!(names(place.path()), ["bad.nc", "sensor.nc"], "nothing is written");
}

#[test]
fn errors_are_shown_with_their_lines() {
    let place = directory(&[("bad.nc", "station a\nx: sync slave, 1 ms\n    wait 5\n goto x\n")]);
    let said = stderr(&run(&["nc", "asm", "bad.nc"], place.path(), 1));
    for part in ["error[OB6005]", "bad.nc:3:5", "wait 5", "1 error; docs/errors.md"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn buffers_have_the_lengths_of_the_channels_of_a_description() {
    let text = "input here = channel \"position\"\nmessage at = 2[3]\n\
                begin:\n    sync slave, 2 ms\n    receive at, here\n    goto begin\n";
    let wrong = text.replace("input", "output");
    let place = directory(&[("c.nc", text), ("wrong.nc", &wrong), ("system.toml", CELL)]);
    let place = place.path();
    let asm = ["nc", "asm", "c.nc", "--system", ".", "--station"];
    let found = results(&[&asm[..], &["controller"]].concat(), place, 0);
    assert_eq!(found["station"], "controller");
    assert_eq!(found["buffers"][0]["words"], 3);
    assert_eq!(found["buffers"][0]["channel"], "position");

    let code = |arguments: &[&str]| {
        let found = results(arguments, place, 1);
        let codes = found["diagnostics"].as_array().expect("a list").iter();
        codes.map(|it| it["code"].as_str().expect("a code").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(code(&[&asm[..], &["sensor"]].concat()), ["OB6054"], "it is the talker");
    assert_eq!(code(&[&asm[..], &["bridge"]].concat())[0], "OB6014", "it is no host");
    assert_eq!(code(&["nc", "asm", "c.nc", "--station", "controller"]), ["OB6051"]);
    let wrong = ["nc", "asm", "wrong.nc", "--system", ".", "--station", "controller"];
    assert_eq!(code(&wrong), ["OB6054", "OB6039"]);
}

#[test]
fn texts_are_laid_out_and_files_with_errors_are_left_alone() {
    let sloppy = SENSOR.replace("    ", "  ").replace(", ", " ,");
    let bad = "station a\n  nop nop\n";
    let place = directory(&[("sensor.nc", SENSOR), ("sloppy.nc", &sloppy), ("bad.nc", bad)]);
    let place = place.path();
    let said = stderr(&run(&["nc", "fmt", "--check", "sensor.nc", "sloppy.nc"], place, 1));
    assert_eq!(said, "onbeat: sloppy.nc has another layout\n");
    assert_eq!(read(place, "sloppy.nc"), sloppy.as_bytes(), "it was only looked at");

    std::os::unix::fs::symlink("sloppy.nc", place.join("link.nc")).expect("a link");
    let said = stderr(&run(&["nc", "fmt", "sensor.nc", "link.nc", "bad.nc"], place, 1));
    assert!(said.contains("link.nc is laid out") && said.contains("OB6006"), "{said}");
    assert_eq!(read(place, "sloppy.nc"), SENSOR.as_bytes());
    assert!(place.join("link.nc").is_symlink());
    assert_eq!(read(place, "bad.nc"), bad.as_bytes());
    assert_eq!(names(place), ["bad.nc", "link.nc", "sensor.nc", "sloppy.nc"], "no file is left");
    run(&["nc", "fmt", "--check", "sensor.nc", "sloppy.nc"], place, 0);
    run(&["nc", "fmt", "--check", "bad.nc"], place, 1);
}

#[test]
fn files_that_are_no_programs_are_refused_and_inputs_are_not_overwritten() {
    let place = directory(&[("sensor.nc", SENSOR)]);
    let place = place.path();
    run(&["nc", "asm", "sensor.nc", "-o", "sensor.ncb"], place, 0);
    let mut octets = read(place, "sensor.ncb");
    let last = octets.len() - 1;
    octets[last] ^= 1;
    std::fs::write(place.join("damaged.ncb"), octets).expect("written");
    for (name, why) in [("damaged.ncb", "its checksum"), ("sensor.nc", "no image")] {
        let said = stderr(&run(&["nc", "dis", name], place, 1));
        assert!(said.contains("error[OB6059]") && said.contains(why), "{said}");
    }
    // A link out of the directory is not followed.
    let outside = directory(&[("other.nc", "# secret  \n")]);
    for (link, name) in [("link.nc", "other.nc"), ("link.ncb", "other.ncb")] {
        std::os::unix::fs::symlink(outside.path().join(name), place.join(link)).expect("a link");
    }
    std::fs::copy(place.join("sensor.ncb"), outside.path().join("other.ncb")).expect("copied");
    for arguments in [["nc", "asm", "link.nc"], ["nc", "fmt", "link.nc"], ["nc", "dis", "link.ncb"]]
    {
        let said = stderr(&run(&arguments, place, 5));
        assert!(said.contains("outside") && !said.contains("secret"), "{said}");
    }
    assert_eq!(read(outside.path(), "other.nc"), b"# secret  \n");

    run(&["nc", "asm", "sensor.nc", "-o", "sensor.nc"], place, 2);
    run(&["nc", "dis", "sensor.ncb", "-o", "sensor.ncb"], place, 2);
    assert_eq!(read(place, "sensor.nc"), SENSOR.as_bytes());
    run(&["nc", "asm", "nowhere.nc"], place, 5);
    run(&["nc", "dis", "nowhere.ncb"], place, 5);
    run(&["nc", "fmt", "nowhere.nc"], place, 5);
    run(&["nc", "asm", "sensor.nc", "-o", "none/sensor.ncb"], place, 5);
    run(&["nc", "fmt"], place, 2);
    run(&["nc"], root(), 2);
}
