#!/usr/bin/env python3
"""How exactly two programs that meet over two channels wake up together.

Runs both in namespaces joined by a veth pair. In each round they work for pseudo-random times,
meet (`onbeat_rendezvous`), work again, and sleep with `clock_nanosleep` to an instant that both
know: the baseline, in the same run. Prints each side's error and the relative one, beside the
figures of Austad et al. 2023, Table 8. `../README.md` says how to read it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from statistics import fmean, pstdev

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import common  # noqa: E402
from common import READY_S, TARGET, Missing, Network, Place, network, say, table  # noqa: E402

OUT = TARGET / "rendezvous"
# Of the rounds, so many must have been met by both: one lost message makes one side wait for the
# next, and the rounds do not belong together any more.
JOINED_MIN = 0.9
# Table 8 in us: max, avg, sd. Two hosts, each with its own clock kept by gPTP.
PAPER = {
    "talker": (-7.9, -2.1, 0.38),
    "listener": (-17.4, -2.3, 0.7),
    "relative": (15.3, 0.25, 0.8),
}
FIELDS = ("round", "peer_round", "met_ns", "met_error_ns", "slept_ns", "slept_error_ns")

Sample = dict[str, int]


def start(words: list[str | Path]) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    command = [str(word) for word in words]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def run_both(
    binary: Path, rounds: int, period_ns: int, net: Network, place: Place
) -> list[list[Sample]]:
    """The talker's and the listener's samples."""
    on = place.words(paced=True)
    words = [str(rounds), str(period_ns)]
    sides = [
        start([*net.talker, *on[0], binary, "talker", *words]),
        start([*net.listener, *on[1], binary, "listener", *words]),
    ]
    # A round takes the period and some work; twice that is a failure.
    limit_s = READY_S + rounds * (period_ns + 1_000_000) * 2 / 1e9
    try:
        for side in sides:
            common.wait_until_ready(side, "a side")
        for side in sides:
            assert side.stdin is not None
            side.stdin.write("\n")
            side.stdin.flush()
        ends = [side.communicate(timeout=limit_s) for side in sides]
    except subprocess.TimeoutExpired:
        raise Missing("the two did not meet to the end: was a message lost?") from None
    finally:
        for side in sides:
            side.kill()
            side.wait()
    for side, (_, errors) in zip(sides, ends, strict=True):
        if side.returncode:
            raise Missing(errors.strip() or f"exit status {side.returncode}")
    return [
        [dict(zip(FIELDS, map(int, line.split()), strict=True)) for line in output.splitlines()]
        for output, _ in ends
    ]


def joined(sides: list[list[Sample]]) -> list[tuple[Sample, Sample]]:
    """The rounds in which each had the other's message of the same meeting."""
    theirs = {sample["round"]: sample for sample in sides[1]}
    pairs = ((mine, theirs.get(mine["peer_round"])) for mine in sides[0])
    return [(a, b) for a, b in pairs if b and b["peer_round"] == a["round"]]


def columns(pairs: list[tuple[Sample, Sample]], what: str) -> dict[str, list[float]]:
    """In us: target minus wake-up of both sides, and the talker's wake-up minus the listener's."""
    return {
        "talker": [a[f"{what}_error_ns"] / 1000 for a, _ in pairs],
        "listener": [b[f"{what}_error_ns"] / 1000 for _, b in pairs],
        "relative": [(a[f"{what}_ns"] - b[f"{what}_ns"]) / 1000 for a, b in pairs],
    }


def summary(errors: list[float]) -> dict[str, float]:
    """`p99` and `worst` are of the size, without the sign; `worst` shows the sign."""
    sizes = sorted(map(abs, errors))
    return {
        "min": min(errors),
        "max": max(errors),
        "worst": max(errors, key=abs),
        "avg": fmean(errors),
        "sd": pstdev(errors),
        "p50": sizes[len(sizes) // 2],
        "p99": sizes[min(len(sizes) * 99 // 100, len(sizes) - 1)],
    }


def report(results: dict[str, dict[str, dict[str, float]]]) -> str:
    keys = ("worst", "avg", "sd", "min", "max", "p50", "p99")
    head = ["", "error", "worst us", "avg", "sd", "min", "max", "p50 size", "p99 size", ""]
    rows = []
    for which in ("talker", "listener", "relative"):
        for how, of in results.items():
            rows.append([how, which, *(f"{of[which][key]:.2f}" for key in keys), ""])
        paper = [f"{value:.2f}" for value in PAPER[which]]
        rows.append(["Austad et al. 2023", which, *paper, "-", "-", "-", "-", "two hosts, gPTP"])
    return table(head, rows)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5000)
    parser.add_argument("--period-us", type=int, default=5000, help="the paper's: 20000")
    parser.add_argument("--quick", action="store_true", help="1,000 rounds")
    common.add_place(parser)
    parser.add_argument("--json", type=Path, default=OUT / "result.json")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.rounds = 1000
    if not 3_000 <= chosen.period_us <= 1_000_000 or not 1 <= chosen.rounds <= 500_000:
        parser.error("--period-us from 3000 (a meeting takes 2 ms) to 1000000, --rounds to 500000")
    return chosen


def main() -> int:
    chosen = options()
    common.check_place()
    place = common.place_of(chosen)
    say("building")
    binary = common.compile_c(OUT / "rendezvous", [HERE / "rendezvous.c"], *common.onbeat_flags())
    say(f"{chosen.rounds} rounds of {chosen.period_us} us")
    with network() as net:
        sides = run_both(binary, chosen.rounds, chosen.period_us * 1000, net, place)
    pairs = joined(sides)
    if len(pairs) < JOINED_MIN * chosen.rounds:
        raise Missing(f"of {chosen.rounds} rounds both met in {len(pairs)} only")
    ways = {"rendezvous": "met", "clock_nanosleep": "slept"}
    results = {
        name: {which: summary(errors) for which, errors in columns(pairs, key).items()}
        for name, key in ways.items()
    }
    say("")
    print(f"wake-up error of {len(pairs)} of {chosen.rounds} meetings, one each", end=" ")
    print(f"{chosen.period_us} us or a little more, class A (D 2 ms),\n{place}\n")
    print(report(results))
    print("\ntalker, listener: target minus wake-up, negative after the target; relative: talker's")
    print("wake-up minus the listener's. Both have one machine's clock: no clock error is in it.")
    settings = {"period_us": chosen.period_us, "rounds": chosen.rounds, "place": str(place)}
    result = {"machine": common.machine(), "settings": settings, "joined": len(pairs)}
    result |= {"us": results, "paper_us_max_avg_sd": PAPER}
    chosen.json.write_text(json.dumps(result, indent=1) + "\n")
    print(f"all figures: {chosen.json}")
    return 0


if __name__ == "__main__":
    common.run("rendezvous", main)
