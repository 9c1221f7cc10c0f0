"""What is loaded is what the files say."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest

import onbeat


def test_the_frames_of_a_run_have_all_messages_and_figures(run_directory: Path) -> None:
    run = onbeat.load(run_directory)
    assert isinstance(run, onbeat.Run)
    document = json.loads((run_directory / "results.json").read_text())
    assert run.system == document["system"] == "two-hosts"
    assert list(run.runs["run"]) == [r["scenario"] for r in document["runs"]]
    for number, result in enumerate(document["runs"], start=1):
        scenario, channel = result["scenario"], result["channels"][0]
        with (run_directory / f"{number}-{scenario}" / "messages.csv").open() as file:
            lines = list(csv.DictReader(file))
        messages = run.of(scenario, "mcast42")
        assert len(messages) == len(lines)
        latencies = [int(line["latency_ns"]) for line in lines if line["latency_ns"]]
        assert list(messages["latency_ns"].dropna()) == latencies
        row = run.channels[run.channels["run"] == scenario].iloc[0]
        assert row["latency_max_ns"] == max(latencies) == channel["latency_ns"]["max"]
        assert row["received"] == channel["received"] == len(latencies)
        assert row["talker_wakeup_max_ns"] == channel["wakeup_error_ns"]["talker"]["max"]
        assert row["verdict"] == channel["verdict"]
    protected = run.channels[run.channels["run"] == "protected"].iloc[0]
    assert run.bound_ns("mcast42") == protected["bound_ns"]
    assert run.bound_ns("nothing") is None
    assert len(run.listeners) == len(run.channels)


def test_times_stay_whole_where_some_are_missing(run_directory: Path, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run_directory, copy)
    file = copy / "1-unprotected" / "messages.csv"
    lines = file.read_text().splitlines()
    # More digits than a double has, and a message that was lost.
    lines[1] = "mcast42,listener,0,1700000000123456789,,,,,,,,,,1"
    file.write_text("\n".join(lines) + "\n")
    messages = onbeat.load(copy).of("unprotected")
    assert messages["capture_ns"].iloc[0] == 1_700_000_000_123_456_789
    assert messages["latency_ns"].dtype == "Int64"
    assert messages["queue_ns"].dtype == "Int64"
    assert messages["latency_ns"].isna().iloc[0]


def test_a_simulation_has_flows_ports_and_repetitions(simulation_directory: Path) -> None:
    simulation = onbeat.load(simulation_directory)
    assert isinstance(simulation, onbeat.Simulation)
    flow = simulation.flows.iloc[0]
    assert (flow["flow"], flow["host"]) == ("mcast42", "listener")
    assert set(simulation.ports["queue"]) <= set(range(8))
    repetitions = simulation.repetitions
    assert list(repetitions["repetition"]) == [0, 1, 2, 3, 4]
    assert repetitions["max_ns"].max() == flow["latency_max_ns"]
    assert repetitions["frames"].sum() == flow["frames"]


def measurement(directory: Path, **more: object) -> Path:
    """Write a measurement as docs/measurements.md describes it."""
    values = [71, 75, 70, 13_000]
    series = {"name": "clock.lc", "count": 4, "min": 70, "max": 13_000, "histogram": []}
    document = {"format": "onbeat-measurement", "version": 2, "machine": {"kernel": "6.18"}}
    document |= {"series": [series], **more}
    (directory / "samples").mkdir(parents=True)
    (directory / "measurement.json").write_text(json.dumps(document))
    lines = ["value_ns", *map(str, values)]
    (directory / "samples/clock.lc.csv").write_text("\n".join(lines) + "\n")
    return directory


def test_a_measurement_has_its_samples_in_their_order(tmp_path: Path) -> None:
    measured = onbeat.load(measurement(tmp_path / "measured"))
    assert isinstance(measured, onbeat.Measurement)
    assert list(measured.samples["clock.lc"]) == [71, 75, 70, 13_000]
    assert measured.machine["kernel"] == "6.18"
    assert list(measured.series["max"]) == [13_000]


def test_what_is_no_output_is_named(run_directory: Path, tmp_path: Path) -> None:
    with pytest.raises(onbeat.NotAnOutput, match=r"results\.json"):
        onbeat.load(tmp_path)
    with pytest.raises(onbeat.NotAnOutput, match="version 9"):
        onbeat.load(measurement(tmp_path / "newer", version=9))
    with pytest.raises(onbeat.NotAnOutput, match="no file's name"):
        onbeat.load(measurement(tmp_path / "away", series=[{"name": "../../etc/passwd"}]))
    with pytest.raises(onbeat.NotAnOutput, match="a field has no such value"):
        onbeat.load(measurement(tmp_path / "none", series=None))
    with pytest.raises(onbeat.NotAnOutput, match="there is no 'name'"):
        onbeat.load(measurement(tmp_path / "nameless", series=[{}]))
    broken = tmp_path / "broken"
    shutil.copytree(run_directory, broken)
    (broken / "1-unprotected/messages.csv").write_text("channel,listener\na,b\n")
    with pytest.raises(onbeat.NotAnOutput, match=r"messages\.csv.*sequence"):
        onbeat.load(broken)
    messages = broken / "1-unprotected/messages.csv"
    whole = (run_directory / "1-unprotected/messages.csv").read_text()
    messages.write_text(whole[: len(whole) // 2].rstrip("\n"))
    with pytest.raises(onbeat.NotAnOutput, match=r"messages\.csv.*cut off"):
        onbeat.load(broken)
    messages.unlink()
    with pytest.raises(onbeat.NotAnOutput, match=r"messages\.csv"):
        onbeat.load(broken)
    large = (run_directory / "results.json").read_text().replace('"seed": ', '"seed": 99', 1)
    (broken / "results.json").write_text(large.replace('"sent": ', f'"sent": {10**30}', 1))
    messages.write_text(whole)
    with pytest.raises(onbeat.NotAnOutput, match=r"results\.json"):
        onbeat.load(broken)
    (broken / "results.json").write_text("{")
    with pytest.raises(onbeat.NotAnOutput, match=r"results\.json"):
        onbeat.load(broken)
