#!/usr/bin/env python3
"""How fast the engine simulates, beside ns-3, and how it grows with hosts, streams and load.

Builds `crates/net/benches/scale.rs` and, if ns-3 is there, `ns3.cc`: the same tree of bridges with
the same periodic frames. Runs both in turn, round by round; then the engine alone over a range of
sizes. Prints tables; writes all figures as JSON and a chart as SVG. `../README.md` says how to read
it.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import common  # noqa: E402
from chart import chart  # noqa: E402
from common import ROOT, TARGET, Missing, command, say, table  # noqa: E402

OUT = TARGET / "simulation"
DEBIAN = ["g++", "libns3-dev"]
NS3_LIBRARIES = ["applications", "bridge", "csma", "internet", "network", "core"]

Figures = dict[str, float]

FRAME = 1_000
WIRE_BITS = (FRAME + 20) * 8
# What is kept while another one grows.
BASE = {"hosts": 1_000, "streams": 1_000, "load": 50, "mbps": 10_000}
SWEEPS = {
    "hosts": [10, 30, 100, 300, 1_000],
    "streams": [10, 30, 100, 300, 1_000, 3_000, 10_000],
    "load": [10, 30, 50, 70, 90],
}
# What both simulators get: small enough for everybody's caches, and large.
TREES = [
    {"hosts": 16, "hosts_per_leaf": 4, "streams": 16, "load": 50, "mbps": 1_000},
    {"hosts": 100, "hosts_per_leaf": 10, "streams": 100, "load": 50, "mbps": 10_000},
    {"hosts": 1_000, "hosts_per_leaf": 10, "streams": 1_000, "load": 50, "mbps": 10_000},
]
# 1,000 hosts on 10 Gb/s links for 10 s.
WHOLE = {"hosts": 1_000, "streams": 1_000, "load": 10, "mbps": 10_000, "us": 10_000_000}
LIMITS = [("events", 5e6), ("hops", 1e6)]


# --- building -----------------------------------------------------------------------------------


def build_scale() -> Path:
    """The engine's benchmark, as cargo says where it is."""
    words = ["cargo", "bench", "--locked", "--quiet", "-p", "onbeat-net", "--bench", "scale"]
    lines = command([*words, "--no-run", "--message-format=json"], cwd=ROOT).splitlines()
    programs = [json.loads(line).get("executable") for line in lines]
    return Path(next(program for program in programs if program))


def build_ns3() -> Path:
    OUT.mkdir(parents=True, exist_ok=True)
    libraries = [f"-lns3-{name}" for name in NS3_LIBRARIES]
    flags = ["-std=c++17", "-O2", "-Wall", "-o", OUT / "ns3"]
    command(["c++", *flags, HERE / "ns3.cc", *libraries])
    return OUT / "ns3"


# --- running ------------------------------------------------------------------------------------


def measure(binary: Path, settings: Figures) -> Figures:
    """One run, with its rates on a core of its own: by CPU time, of which others take nothing."""
    words = [f"{name}={value}" for name, value in settings.items()]
    figures = json.loads(command([binary, *words]))
    rates = {f"{key}_per_s": figures[key] / figures["cpu_s"] for key in ("events", "hops")}
    return figures | rates


def lasting(settings: Figures, frames: int, leaves: int) -> Figures:
    """The settings, with as much time as so many frames take."""
    bits_per_us = settings["load"] * settings["mbps"] * leaves / 100
    return settings | {"frame": FRAME, "us": round(frames * WIRE_BITS / bits_per_us)}


def beside(scale: Path, ns3: Path | None, tree: Figures, rounds: int, frames: int) -> dict:
    """Both simulators on one tree in turn, every other round in reverse."""
    leaves = tree["hosts"] // tree["hosts_per_leaf"] // 2
    ours = lasting(tree, frames, leaves) | {"one_way": 1}
    interval = measure(scale, ours | {"us": 1_000})["interval_ns"]
    theirs = {key: value for key, value in ours.items() if key not in ("load", "one_way")}
    ways = {
        "gates and CBS": (scale, ours | {"shapers": 2}),
        "strict priority": (scale, ours | {"shapers": 0}),
    }
    if ns3:
        ways["ns-3"] = (ns3, theirs | {"interval_ns": interval})
    results: dict[str, list[Figures]] = {name: [] for name in ways}
    for number in range(rounds):
        say(f"{tree['hosts']} hosts, round {number + 1} of {rounds}")
        for name in list(ways)[:: 1 if number % 2 == 0 else -1]:
            results[name].append(measure(*ways[name]))
    return results


def sweep(scale: Path, name: str, rounds: int, frames: int) -> list[Figures]:
    """One size after the other; of each the fastest run, which was disturbed least."""
    rows = []
    for value in SWEEPS[name]:
        settings = BASE | {name: value}
        if name == "hosts":
            settings["streams"] = value
        leaves = max(2, settings["hosts"] // 10)
        settings = lasting(settings, frames, min(leaves, settings["streams"]))
        say(f"{value} {name}")
        runs = [measure(scale, settings) for _ in range(rounds)]
        rows.append(min(runs, key=lambda run: run["cpu_s"]))
    return rows


# --- telling ------------------------------------------------------------------------------------


def millions(per_s: float) -> str:
    return f"{per_s / 1e6:.2f}"


def beside_table(trees: list[tuple[Figures, dict[str, list[Figures]]]]) -> str:
    head = ["hosts", "", "M hops/s", "M events/s", "MiB", "to ns-3", "range"]
    rows = []
    for tree, results in trees:
        for name, runs in results.items():
            keys = ("hops_per_s", "events_per_s")
            rates = [millions(median(run[key] for run in runs)) for key in keys]
            pairs = zip(runs, results.get("ns-3", []), strict=False)
            ratios = [one["hops_per_s"] / other["hops_per_s"] for one, other in pairs]
            told = [f"{median(ratios):.1f}", f"{min(ratios):.1f} to {max(ratios):.1f}"]
            peak = f"{median(run['peak_kib'] for run in runs) / 1024:.1f}"
            rows.append([str(tree["hosts"]), name, *rates, peak, *(told if ratios else ["-", "-"])])
    return table(head, rows)


def sweep_table(name: str, rows: list[Figures]) -> str:
    head = [name, "simulated ms", "s", "CPU s", "M events/s", "M hops/s", "MiB", "longest us"]
    cells = [
        [
            f"{row[name]:,}",
            f"{row['simulated_us'] / 1000:.1f}",
            f"{row['seconds']:.2f}",
            f"{row['cpu_s']:.2f}",
            millions(row["events_per_s"]),
            millions(row["hops_per_s"]),
            f"{row['peak_kib'] / 1024:.1f}",
            f"{row['longest_ns'] / 1000:.1f}",
        ]
        for row in rows
    ]
    return table(head, cells)


def limits(runs: list[Figures]) -> str:
    """What was wanted of the least of all runs with gates and shapers."""
    rows = []
    for key, wanted in LIMITS:
        got = min(run[f"{key}_per_s"] for run in runs)
        rows.append([key, millions(wanted), millions(got), "kept" if got >= wanted else "not kept"])
    return table(["million a second", "wanted", "least", ""], rows)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--frames", type=int, default=500_000, help="of one run")
    parser.add_argument("--quick", action="store_true", help="2 rounds of 100,000 frames")
    parser.add_argument("--whole", action="store_true", help="1,000 hosts for 10 s, too: minutes")
    parser.add_argument("--install", action="store_true", help="install ns-3's Debian packages")
    parser.add_argument("--json", type=Path, default=OUT / "result.json")
    parser.add_argument("--svg", type=Path, default=OUT / "simulation.svg")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.rounds, chosen.frames = 2, 100_000
    return chosen


def main() -> int:
    chosen = options()
    if chosen.install:
        command(["apt-get", "install", "--yes", "--no-install-recommends", *DEBIAN])
    say("building")
    scale, ns3, missing = build_scale(), None, ""
    try:
        ns3 = build_ns3()
    except Missing as reason:
        missing = f"ns-3: not built: {reason}; Debian's comes with --install"
    OUT.mkdir(parents=True, exist_ok=True)
    machine = common.machine()
    trees = [(tree, beside(scale, ns3, tree, chosen.rounds, chosen.frames)) for tree in TREES]
    sweeps = {name: sweep(scale, name, chosen.rounds, chosen.frames) for name in SWEEPS}
    whole = measure(scale, WHOLE) if chosen.whole else None
    say("")
    print("by CPU time of one core; ns-3 has neither gates nor shapers: one queue a device\n")
    print(beside_table(trees), "\n")
    for name, rows in sweeps.items():
        print(sweep_table(name, rows), "\n")
    if whole:
        print("1,000 hosts, 10 Gb/s, 10 s\n\n" + sweep_table("hosts", [whole]), "\n")
    print(limits([row for rows in sweeps.values() for row in rows]))
    print(missing or f"load average {machine['load']:.1f} at the start")
    result = {"machine": machine, "missing": missing, "sweeps": sweeps, "whole": whole}
    result["beside"] = [{"tree": tree, "runs": results} for tree, results in trees]
    chosen.json.write_text(json.dumps(result, indent=1) + "\n")
    chosen.svg.write_text(chart(sweeps))
    print(f"all runs: {chosen.json}; chart: {chosen.svg}")
    return 0


if __name__ == "__main__":
    common.run("simulation", main)
