//! Models in Lingua Franca as a user imports them: by the command.

use crate::common::{onbeat, results, root, run};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

fn models(directory: &Path) -> Vec<PathBuf> {
    let entries = directory.read_dir().expect("models").map(|entry| entry.expect("one").path());
    let mut models: Vec<_> = entries.filter(|p| p.extension().is_some_and(|e| e == "lf")).collect();
    models.sort();
    models
}

/// The arguments that import a model, with the sidecar beside it if there is one.
fn arguments(model: &Path) -> Vec<String> {
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    let mut arguments = vec!["lf".to_owned(), "import".to_owned(), name(model)];
    let sidecar = model.with_extension("toml");
    if sidecar.exists() {
        arguments.extend(["--with".to_owned(), name(&sidecar)]);
    }
    arguments
}

/// A channel as the models declare it.
fn line(channel: &Value) -> String {
    let mut line = format!(
        "channel {} -> {} every={} burst={} octets={}",
        channel["from"].as_str().expect("an output"),
        channel["to"].as_str().expect("an input"),
        channel["interval_ns"],
        channel["burst_messages"],
        channel["value_octets"]
    );
    if !channel["after_ns"].is_null() {
        let _ = write!(line, " after={}", channel["after_ns"]);
    }
    if channel["physical"] == true {
        line.push_str(" physical");
    }
    match &channel["absent_after"] {
        Value::Null => {}
        Value::String(word) => _ = write!(line, " wait={word}"),
        ns => _ = write!(line, " wait={ns}"),
    }
    line
}

#[test]
fn every_model_has_exactly_the_channels_that_it_declares_and_its_description_is_planned() {
    let directory = root().join("conformance/lf");
    let out = tempfile::tempdir().expect("a directory");
    let models = models(&directory);
    assert!(models.len() >= 40, "{}", models.len());
    let mut wrong = Vec::new();
    for model in models {
        let text = std::fs::read_to_string(&model).expect("it was listed");
        let head = text.lines().map_while(|line| line.strip_prefix("// "));
        let is_expectation =
            |line: &&str| line.starts_with("channel ") || line.starts_with("local ");
        let expected: BTreeSet<String> = head.filter(is_expectation).map(str::to_owned).collect();
        let file = out.path().join("system.toml");
        let mut arguments = arguments(&model);
        arguments.extend(["--out".to_owned(), file.display().to_string(), "--json".to_owned()]);
        let output = onbeat().args(&arguments).current_dir(&directory).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        let Ok(document) = serde_json::from_slice::<Value>(&output.stdout) else {
            wrong.push(format!("{}: {said}", model.display()));
            continue;
        };
        let list = |key: &str| document[key].as_array().cloned().unwrap_or_default();
        let mut found: BTreeSet<String> = list("channels").iter().map(line).collect();
        found.extend(list("local").iter().map(|pair| {
            let name = |key: &str| pair[key].as_str().expect("a port").to_owned();
            format!("local {} -> {}", name("from"), name("to"))
        }));
        if found != expected || output.status.code() != Some(0) {
            let name = model.display();
            wrong.push(format!("{name}\n expected {expected:#?}\n found {found:#?}\n{said}"));
            continue;
        }
        let check = run(&["check", "."], out.path(), 0);
        let said = String::from_utf8_lossy(&check.stderr);
        assert!(!said.contains("error"), "{}: {said}", model.display());
        let plan = results(&["plan", "."], out.path(), 0);
        let planned = plan["channels"].as_array().or(plan["streams"].as_array());
        let planned = planned.unwrap_or_else(|| panic!("{plan}")).len();
        assert_eq!(planned, list("channels").len(), "{}", model.display());
        unique(&list("channels"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Names, stream identifiers and addresses are.
fn unique(channels: &[Value]) {
    for key in ["name", "stream_id", "destination"] {
        let values: BTreeSet<String> = channels.iter().map(|c| c[key].to_string()).collect();
        assert_eq!(values.len(), channels.len(), "{key}");
    }
}

#[test]
fn each_bad_model_gives_exactly_the_errors_that_it_declares() {
    let directory = root().join("conformance/lf/bad");
    let models = models(&directory);
    assert!(models.len() >= 20, "{}", models.len());
    let mut wrong = Vec::new();
    for model in models {
        let text = std::fs::read_to_string(&model).expect("it was listed");
        let declared = text.lines().next().and_then(|line| line.strip_prefix("// expect: "));
        let mut expected: Vec<_> = declared.expect("a declaration").split(", ").collect();
        expected.sort_unstable();
        let mut arguments = arguments(&model);
        arguments.push("--json".to_owned());
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = onbeat().args(&arguments).current_dir(&directory).output().expect("it runs");
        let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let own = arguments[2];
        let errors = document["diagnostics"].as_array().cloned().unwrap_or_default();
        let mut found: Vec<String> = errors
            .iter()
            .filter(|wrong| wrong["severity"] == "error")
            .map(|wrong| {
                assert!(!wrong["help"].as_str().unwrap_or("").is_empty(), "{wrong}");
                let code = wrong["code"].as_str().unwrap_or("");
                let file = wrong["file"].as_str().unwrap_or("");
                let file = if file == own { String::new() } else { format!(" of {file}") };
                format!("{code} line {}{file}", wrong["line"])
            })
            .collect();
        found.sort();
        if found != expected || output.status.code() != Some(1) {
            let said = String::from_utf8_lossy(&output.stderr);
            wrong.push(format!("{own}\n expected {expected:?}\n found {found:?}\n{said}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// As many federates in a bank as `banks`, of eleven reactors each, with two connections between
/// neighbours in each of many banks.
fn large() -> String {
    let mut text = String::from(
        "target C\nreactor Leaf { input in: int  output out: int  reaction(in) -> out {= =} }\n\
         reactor Source { output out: int  timer t(0, 10 ms)  reaction(t) -> out {= =} }\n\
         reactor Chain { input in: int  output out: int\n",
    );
    for at in 0..9 {
        let _ = writeln!(text, "  l{at} = new Leaf()");
    }
    for at in 1..9 {
        let _ = writeln!(text, "  l{}.out -> l{at}.in", at - 1);
    }
    text.push_str("  in -> l0.in  l8.out -> out }\n");
    text.push_str(
        "reactor Hub { output[20] out: int  timer t(0, 1 s)  reaction(t) -> out {= =} }\n",
    );
    text.push_str("reactor Ear { input[20] in: int  reaction(in) {= =} }\nfederated reactor {\n");
    // 90 chains of 10 reactors, fed by one source, and 90 pairs with 20 connections each.
    text.push_str("  s = new Source()\n  c = new[90] Chain()\n  k = new[90] Leaf()\n");
    text.push_str("  (s.out)+ -> c.in after 1 ms\n  c.out -> k.in after 1 ms\n");
    text.push_str("  h = new[91] Hub()\n  e = new[91] Ear()\n  h.out -> e.in\n}\n");
    text
}

#[test]
fn a_model_of_a_thousand_reactors_and_two_thousand_connections_is_imported() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("large.lf"), large()).expect("written");
    let found = results(&["lf", "import", "large.lf"], directory.path(), 0);
    let channels = found["channels"].as_array().expect("channels");
    assert_eq!(channels.len(), 90 + 90 + 91 * 20);
    assert_eq!(found["federates"].as_array().expect("federates").len(), 1 + 90 + 90 + 182);
    // A reaction for each reactor: 9 in each chain.
    assert_eq!(found["reactions"].as_array().expect("reactions").len(), 1 + 90 * 9 + 90 + 182);
    unique(channels);
}

#[test]
fn the_description_goes_where_it_is_asked_for_and_says_the_same() {
    let directory = tempfile::tempdir().expect("a directory");
    let model = root().join("conformance/lf/after.lf");
    std::fs::create_dir(directory.path().join("lib")).expect("made");
    let library = root().join("conformance/lf/lib/basics.lf");
    std::fs::copy(library, directory.path().join("lib/basics.lf")).expect("copied");
    std::fs::copy(model, directory.path().join("after.lf")).expect("copied");
    let printed = run(&["lf", "import", "after.lf"], directory.path(), 0).stdout;
    let written = |name: &str| std::fs::read(directory.path().join(name)).expect("written");
    run(&["lf", "import", "after.lf", "-o", "x.toml"], directory.path(), 0);
    assert_eq!(String::from_utf8_lossy(&written("x.toml")), String::from_utf8_lossy(&printed));
    run(&["lf", "import", "after.lf", "-o", "."], directory.path(), 0);
    assert_eq!(written("system.toml"), printed);
    let said = run(&["lf", "import", "nowhere.lf"], directory.path(), 5).stderr;
    assert!(String::from_utf8_lossy(&said).contains("nowhere.lf"));
    run(&["lf", "import"], directory.path(), 2);
}

#[test]
fn a_sidecar_brings_the_network_and_what_connections_need() {
    let directory = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| {
        std::fs::write(directory.path().join(name), text).expect("written");
    };
    write(
        "model.lf",
        "target C { timeout: 3 s }\n\
         reactor S { output out: int  timer t(0, 10 ms)\n\
         // @wcet(min = 1 us, max = 20 us)\n  reaction(t) -> out {= =} deadline(1 ms) {= =} }\n\
         reactor K { input in: int  reaction get(in) {= =} }\n\
         federated reactor { a = new[2] S()\n  @maxwait(forever)\n  b = new[2] K()\n\
         a.out -> b.in after 4 ms }\n",
    );
    write(
        "network.toml",
        "[[host]]\nname = \"one\"\nwakeup_ns = { min = 1000, max = 9000 }\n\
         [[host]]\nname = \"two\"\n[[bridge]]\nname = \"sw\"\n\
         [[link]]\nends = [\"one\", \"sw\"]\nrate_mbps = 100\n\
         [[link]]\nends = [\"two\", \"sw\"]\nrate_mbps = 100\n",
    );
    write(
        "model.toml",
        "format = 1\nname = \"pair\"\ntopology = \"network.toml\"\n\
         [[federate]]\nname = \"a\"\nstation = \"one\"\n\
         [[federate]]\nname = \"b_0\"\nstation = \"two\"\n\
         [[federate]]\nname = \"b_1\"\nstation = \"one\"\n\
         [[reaction]]\nname = \"b.get\"\nexecution_max_ns = 7_000\n\
         [[connection]]\nfrom = \"a.out\"\nclass = \"B\"\nfixed_delay_us = 3_000\nreserve = false\n\
         [[connection]]\nfrom = \"a_0.out\"\nto = \"b_0.in\"\nrate_hz = 200\nburst_messages = 2\n",
    );
    let arguments = ["lf", "import", "model.lf", "--with", "model.toml", "-o", "system.toml"];
    let found = results(&arguments, directory.path(), 0);
    let channel = &found["channels"][0];
    for (key, value) in [
        ("name", Value::from("a_0_out_b_0_in")),
        ("talker", "one".into()),
        ("listener", "two".into()),
        ("class", "B".into()),
        ("fixed_delay_us", 3_000.into()),
        ("reserve", false.into()),
        ("interval_ns", 5_000_000.into()),
        ("burst_messages", 2.into()),
        ("size_octets", 25.into()),
    ] {
        assert_eq!(channel[key], value, "{key}: {channel}");
    }
    assert_eq!(found["local"][0]["to"], "b_1.in");
    assert_eq!(found["federates"][2]["maxwait"], "forever");
    let reaction = &found["reactions"][0];
    let times = ["execution_min_ns", "execution_max_ns", "deadline_ns"].map(|key| &reaction[key]);
    assert_eq!(times, [1_000, 20_000, 1_000_000], "{reaction}");
    let get = found["reactions"].as_array().expect("reactions").last().expect("one");
    assert_eq!((&get["name"], &get["execution_max_ns"]), (&"b_1.get".into(), &7_000.into()));
    let text = std::fs::read_to_string(directory.path().join("system.toml")).expect("written");
    assert!(text.contains("duration_ms = 3000") && text.contains("wakeup_ns"), "{text}");
    run(&["plan", "."], directory.path(), 0);
}

#[test]
fn no_link_shows_a_file_that_is_not_a_model() {
    let outside = tempfile::tempdir().expect("a directory");
    let secret = outside.path().join("secret");
    std::fs::write(&secret, "k3y-0f-th3-us3r {{{").expect("written");
    let inside = tempfile::tempdir().expect("a directory");
    let link = |name: &str| inside.path().join(name);
    for name in ["link.lf", "link.toml"] {
        std::os::unix::fs::symlink(&secret, link(name)).expect("a link");
    }
    let plain = "target C\nimport A from \"link.lf\"\nfederated reactor { a = new A() }\n";
    std::fs::write(link("imports.lf"), plain).expect("written");
    std::fs::write(link("empty.lf"), "target C\nfederated reactor { }\n").expect("written");
    for arguments in [&["link.lf"][..], &["imports.lf"], &["empty.lf", "--with", "link.toml"]] {
        let output = onbeat()
            .args(["lf", "import"])
            .args(arguments)
            .current_dir(inside.path())
            .output()
            .expect("onbeat runs");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!(!output.status.success() && said.contains("not trusted"), "{arguments:?}: {said}");
        assert!(!said.contains("k3y"), "{arguments:?}: {said}");
    }
}

#[test]
fn a_package_is_where_lingo_leaves_it_beside_the_file_that_imports_it_or_above() {
    let directory = tempfile::tempdir().expect("a directory");
    let write = |path: &str, text: &str| {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        std::fs::write(path, text).expect("written");
    };
    let source = "target C\nimport Period from \"parts/Period.lf\"\n\
                  reactor Source extends Period { output out: int  reaction(t) -> out {= =} }\n";
    write("build/lfc_include/sensors/src/lib/Source.lf", source);
    let period = "target C\nreactor Period { timer t(0, 40 ms) }\n";
    write("build/lfc_include/sensors/src/lib/parts/Period.lf", period);
    // The nearest one counts: of the model's own directory.
    write("src/deep/build/lfc_include/near/src/lib/Near.lf", "target C\nreactor Near { }\n");
    write("build/lfc_include/near/src/lib/Near.lf", "target C\nreactor Far { }\n");
    write(
        "src/deep/model.lf",
        "target C\nimport Source as S from <sensors/Source.lf>\nimport Near from <near/Near.lf>\n\
         reactor Sink { input in: int  reaction(in) {= =} }\n\
         federated reactor { a = new S()  b = new Sink()  n = new Near()\n  a.out -> b.in }\n",
    );
    let found = results(&["lf", "import", "src/deep/model.lf"], directory.path(), 0);
    let channel = &found["channels"][0];
    assert_eq!((&channel["from"], &channel["interval_ns"]), (&"a.out".into(), &40_000_000.into()));
    let file = found["reactions"][0]["file"].as_str().expect("a file");
    assert_eq!(file, "src/deep/../../build/lfc_include/sensors/src/lib/Source.lf");

    let missing =
        "target C\nimport A from <sensors/Nowhere.lf>\nfederated reactor { a = new A() }\n";
    write("src/missing.lf", missing);
    let found = results(&["lf", "import", "src/missing.lf"], directory.path(), 1);
    let wrong = &found["diagnostics"][0];
    assert_eq!((&wrong["code"], &wrong["line"]), (&"OB1502".into(), &2.into()), "{wrong}");
    assert!(wrong["help"].as_str().is_some_and(|help| help.contains("build/lfc_include")));
}

#[test]
fn a_topology_elsewhere_is_read_only_when_the_models_directory_is_trusted() {
    let [state, outside, inside] = [(); 3].map(|()| tempfile::tempdir().expect("a directory"));
    // A line that is wrong would be shown, and a right one gets into the description.
    let network = "[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\n[[bridge]]\nname = \"k3y\"\n\
                   [[link]]\nends = [\"a\", \"k3y\"]\nrate_mbps = 100\n\
                   [[link]]\nends = [\"b\", \"k3y\"]\nrate_mbps = 100\n";
    std::fs::write(outside.path().join("network.toml"), network).expect("written");
    std::fs::write(outside.path().join("wrong.toml"), "k3y = {{{\n").expect("written");
    let write = |name: &str, text: &str| {
        std::fs::write(inside.path().join(name), text).expect("written");
    };
    let model = root().join("conformance/lf/plain.lf");
    std::fs::create_dir(inside.path().join("lib")).expect("made");
    std::fs::copy(root().join("conformance/lf/lib/basics.lf"), inside.path().join("lib/basics.lf"))
        .expect("copied");
    std::fs::copy(model, inside.path().join("model.lf")).expect("copied");
    std::os::unix::fs::symlink(outside.path(), inside.path().join("link")).expect("a link");
    let absolute = outside.path().display().to_string();
    let up = format!("../{}", outside.path().file_name().expect("a name").to_string_lossy());
    let mut places = Vec::new();
    for (number, directory) in [absolute.as_str(), up.as_str(), "link"].into_iter().enumerate() {
        for file in ["network.toml", "wrong.toml"] {
            let sidecar = format!("with{number}-{file}");
            let text = format!("format = 1\ntopology = \"{directory}/{file}\"\n");
            write(&sidecar, &text);
            places.push(sidecar);
        }
    }
    let import = |verb: &str, sidecar: &str, more: &[&str]| {
        let arguments = [&["lf", verb, "model.lf", "--with", sidecar], more].concat();
        let output = onbeat()
            .args(&arguments)
            .current_dir(inside.path())
            .env("XDG_STATE_HOME", state.path())
            .output()
            .expect("onbeat runs");
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&said).into_owned())
    };
    for sidecar in &places {
        for verb in ["import", "bounds"] {
            let (code, said) = import(verb, sidecar, &[]);
            assert!(code == Some(1) && said.contains("OB1502"), "{sidecar}: {said}");
            assert!(said.contains("not trusted") && !said.contains("k3y"), "{sidecar}: {said}");
        }
    }
    // Trust is of the directory, from now on.
    let (code, said) = import("import", &places[0], &["--trust"]);
    assert!(code == Some(0) && said.contains("name = \"k3y\""), "{said}");
    for sidecar in &places {
        let (code, said) = import("import", sidecar, &[]);
        assert_eq!(code == Some(0), sidecar.ends_with("network.toml"), "{sidecar}: {said}");
        assert!(said.contains("k3y"), "{sidecar}: {said}");
    }
    // A file of the directory needs none.
    std::fs::remove_dir_all(state.path().join("onbeat")).expect("forgotten");
    write("network.toml", network);
    write("own.toml", "format = 1\ntopology = \"network.toml\"\n");
    let (code, said) = import("import", "own.toml", &[]);
    assert!(code == Some(0) && said.contains("k3y"), "{said}");
}

#[test]
fn what_was_read_is_never_overwritten() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name);
    let models = root().join("conformance/lf");
    let plain = std::fs::read_to_string(models.join("plain.lf")).expect("a model");
    let plain = plain.replace("target C", "target C { coordination: decentralized }");
    std::fs::write(path("model.lf"), plain).expect("written");
    std::fs::create_dir(path("lib")).expect("made");
    std::fs::copy(models.join("lib/basics.lf"), path("lib/basics.lf")).expect("copied");
    let network = "[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\n[[bridge]]\nname = \"s\"\n\
                   [[link]]\nends = [\"a\", \"s\"]\nrate_mbps = 100\n\
                   [[link]]\nends = [\"b\", \"s\"]\nrate_mbps = 100\n";
    std::fs::write(path("network.toml"), network).expect("written");
    std::fs::write(path("model.toml"), "format = 1\ntopology = \"network.toml\"\n")
        .expect("written");
    std::os::unix::fs::symlink("model.lf", path("link")).expect("a link");
    for out in
        ["model.lf", "model.toml", "network.toml", "lib/basics.lf", "link", "lib/../model.lf"]
    {
        let before = std::fs::read(path(out)).expect("a file");
        for flags in [&["import", "-o"][..], &["import", "--table"], &["bounds", "--patch"]] {
            let verb = ["lf", flags[0], "model.lf", "--with", "model.toml", flags[1], out];
            let said = run(&verb, directory.path(), 2).stderr;
            let said = String::from_utf8_lossy(&said).into_owned();
            assert!(said.contains(out) && said.contains("is read"), "{verb:?}: {said}");
        }
        assert_eq!(std::fs::read(path(out)).expect("a file"), before, "{out}");
    }
    let both = ["lf", "import", "model.lf", "--with", "model.toml", "-o", "x", "--table", "x"];
    run(&both, directory.path(), 2);
    assert!(!path("x").exists());
}
