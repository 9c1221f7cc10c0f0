"""Output directories as DataFrames."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from io import StringIO
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

_STATISTICS = ("min", "avg", "p50", "p99", "max", "stddev")
_MESSAGE_TYPES = {
    "channel": "string",
    "listener": "string",
    "sequence": "UInt64",
    **dict.fromkeys(
        (
            "capture_ns",
            "send_ns",
            "arrive_ns",
            "receive_ns",
            "latency_ns",
            "talker_wake_error_ns",
            "listener_wake_error_ns",
            "relative_wake_error_ns",
            "end_to_end_ns",
        ),
        "Int64",
    ),
    **dict.fromkeys(("late", "duplicate", "lost"), "Int8"),
}
# Columns that earlier versions did not write.
_LATER_MESSAGE_TYPES = {"queue_ns": "Int64"}
_REPETITION_TYPES = {
    "repetition": "Int64",
    "flow": "string",
    "listener": "string",
    "frames": "Int64",
    "min_ns": "Int64",
    "mean_ns": "Int64",
    "max_ns": "Int64",
}
_RESULTS_VERSIONS = (1, 2, 3)
_SIMULATION = ("onbeat-simulation", 1)
_MEASUREMENT = ("onbeat-measurement", 2)


class NotAnOutput(ValueError):  # noqa: N818 (it says what the directory is, not what went wrong)
    """A directory or file is not what Onbeat writes; the text names the file and what is wrong."""


@dataclass(frozen=True)
class Run:
    """What ``onbeat run`` left: one or more runs of a system.

    Attributes:
        path: the directory.
        document: ``results.json`` as it is (docs/results.md).
        runs: one row per run: its settings and how it ended. ``run`` is the scenario's name, or
            ``run`` where there is none; the other frames have it as their first column.
        channels: one row per run and channel: counts, statistics of latencies, bound, verdict.
        listeners: one row per run, channel and listener.
        chains: one row per run and chain.
        messages: one row per run, message and listener: ``messages.csv``.
    """

    path: Path
    document: Mapping[str, Any] = field(repr=False)
    runs: pd.DataFrame = field(repr=False)
    channels: pd.DataFrame = field(repr=False)
    listeners: pd.DataFrame = field(repr=False)
    chains: pd.DataFrame = field(repr=False)
    messages: pd.DataFrame = field(repr=False)

    @property
    def system(self) -> str:
        """The system's name."""
        return str(self.document["system"])

    def of(self, run: str, channel: str | None = None) -> pd.DataFrame:
        """Give the messages of one run, or of one of its channels."""
        chosen = self.messages["run"] == run
        if channel is not None:
            chosen &= self.messages["channel"] == channel
        return self.messages[chosen]

    def bound_ns(self, channel: str) -> int | None:
        """Give the largest bound that a channel has in any of the runs, or None without one."""
        bounds = self.channels.loc[self.channels["channel"] == channel, "bound_ns"].dropna()
        return int(bounds.max()) if len(bounds) else None


@dataclass(frozen=True)
class Simulation:
    """What ``onbeat simulate`` left.

    Attributes:
        path: the directory.
        document: ``simulation.json`` as it is (docs/simulation-results.md).
        flows: one row per flow and listener.
        ports: one row per queue of each port.
        repetitions: one row per repetition, flow and listener; empty if there was one repetition.
    """

    path: Path
    document: Mapping[str, Any] = field(repr=False)
    flows: pd.DataFrame = field(repr=False)
    ports: pd.DataFrame = field(repr=False)
    repetitions: pd.DataFrame = field(repr=False)

    @property
    def system(self) -> str:
        """The system's name."""
        return str(self.document["system"])


@dataclass(frozen=True)
class Measurement:
    """What ``onbeat measure`` left.

    Attributes:
        path: the directory.
        document: ``measurement.json`` as it is (docs/measurements.md).
        machine: what was measured.
        series: one row per series, with its figures.
        samples: the values of each series, in the order in which they were measured.
    """

    path: Path
    document: Mapping[str, Any] = field(repr=False)
    machine: Mapping[str, Any] = field(repr=False)
    series: pd.DataFrame = field(repr=False)
    samples: Mapping[str, pd.Series[int]] = field(repr=False)


def load(path: str | PathLike[str]) -> Run | Simulation | Measurement:
    """Load an output directory: of a run, of a simulation, or of a measurement.

    Raises:
        NotAnOutput: if it is none, or a file in it is damaged.
        OSError: if a file cannot be read.
    """
    directory = Path(path)
    for name, loader in (
        ("results.json", _run),
        ("simulation.json", _simulation),
        ("measurement.json", _measurement),
    ):
        if (directory / name).is_file():
            document = _document(directory / name)
            try:
                return loader(directory, document)
            except KeyError as error:
                raise NotAnOutput(f"{directory / name}: there is no {error}") from error
            except (AttributeError, OverflowError, TypeError) as error:
                what = f"a field has no such value: {error}"
                raise NotAnOutput(f"{directory / name}: {what}") from error
    raise NotAnOutput(
        f"{directory} has none of results.json, simulation.json and measurement.json: "
        "give the directory that `onbeat run --out`, `simulate --out` or `measure` wrote"
    )


def _document(file: Path) -> dict[str, Any]:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise NotAnOutput(f"{file}: {error}") from error
    if not isinstance(document, dict):
        raise NotAnOutput(f"{file}: not an object")
    return document


def _csv(
    file: Path, types: Mapping[str, str], later: Mapping[str, str] | None = None
) -> pd.DataFrame:
    try:
        text = file.read_text(encoding="utf-8")
        if not text.endswith("\n"):
            raise NotAnOutput(f"{file}: its last line is cut off")
        # A name may be "NA" or "nan"; only what is empty is missing.
        frame = pd.read_csv(
            StringIO(text), dtype={**types, **(later or {})}, keep_default_na=False, na_values=[""]
        )
    except (ValueError, OverflowError, FileNotFoundError) as error:
        raise NotAnOutput(f"{file}: {error}") from error
    missing = [column for column in types if column not in frame.columns]
    if missing:
        raise NotAnOutput(f"{file}: there is no column {', '.join(missing)}")
    return frame


def _flat(row: Mapping[str, Any], statistics: Iterable[str]) -> dict[str, Any]:
    """Spread objects of statistics over columns: latency_ns becomes latency_min_ns and so on."""
    flat = {name: value for name, value in row.items() if name not in statistics}
    for name in statistics:
        figures = row.get(name) or {}
        stem = name.removesuffix("_ns")
        flat.update({f"{stem}_{figure}_ns": figures.get(figure) for figure in _STATISTICS})
    return flat


def _frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """A DataFrame whose columns of whole numbers stay whole where values are missing."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    frame = {}
    for name in columns:
        values = [row.get(name) for row in rows]
        present = [value for value in values if value is not None]
        if present and all(type(value) is int for value in present):
            large = max(present) >= 1 << 63
            frame[name] = pd.array(values, dtype="UInt64" if large else "Int64")
        elif present and all(type(value) is bool for value in present):
            frame[name] = pd.array(values, dtype="boolean")
        elif not present and name.endswith("_ns"):
            frame[name] = pd.array(values, dtype="Int64")
        else:
            frame[name] = pd.array(values, dtype=object)
    return pd.DataFrame(frame, columns=columns)


def _run(directory: Path, document: dict[str, Any]) -> Run:
    if document["version"] not in _RESULTS_VERSIONS:
        raise NotAnOutput(f"{directory / 'results.json'}: version {document['version']}")
    runs: list[dict[str, Any]] = []
    channels: list[dict[str, Any]] = []
    listeners: list[dict[str, Any]] = []
    chains: list[dict[str, Any]] = []
    messages = []
    for number, result in enumerate(document["runs"], start=1):
        name = result["scenario"] or "run"
        ended = result["ended"]
        nested = ("channels", "chains", "network", "ended", "scenario")
        plain = {key: value for key, value in result.items() if key not in nested}
        network = (result.get("network") or {}).get("kind", "emulated")
        ending = "complete" if ended == "complete" else "early"
        runs.append({"run": name, "network": network, "ended": ending, **plain})
        for channel in result["channels"]:
            errors = channel["wakeup_error_ns"]
            wakeups = {
                f"{end}_wakeup_ns": errors[end] for end in ("talker", "listener", "relative")
            }
            row = {"run": name, "channel": channel["name"], **channel, **wakeups}
            for key in ("name", "listeners", "wakeup_error_ns"):
                del row[key]
            channels.append(_flat(row, ("latency_ns", "end_to_end_ns", *wakeups)))
            for listener in channel["listeners"]:
                row = {"run": name, "channel": channel["name"], **listener}
                spread = ("latency_ns", "wakeup_error_ns", "relative_wakeup_error_ns")
                listeners.append(_flat(row, spread))
        for chain in result["chains"]:
            row = {"run": name, "chain": chain["name"], **chain}
            del row["name"]
            chains.append(_flat(row, ("latency_ns",)))
        file = directory / f"{number}-{name}" / "messages.csv"
        frame = _csv(file, _MESSAGE_TYPES, _LATER_MESSAGE_TYPES)
        frame.insert(0, "run", pd.array([name] * len(frame), dtype="string"))
        messages.append(frame)
    return Run(
        path=directory,
        document=document,
        runs=_frame(runs),
        channels=_frame(channels),
        listeners=_frame(listeners),
        chains=_frame(chains),
        messages=pd.concat(messages, ignore_index=True) if messages else pd.DataFrame(),
    )


def _check(file: Path, document: Mapping[str, Any], wanted: tuple[str, int]) -> None:
    found = (document["format"], document["version"])
    if found != wanted:
        raise NotAnOutput(f"{file}: {found[0]}, version {found[1]}; this reads {wanted}")


def _simulation(directory: Path, document: dict[str, Any]) -> Simulation:
    _check(directory / "simulation.json", document, _SIMULATION)
    flows = []
    for flow in document["flows"]:
        shared = {key: value for key, value in flow.items() if key not in ("name", "listeners")}
        for listener in flow["listeners"]:
            row = {"flow": flow["name"], **shared, **listener}
            latency = row.pop("latency_ns") or {}
            row |= {f"latency_{key}_ns": latency.get(key) for key in ("min", "mean", "max")}
            flows.append(row)
    ports = [
        {**{key: value for key, value in port.items() if key != "queues"}, **queue}
        for port in document["ports"]
        for queue in port["queues"]
    ]
    file = directory / "repetitions.csv"
    empty = pd.DataFrame(
        {name: pd.array([], dtype=kind) for name, kind in _REPETITION_TYPES.items()}
    )
    return Simulation(
        path=directory,
        document=document,
        flows=_frame(flows),
        ports=_frame(ports),
        repetitions=_csv(file, _REPETITION_TYPES) if file.is_file() else empty,
    )


def _measurement(directory: Path, document: dict[str, Any]) -> Measurement:
    _check(directory / "measurement.json", document, _MEASUREMENT)
    rows = [
        {key: value for key, value in series.items() if not isinstance(value, dict | list)}
        for series in document["series"]
    ]
    samples = {}
    for series in document["series"]:
        name = series["name"]
        if Path(name).name != name:
            raise NotAnOutput(
                f"{directory / 'measurement.json'}: series {name!r} is no file's name"
            )
        column = _csv(directory / "samples" / f"{name}.csv", {"value_ns": "int64"})["value_ns"]
        samples[name] = column.rename(name)
    return Measurement(
        path=directory,
        document=document,
        machine=document.get("machine") or {},
        series=_frame(rows),
        samples=samples,
    )
