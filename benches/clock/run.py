#!/usr/bin/env python3
"""What `onbeat measure` says that reading a clock costs, beside a bare loop in C.

In turn on one core at one priority, round by round. `../README.md` says how to read it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import common  # noqa: E402
from common import PROFILE, ROOT, TARGET, command, say, table  # noqa: E402

OUT = TARGET / "clock"
GOAL = 0.1
FIGURES = ("min", "avg", "p50", "p99")
# Series of `onbeat measure`, and what the loop in C is called with for the same.
SERIES = {
    "clock.lc": ("clock", "lc", "-"),
    "clock.gc": ("clock", "gc", "-"),
    "clock.tai": ("clock", "tai", "-"),
    "cross.lc_by_gc": ("cross", "gc", "lc"),
    "cross.gc_by_lc": ("cross", "lc", "gc"),
}
Round = dict[str, dict[str, float]]


def onbeat() -> Path:
    """Builds the command."""
    command(["cargo", "build", "--profile", PROFILE, "--locked", "--quiet", "-p", "onbeat-cli"], cwd=ROOT)
    return TARGET / PROFILE / "onbeat"


def ours(binary: Path, chosen: argparse.Namespace, priority: int) -> Round:
    """The figures of all series as Onbeat measures them."""
    how = [f"--samples={chosen.samples}", f"--cpu={chosen.core}", f"--priority={priority}"]
    found: Round = {}
    for test in ("clock", "cross"):
        document = json.loads(command([binary, "measure", test, "--json", *how]))
        for series in document["series"]:
            found[series["name"]] = {name: float(series[name]) for name in FIGURES}
    return found


def bare(binary: Path, chosen: argparse.Namespace, priority: int) -> Round:
    """The same by the loop in C."""
    found: Round = {}
    for name, (_, outer, inner) in SERIES.items():
        words = [binary, outer, inner, str(chosen.samples), str(chosen.core), str(priority)]
        figures = command(words).split()
        found[name] = dict(zip(FIGURES, map(float, figures), strict=True))
    return found


def may_have(priority: int) -> bool:
    """Whether this process may ask for a real-time priority."""
    return subprocess.run(["chrt", "--fifo", str(priority), "true"], check=False,
                          capture_output=True).returncode == 0


def rows(rounds: list[tuple[Round, Round]]) -> list[list[str]]:
    """A line for each series and figure; kept or not by the median of the rounds' ratios."""
    found = []
    for name in SERIES:
        for figure in FIGURES:
            mine = [r[0][name][figure] for r in rounds]
            theirs = [r[1][name][figure] for r in rounds]
            ratios = [a / b for a, b in zip(mine, theirs, strict=True)]
            middle = median(ratios)
            judged = figure != "p99"  # it is made of what else the machine does
            kept = ("yes" if abs(middle - 1) <= GOAL else "no") if judged else "-"
            found.append([f"{name} {figure}", f"{median(mine):.1f}", f"{median(theirs):.1f}",
                          f"{middle:.3f}", f"{min(ratios):.2f} to {max(ratios):.2f}", kept])
    return found


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--samples", type=int, default=200_000, help="each series of a round")
    parser.add_argument("--fifo", type=int, default=99, help="SCHED_FIFO priority, 0: none")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--binary", type=Path, help="an onbeat that is built already")
    parser.add_argument("--json", type=Path, default=OUT / "result.json")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.rounds, chosen.samples = 3, 50_000
    return chosen


def main() -> int:
    chosen = options()
    say("building")
    OUT.mkdir(parents=True, exist_ok=True)
    priority = chosen.fifo if chosen.fifo and may_have(chosen.fifo) else 0
    if chosen.fifo and not priority:
        say("the system grants no real-time priority: both run without")
    binary = chosen.binary or onbeat()
    loop = common.compile_c(OUT / "bare", [HERE / "bare.c"])
    rounds = []
    for number in range(chosen.rounds):
        say(f"round {number + 1} of {chosen.rounds}")
        if number % 2 == 0:
            mine = ours(binary, chosen, priority)
            theirs = bare(loop, chosen, priority)
        else:  # every other round in reverse
            theirs = bare(loop, chosen, priority)
            mine = ours(binary, chosen, priority)
        rounds.append((mine, theirs))
    class_ = f"SCHED_FIFO {priority}" if priority else "no real-time priority"
    print(f"\ncore {chosen.core}, {class_}, {chosen.rounds} rounds of {chosen.samples} samples\n")
    head = ["ns", "onbeat", "bare C", "ratio", "over the rounds", "within 10 %"]
    print(table(head, rows(rounds)))
    result = {"machine": common.machine(), "fifo": priority, "samples": chosen.samples,
              "rounds": [{"onbeat": mine, "bare": theirs} for mine, theirs in rounds]}
    chosen.json.write_text(json.dumps(result, indent=1) + "\n")
    print(f"\nall figures: {chosen.json}")
    return 0


if __name__ == "__main__":
    common.run("clock", main)
