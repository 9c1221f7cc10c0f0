#!/usr/bin/env python3
"""How exactly Timed C wakes up, how soon it aborts, and what a timing point costs.

Beside cyclictest at the same priority and a loop written by hand around clock_nanosleep, in turn
on one core, round by round. `../README.md` says how to read it.
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

import chart  # noqa: E402
import common  # noqa: E402
from common import (  # noqa: E402
    PROFILE,
    ROOT,
    TARGET,
    Missing,
    command,
    cyclictest,
    percentile,
    say,
    table,
)

OUT = TARGET / "timedc"
WAKE_GOAL, COST_GOAL = 1.1, 1.3
# The first wake-ups are of a thread that has just been made.
SKIPPED = 100
POINTS = ("sdelay", "fdelay")


# --- building -----------------------------------------------------------------------------------


def onbeat() -> Path:
    """Builds the compiler and the libraries that programs are linked with."""
    packages = ["-p", "onbeat-cli", "-p", "onbeat-capi"]
    command(["cargo", "build", "--profile", PROFILE, "--locked", "--quiet", *packages], cwd=ROOT)
    for directory in ("compat", "timedc"):
        command(["make", "--no-print-directory", "-C", ROOT / directory])
    return TARGET / PROFILE / "onbeat"


def build(compiler: Path, priority: int, wakes: int, aborts: int, points: int) -> dict[str, Path]:
    """The programs by name."""
    OUT.mkdir(parents=True, exist_ok=True)
    fifo = f"-DPRIORITY={priority}"
    period = "-DPERIOD_US=200"
    wanted = {
        "sleep": ("sleep.c", [f"-DROUNDS={wakes + SKIPPED}"]),
        "abort": ("abort.c", [f"-DROUNDS={aborts}"]),
    }
    for point in POINTS:
        wanted[point] = ("cost.c", [f"-DPOINT={point}", f"-DROUNDS={points}", period])
    for name, (source, flags) in wanted.items():
        command([compiler, "cc", "-O2", fifo, *flags, HERE / source, "-o", OUT / name])
    bare = common.compile_c(OUT / "bare", [HERE / "bare.c"], fifo, f"-DROUNDS={points}", period)
    return {name: OUT / name for name in wanted} | {"bare": bare}


# --- running ------------------------------------------------------------------------------------


def samples(words: list[str | Path], binary: Path) -> list[dict[str, str]]:
    """The rows that the run time has measured."""
    rows = OUT / "samples.csv"
    rows.unlink(missing_ok=True)
    command([*words, binary], env=os.environ | {"ONBEAT_MEASURE": str(rows)})
    head, *lines = rows.read_text().splitlines()
    names = head.split(",")
    return [dict(zip(names, line.split(","), strict=True)) for line in lines]


def wake_errors(words: list[str | Path], binary: Path) -> list[int]:
    """Of the releases but the first ones: how much later than asked for, in ns."""
    rows = [row for row in samples(words, binary) if not row["src"].endswith(":start")]
    return [int(row["release_jitter_ns"]) for row in rows][SKIPPED:]


def cost(words: list[str | Path], binary: Path, points: int) -> tuple[float, float]:
    """Processor time and lateness at the end, in ns for each round of 200 us."""
    cpu, wall = map(int, command([*words, binary]).split())
    return cpu / points, wall / points - 200_000


def may_have(priority: int) -> bool:
    """Whether this process may ask for a real-time priority."""
    return subprocess.run(["chrt", "--fifo", str(priority), "true"], check=False,
                          capture_output=True).returncode == 0


# --- figures ------------------------------------------------------------------------------------


def of_goal(ratios: list[float], goal: float) -> list[str]:
    """The median of the rounds' ratios, their range, and whether the goal was reached."""
    middle = median(ratios)
    kept = "yes" if middle <= goal else "no"
    return [f"{middle:.2f}", f"{min(ratios):.2f} to {max(ratios):.2f}", f"{goal}", kept]


def wake_table(rounds: list[dict[str, list[int]]]) -> tuple[str, dict[str, object]]:
    rows, result = [], {}
    for part, name in ((0.5, "p50"), (0.99, "p99"), (1.0, "max")):
        figures = {
            who: [percentile(r[who], part) for r in rounds] for who in ("sdelay", "cyclictest")
        }
        ratios = [a / b for a, b in zip(figures["sdelay"], figures["cyclictest"], strict=True)]
        shown = [f"{median(f) / 1000:.2f}" for f in figures.values()]
        goal = of_goal(ratios, WAKE_GOAL) if name != "max" else [*of_goal(ratios, 0)[:2], "-", "-"]
        rows.append([name, *shown, *goal])
        result[name] = figures | {"ratios": ratios}
    head = ["wake-up error", "sdelay us", "cyclictest", "ratio", "over the rounds", "goal", "kept"]
    return table(head, rows), result


def cost_table(rounds: list[dict[str, tuple[float, float]]]) -> tuple[str, dict[str, object]]:
    rows = []
    for who in ("bare", *POINTS):
        cpu, late = ([r[who][at] for r in rounds] for at in (0, 1))
        ratios = [r[who][0] / r["bare"][0] for r in rounds]
        goal = of_goal(ratios, COST_GOAL) if who != "bare" else ["1", "-", "-", "-"]
        rows.append([who, f"{median(cpu):.0f}", f"{median(late):.1f}", *goal])
    head = ["a round", "cpu ns", "wall ns more", "cpu ratio", "over the rounds", "goal", "kept"]
    return table(head, rows), {"rounds_cpu_late_ns": rounds}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--wakes", type=int, default=5000, help="each of a round, a millisecond")
    parser.add_argument("--points", type=int, default=10000, help="each of a round, 200 us")
    parser.add_argument("--aborts", type=int, default=20000, help="in all, two milliseconds each")
    parser.add_argument("--fifo", type=int, default=80, help="SCHED_FIFO priority, 0: none")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--json", type=Path, default=OUT / "result.json")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.rounds, chosen.wakes, chosen.points, chosen.aborts = 3, 1000, 3000, 3000
    return chosen


def main() -> int:
    chosen = options()
    say("building")
    priority = chosen.fifo if chosen.fifo and may_have(chosen.fifo) else 0
    if chosen.fifo and not priority:
        say("the system grants no real-time priority: all run without")
    compiler = onbeat()
    programs = build(compiler, priority, chosen.wakes, chosen.aborts, chosen.points)
    words: list[str | Path] = ["taskset", "--cpu-list", str(chosen.core)]
    wakes: list[dict[str, list[int]]] = []
    costs: list[dict[str, tuple[float, float]]] = []
    for number in range(chosen.rounds):
        say(f"round {number + 1} of {chosen.rounds}")
        turn = 1 if number % 2 == 0 else -1  # every other round in reverse
        ways = {
            "sdelay": lambda: wake_errors(words, programs["sleep"]),
            "cyclictest": lambda: cyclictest(words, priority, chosen.wakes),
        }
        wakes.append({who: ways[who]() for who in list(ways)[::turn]})
        who_cost = ("bare", *POINTS)[::turn]
        costs.append({w: cost(words, programs[w], chosen.points) for w in who_cost})
    say("aborts")
    aborted = [int(r["abort_ns"]) for r in samples(words, programs["abort"]) if r["abort_ns"]]
    class_ = f"SCHED_FIFO {priority}" if priority else "no real-time priority"
    print(f"\ncore {chosen.core}, {class_}, {chosen.rounds} rounds\n")
    wake_text, wake_result = wake_table(wakes)
    cost_text, cost_result = cost_table(costs)
    print(f"{wake_text}\n\n{cost_text}\n")
    latency = {p: percentile(aborted, part) / 1000
               for p, part in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0))}
    shown = ", ".join(f"{name} {us:.2f}" for name, us in latency.items())
    print(f"abort latency, deadline to control at the point, {len(aborted)} aborts, us: {shown}\n")
    print(chart.text(aborted))
    picture = OUT / "aborts.svg"
    about = f"abort latency in us, {len(aborted)} aborts of a computing task, {class_}"
    picture.write_text(chart.svg(aborted, about))
    result = {"machine": common.machine(), "fifo": priority, "wake": wake_result,
              "cost": cost_result, "abort_us": latency, "aborts": len(aborted)}
    chosen.json.write_text(json.dumps(result, indent=1) + "\n")
    print(f"\nall figures: {chosen.json}; picture: {picture}")
    return 0


if __name__ == "__main__":
    common.run("timedc", main)
