#!/usr/bin/env python3
"""How often `onbeat compare` tells real repetitions of one measurement apart.

    benches/compare/run.py [--onbeat PATH] [--pairs 50] [--each 5] DIRECTORY

Measures `measure clock` and `measure latency` in turns, as often as --pairs pairs of --each against
--each need, into DIRECTORY (what is there is not measured again). Of 2 x --each successive runs, of
which no other pair has one, the even are compared with the odd ones, both ways round. Prints how many pairs were told apart, which nothing but chance does, and
how many were not the same both ways round. Exits with 1 if more than 5 % were told apart, or one
pair was not.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

MEASUREMENTS = {
    "clock": ["measure", "clock", "--samples", "20000"],
    "latency": ["measure", "latency", "--wakes", "500", "--period", "1ms"],
}
MIRRORED = {"worse": "better", "better": "worse"}


def compare(onbeat: str, sides: list[list[Path]]) -> dict:
    """Two sides of several outputs each, as directories of links to these."""
    with tempfile.TemporaryDirectory() as place:
        for name, runs in zip("ab", sides, strict=True):
            directory = Path(place) / name
            directory.mkdir()
            for run in runs:
                (directory / run.name).symlink_to(run.resolve())
        command = [onbeat, "compare", f"{place}/a", f"{place}/b", "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return json.loads(done.stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--onbeat", default="onbeat")
    parser.add_argument("--pairs", type=int, default=50)
    parser.add_argument("--each", type=int, default=5)
    parser.add_argument("directory", type=Path)
    asked = parser.parse_args()
    window = 2 * asked.each
    for number in range(asked.pairs * window):
        for name, words in MEASUREMENTS.items():
            out = asked.directory / name / f"{number:03}"
            out.parent.mkdir(parents=True, exist_ok=True)
            if not out.exists():
                command = [asked.onbeat, *words, "--out", str(out)]
                subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    fine = True
    for name in MEASUREMENTS:
        runs = sorted((asked.directory / name).iterdir())
        apart, unlike, judged = 0, 0, 0
        pairs = len(runs) // window
        for first in range(0, pairs * window, window):
            pair = runs[first : first + window]
            sides = [pair[::2], pair[1::2]]
            found = compare(asked.onbeat, sides)
            back = compare(asked.onbeat, sides[::-1])["verdict"]
            unlike += back != MIRRORED.get(found["verdict"], found["verdict"])
            apart += found["verdict"] in ("worse", "better", "mixed")
            judged += found["judged"]
            if found["verdict"] in ("worse", "better", "mixed"):
                print(name, first, found["verdict"], [
                    (s["name"], f["figure"], f["values_ns"]["first"], f["values_ns"]["second"])
                    for s in found["series"] for f in s["figures"]
                    if f["verdict"] in ("worse", "better")
                ])
        print(f"{name}: {asked.each} against {asked.each}, {pairs} pairs, {judged // max(pairs, 1)} "
              f"figures each: {apart} told apart, {unlike} not alike both ways round")
        fine = fine and apart * 20 <= pairs and unlike == 0
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
