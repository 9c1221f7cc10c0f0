#!/usr/bin/env python3
"""The Atacama hardware in simulation: latencies, spread, robustness, attacks, a waveform.

Builds the network bench of `rtl/bench`, and `onbeat`, where they are needed, runs the experiments
that are named (all if none is), and writes their data and pictures into `results`. `README.md` says
what they show.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import attacks  # noqa: E402
import chart  # noqa: E402
import experiments  # noqa: E402
import model  # noqa: E402
import policies_chart  # noqa: E402
import waveform  # noqa: E402
from common import ROOT, run, say  # noqa: E402

RESULTS = Path(__file__).resolve().parent / "results"
# Of the two streams of the fourth picture: 5 to 107 Mbit/s each. All are frames of whole words.
OCTETS = (70, 130, 258, 514, 802, 1102, 1502)
QUICK_OCTETS = (70, 514, 1502)


def measure(name: str, chosen: argparse.Namespace) -> list | dict:
    """The data of one experiment."""
    quick = chosen.quick
    if name == "latency":
        return experiments.latency()
    if name == "table":
        return experiments.table_1(25 if quick else 100)
    if name == "spread":
        return experiments.spread(100 if quick else 1000, 2 if quick else 8)
    if name == "robustness":
        octets = QUICK_OCTETS if quick else OCTETS
        frames = chosen.frames or (50 if quick else 10_000)
        return experiments.figure_4(frames, octets, tuple(experiments.POLICIES))
    if name == "policies":
        frames = chosen.frames or (14_000 if quick else 10_000_000)
        return model.figure_4(frames, QUICK_OCTETS if quick else OCTETS, hardware())
    if name == "attacks":
        return attacks.all_attacks()
    return waveform.cut()


def hardware() -> list:
    """The last result of `robustness`, of policies that the engine has."""
    data = RESULTS / "robustness.json"
    rows = json.loads(data.read_text(encoding="utf-8")) if data.exists() else []
    return [row for row in rows if row["policy"] in model.DEDICATED]


def as_lines(found: object) -> str:
    """JSON with a line for each member of the outermost object or array."""
    if isinstance(found, list):
        return "[\n" + ",\n".join(json.dumps(member) for member in found) + "\n]\n"
    members = (f"{json.dumps(key)}: {json.dumps(value)}" for key, value in found.items())
    return "{\n" + ",\n".join(members) + "\n}\n"


EXPERIMENTS = ("latency", "table", "spread", "robustness", "policies", "attacks", "waveform")


def build(names: set[str]) -> None:
    """What these experiments execute."""
    if "policies" in names:
        words = ["cargo", "build", "--release", "--locked", "-p", "onbeat-cli"]
        subprocess.run(words, cwd=ROOT, check=True)
    if names != {"policies"}:
        subprocess.run(["make", "--no-print-directory", "-C", ROOT / "rtl", "bench"], check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("experiments", nargs="*", help=f"of {', '.join(EXPERIMENTS)}")
    parser.add_argument("--quick", action="store_true", help="few frames; minutes in all")
    parser.add_argument("--frames", type=int,
                        help="of each point of `robustness`, of each policy of `policies`")
    parser.add_argument("--draw", action="store_true", help="only pictures, of what is in results")
    chosen = parser.parse_args()
    unknown = set(chosen.experiments).difference(EXPERIMENTS)
    if unknown:
        parser.error(f"unknown: {' '.join(sorted(unknown))}")
    RESULTS.mkdir(exist_ok=True)
    names = chosen.experiments or EXPERIMENTS
    if not chosen.draw:
        build(set(names))
    for name in names:
        data = RESULTS / f"{name}.json"
        if not chosen.draw:
            start = time.monotonic()
            found = measure(name, chosen)
            data.write_text(as_lines(found), encoding="utf-8")
            say(f"{name}: {time.monotonic() - start:.0f} s")
        if data.exists():
            found = json.loads(data.read_text(encoding="utf-8"))
            if name == "policies":
                policies_chart.draw(found, hardware(), RESULTS)
            else:
                chart.draw(name, found, RESULTS)
    return 0


if __name__ == "__main__":
    run("atacama", main)
