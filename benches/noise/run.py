#!/usr/bin/env python3
"""How much of a gigabit link one core of `onbeat noise` fills.

Two namespaces joined by a veth pair whose sending end is shaped to 1 Gb/s of the wire (tbf, which
does not count check sequence, preamble and gap: its rate is less by these). The generator has one
core and one thread, the sink another. The generator is asked for a little more than the link
carries. Prints what came through each second beside the link's rate. `../README.md` says how to
read it.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from statistics import fmean

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import common  # noqa: E402
from common import INTERFACE, PROFILE, ROOT, TARGET, Missing, Place, command, network  # noqa: E402
from common import say, table  # noqa: E402

OUT = TARGET / "noise"
RATE_BPS = 1_000_000_000
# Ethernet, IPv4 and UDP.
HEADERS = 42
# What the kernel's shaper does not count of a frame: check sequence, preamble, gap.
OVERHEAD = 24
WANTED = 0.98

Second = dict[str, int]


def build() -> Path:
    cargo = ["cargo", "build", "--profile", PROFILE, "--locked", "--quiet", "-p", "onbeat-cli"]
    command(cargo, cwd=ROOT)
    return TARGET / PROFILE / "onbeat"


def measure(onbeat: Path, chosen: argparse.Namespace, place: Place) -> dict[str, object]:
    pipe = subprocess.PIPE
    size, duration = str(chosen.size), f"{chosen.seconds + 1}s"
    with network() as net:
        # The shaper counts frames without what stands between them on the wire.
        counted = chosen.size + HEADERS
        rate = f"{RATE_BPS * counted // (counted + OVERHEAD)}bit"
        shape = ["root", "tbf", "rate", rate, "burst", "64kb", "limit", "8mb"]
        tc = ["tc", "qdisc", "add", "dev", INTERFACE, *shape]
        command([*net.talker, *tc])
        on = place.words(paced=True)
        noise = [onbeat, "noise"]
        words = [*net.listener, *on[1], *noise, "sink", INTERFACE, "--json"]
        sink = subprocess.Popen([str(w) for w in words], stdout=pipe, stderr=pipe, text=True)
        try:
            assert sink.stderr is not None
            if "counted" not in sink.stderr.readline():
                raise Missing("the sink did not start")
            send = ["send", INTERFACE, "--rate", chosen.rate, "--size", size]
            send += ["--offload"] if chosen.offload else []
            words = [*net.talker, *on[0], *noise, *send]
            before = os.times()
            sent = command([*words, "--duration", duration, "--json"])
            after = os.times()
            sink.send_signal(signal.SIGTERM)
            counted, _ = sink.communicate(timeout=10)
        finally:
            sink.kill()
            sink.wait()
    lines = [json.loads(line) for line in sent.splitlines()]
    used = after.children_user + after.children_system
    used -= before.children_user + before.children_system
    return {
        "sent": lines[-1],
        "received": json.loads(counted.splitlines()[-1]),
        "seconds": [json.loads(line) for line in counted.splitlines()[:-1]],
        "cpu_per_s": used / (chosen.seconds + 1),
    }


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="5 seconds")
    parser.add_argument("--size", type=int, default=1470)
    parser.add_argument("--rate", default="1050mbit", help="what the generator is asked for")
    parser.add_argument("--offload", action="store_true", help="with segmentation offload")
    parser.add_argument("--onbeat", type=Path, help="this command, instead of building one")
    common.add_place(parser)
    parser.add_argument("--json", type=Path, default=OUT / "result.json")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.seconds = 5
    return chosen


def main() -> int:
    chosen = options()
    common.check_place()
    place = common.place_of(chosen)
    say("building")
    onbeat = chosen.onbeat or build()
    say(f"{chosen.seconds} s of {chosen.size} octets")
    result = measure(onbeat, chosen, place)
    seconds: list[Second] = [s for s in result["seconds"] if s["datagrams"]][: chosen.seconds]
    # The first second begins before the generator, the last one ends after it.
    whole = seconds[1:] if len(seconds) > 2 else seconds
    if not whole:
        raise Missing("nothing came through")
    rows = [
        [
            str(s["second"]),
            str(s["datagrams"]),
            f"{s['goodput_bps'] / 1e6:.1f}",
            f"{s['wire_bps'] / 1e6:.1f}",
            f"{s['wire_bps'] / RATE_BPS:.2%}",
            str(s["overrun"]),
            "",
        ]
        for s in whole
    ]
    head = ["second", "datagrams", "goodput Mb/s", "wire Mb/s", "of 1 Gb/s", "overrun", ""]
    fill = fmean(s["wire_bps"] for s in whole) / RATE_BPS
    print(f"one thread, {chosen.size} octets, asked for {chosen.rate}, {place}\n")
    print(table(head, rows))
    sent, received = result["sent"], result["received"]
    missing = sent["datagrams"] - received["datagrams"] - received["overrun"]
    print(f"\non average {fill:.2%} of the link; wanted: {WANTED:.0%}")
    print(f"sent {sent['datagrams']}, received {received['datagrams']}, overrun there", end=" ")
    print(f"{received['overrun']}, missing {missing}; {sent['skipped']} left out: too many for it")
    print(f"processor time of the generator: {result['cpu_per_s']:.2f} of a core")
    OUT.mkdir(parents=True, exist_ok=True)
    document = {"machine": common.machine(), "place": str(place), "fill": fill, **result}
    chosen.json.write_text(json.dumps(document, indent=1) + "\n")
    print(f"all figures: {chosen.json}")
    return 0


if __name__ == "__main__":
    common.run("noise", main)
