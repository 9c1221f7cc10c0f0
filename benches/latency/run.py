#!/usr/bin/env python3
"""One-way latency and rate of network channels and of their peers, all in one run.

Builds what is there, joins two network namespaces with a veth pair, and lets each contestant's
talker and listener run there in turn, round by round, so that what else the machine does hits all
alike. Prints the medians over the rounds and writes all figures as JSON. Nothing is left behind:
the namespaces have no name and end with this program, however it ends.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
OUT = TARGET / "latency"
DEBIAN = ["gcc", "cmake", "pkg-config", "libzmq3-dev", "cyclonedds-dev", "cyclonedds-tools"]
INTERFACE = "veth0"  # bench.h has the same name and addresses
ADDRESSES = ("10.77.0.1", "10.77.0.2")
STATIONS = ("02:00:00:00:00:01", "02:00:00:00:00:02")
READY_S = 15
DRAIN_S = 0.3
# What the contestants are compared with.
BASE = "packet"

Figures = dict[str, float]


class Missing(Exception):
    """A contestant cannot be built or run, and why."""


def command(arguments: list[str | Path], **options: object) -> str:
    """Runs a command to its end; its output, or `Missing` with its last words."""
    words = [str(a) for a in arguments]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, **options)
    except FileNotFoundError:
        raise Missing(f"{words[0]} is not installed") from None
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if "error" in line.lower()]
        last = errors[:1] or done.stderr.splitlines()[-1:] or [f"exit status {done.returncode}"]
        raise Missing(f"{words[0]}: {last[0].strip()}")
    return done.stdout


# --- building -----------------------------------------------------------------------------------


def compile_c(name: str, *flags: str | Path) -> Path:
    """The program of `peers/NAME.c`."""
    binary = OUT / name
    source = HERE / "peers" / f"{name}.c"
    warnings = ["-std=gnu11", "-O2", "-Wall", "-Wextra"]
    command(["cc", *warnings, "-o", binary, HERE / "bench.c", source, *flags, "-lpthread"])
    return binary


def cyclonedds() -> Path:
    command(["idlc", "-o", OUT, HERE / "peers" / "message.idl"])
    return compile_c("cyclonedds", f"-I{OUT}", OUT / "message.c", "-lddsc")


def zenoh() -> Path:
    target = OUT / "zenoh-target"
    manifest = HERE / "zenoh" / "Cargo.toml"
    cargo = ["cargo", "build", "--release", "--locked", "--quiet", "--manifest-path", manifest]
    command([*cargo, "--target-dir", target])
    return compile_c("zenoh", target / "release" / "liblatency_zenoh.a", "-lm")


def open62541() -> Path:
    """The C sources come with the crate that binds them, which leaves PubSub out: so built here."""
    manifest = HERE / "open62541" / "Cargo.toml"
    cargo = ["cargo", "metadata", "--format-version=1", "--locked", "--manifest-path", manifest]
    packages = json.loads(command(cargo))["packages"]
    crate = next(p["manifest_path"] for p in packages if p["name"] == "open62541-sys")
    source = Path(crate).parent / "open62541"
    build = OUT / "open62541-build"
    options = {
        "CMAKE_BUILD_TYPE": "Release",
        "BUILD_SHARED_LIBS": "OFF",
        "UA_ENABLE_PUBSUB": "ON",
        "UA_ENABLE_PUBSUB_INFORMATIONMODEL": "OFF",
        "UA_NAMESPACE_ZERO": "REDUCED",
        "UA_LOGLEVEL": "500",
    }
    defines = [f"-D{key}={value}" for key, value in options.items()]
    command(["cmake", "-S", source, "-B", build, *defines])
    command(["cmake", "--build", build, "--parallel", "2"])
    includes = [build / "src_generated", source / "include", source / "plugins" / "include"]
    flags = [f"-isystem{path}" for path in includes]
    return compile_c("open62541", *flags, build / "bin" / "libopen62541.a", "-lm")


def onbeat() -> Path:
    cargo = ["cargo", "build", "--release", "--locked", "--quiet", "-p", "onbeat-capi"]
    command(cargo, cwd=ROOT)
    header = f"-I{ROOT / 'crates' / 'capi' / 'include'}"
    return compile_c("onbeat", header, TARGET / "release" / "libonbeat.a", "-lm")


@dataclass(frozen=True)
class Contestant:
    """One row of the table."""

    name: str
    what: str
    build: Callable[[], Path]
    variant: str = ""


def plain(name: str, *flags: str) -> Callable[[], Path]:
    return lambda: compile_c(name, *flags)


CONTESTANTS = [
    Contestant(BASE, "bare AF_PACKET, one blocking call", plain("packet")),
    Contestant("packet-60us", "the same, spins from 60 us before it is due", plain("packet"), "60"),
    Contestant("onbeat", "C, blocking read", onbeat, "packet"),
    Contestant("onbeat-schedule", "C, follows the schedule", onbeat, "schedule"),
    Contestant("onbeat-xdp", "C, AF_XDP", onbeat, "xdp"),
    Contestant("onbeat-udp", "C, UDP over IPv4", onbeat, "udp"),
    Contestant("pipe", "model of the pipe-and-worker design", plain("pipe")),
    Contestant("udp", "plain UDP, blocking", plain("udp")),
    Contestant("zeromq", "ZeroMQ PUB/SUB over TCP", plain("zeromq", "-lzmq")),
    Contestant("cyclonedds", "CycloneDDS, best effort, callback", cyclonedds),
    Contestant("zenoh", "zenoh over TCP, callback", zenoh),
    Contestant("open62541", "OPC UA PubSub, UADP over UDP multicast", open62541),
]


def build(contestants: list[Contestant]) -> tuple[dict[str, Path], dict[str, str]]:
    """The programs by contestant, and what is missing, with the reason."""
    OUT.mkdir(parents=True, exist_ok=True)
    built: dict[str, Path] = {}
    missing: dict[str, str] = {}
    known: dict[Callable[[], Path], Path | Missing] = {}
    for contestant in contestants:
        say(f"building {contestant.name}")
        if contestant.build not in known:
            try:
                known[contestant.build] = contestant.build()
            except Missing as reason:
                known[contestant.build] = reason
        match known[contestant.build]:
            case Path() as path:
                built[contestant.name] = path
            case reason:
                missing[contestant.name] = f"not built: {reason}"
    return built, missing


# --- running ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Network:
    """The words before a command that make it run in the talker's or the listener's namespace."""

    talker: list[str]
    listener: list[str]


@contextmanager
def network() -> Iterator[Network]:
    """Two namespaces and a veth pair, held by two processes that end when their input does."""
    if os.geteuid() != 0:
        raise Missing("network namespaces need root")
    holders = [
        subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE) for _ in range(2)
    ]
    try:
        enter = [["nsenter", "--net", "--target", str(holder.pid)] for holder in holders]
        for holder in holders:
            wait_for_namespace(holder.pid)
        peer = ["peer", "name", INTERFACE, "netns", str(holders[1].pid)]
        command([*enter[0], "ip", "link", "add", INTERFACE, "type", "veth", *peer])
        for here in (0, 1):
            ip = [*enter[here], "ip"]
            there = 1 - here
            command([*ip, "link", "set", INTERFACE, "address", STATIONS[here], "up"])
            command([*ip, "link", "set", "lo", "up"])
            command([*ip, "address", "add", f"{ADDRESSES[here]}/24", "dev", INTERFACE])
            neighbour = [ADDRESSES[there], "lladdr", STATIONS[there], "dev", INTERFACE]
            command([*ip, "neighbour", "replace", *neighbour])
            command([*ip, "route", "add", "224.0.0.0/4", "dev", INTERFACE])
        yield Network(*enter)
    finally:
        for holder in holders:
            holder.kill()
            holder.wait()


@dataclass(frozen=True)
class Place:
    """Where and how the two sides are scheduled."""

    cores: tuple[int, int]
    fifo: int

    def words(self, paced: bool) -> list[list[str]]:
        """The words before each side's command. What runs flat out has no real-time priority."""
        class_ = ["chrt", "--fifo", str(self.fifo)] if self.fifo and paced else []
        return [["taskset", "--cpu-list", str(core), *class_] for core in self.cores]

    def __str__(self) -> str:
        same = " (this machine has no other)" if self.cores[0] == self.cores[1] else ""
        class_ = f", SCHED_FIFO {self.fifo}" if self.fifo else ", no real-time priority"
        return f"talker on core {self.cores[0]}, listener on {self.cores[1]}{same}{class_}"


def wait_for_namespace(pid: int) -> None:
    for _ in range(500):
        if os.readlink(f"/proc/{pid}/ns/net") != os.readlink("/proc/self/ns/net"):
            return
        time.sleep(0.01)
    raise Missing("unshare makes no network namespace")


def run_pair(
    binary: Path, variant: str, period_ns: int, seconds: float, net: Network, place: Place
) -> Figures:
    """One round of one contestant: the figures of both of its sides."""
    words = [str(period_ns), str(int(seconds * 1e9)), *([variant] if variant else [])]
    on = place.words(paced=period_ns > 0)
    listener = subprocess.Popen(
        [*net.listener, *on[1], str(binary), "listener", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until_ready(listener)
        talker = [*net.talker, *on[0], str(binary), "talker", *words]
        sent = json.loads(command(talker, timeout=seconds + READY_S))
        time.sleep(DRAIN_S)
        listener.send_signal(signal.SIGTERM)
        output, errors = listener.communicate(timeout=READY_S)
    except subprocess.TimeoutExpired:
        raise Missing("one side did not end in time") from None
    finally:
        listener.kill()
        listener.wait()
    if listener.returncode:
        raise Missing(f"the listener: {errors.strip() or listener.returncode}")
    return figures(sent, json.loads(output))


def wait_until_ready(listener: subprocess.Popen[str]) -> None:
    assert listener.stdout is not None and listener.stderr is not None
    with selectors.DefaultSelector() as selector:
        selector.register(listener.stdout, selectors.EVENT_READ)
        if not selector.select(READY_S):
            raise Missing("the listener did not get ready")
    if listener.stdout.readline() != "ready\n":
        raise Missing(f"the listener: {listener.stderr.read().strip()}")


def figures(sent: Figures, received: Figures) -> Figures:
    """What a round says, of what both sides counted."""
    if not received["count"]:
        raise Missing("no message arrived")
    result = {key: value for key, value in received.items() if key.endswith("_ns")}
    result |= {
        "sent": sent["count"],
        "lost": sent["count"] - received["count"],
        "rate_per_s": received["count"] / max(received["duration_ns"], 1) * 1e9,
    }
    for side, own in (("talker", sent), ("listener", received)):
        switches = own["voluntary"] + own["involuntary"]
        result[f"{side}_switches_per_message"] = switches / own["count"]
        result[f"{side}_cpu_ns_per_message"] = own["cpu_ns"] / own["count"]
        result[f"{side}_core_percent"] = own["cpu_ns"] / max(own["duration_ns"], 1) * 100
    return result


Rounds = dict[str, list[Figures]]


def run_rounds(
    built: dict[str, Path],
    missing: dict[str, str],
    period_ns: int,
    rounds: int,
    seconds: float,
    place: Place,
) -> Rounds:
    """All contestants in turn, `rounds` times. One that fails is named in `missing`."""
    kind = f"every {period_ns // 1000} us" if period_ns else "flat out"
    results: Rounds = {}
    with network() as net:
        for number in range(rounds):
            for contestant in CONTESTANTS:
                name = contestant.name
                if name not in built or name in missing:
                    continue
                say(f"{kind}, round {number + 1} of {rounds}: {name}")
                try:
                    variant = contestant.variant
                    one = run_pair(built[name], variant, period_ns, seconds, net, place)
                except Missing as reason:
                    missing[name] = f"did not run ({kind}): {reason}"
                else:
                    results.setdefault(name, []).append(one)
    return results


def medians(rounds: Rounds) -> dict[str, Figures]:
    return {
        name: {key: median(one[key] for one in all_) for key in all_[0]}
        for name, all_ in rounds.items()
    }


# --- telling ------------------------------------------------------------------------------------


def say(text: str) -> None:
    """Progress: one line that is written over where somebody looks, else a line each."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
    else:
        print(text, file=sys.stderr, flush=True)


def ratio(value: float, base: Figures | None, key: str) -> str:
    return f"{value / base[key]:.2f}" if base and base[key] else "-"


def table(head: list[str], rows: list[list[str]]) -> str:
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = [
        "  ".join(
            cell.ljust(width) if i in (0, len(head) - 1) else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [head, *rows]
    ]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])


def paced_table(paced: dict[str, Figures]) -> str:
    base = paced.get(BASE)
    head = "|min|p50|p90|p99|max us|p50 x|p99 x|lost|switches t/l|core % t/l|".split("|")
    rows = []
    for name, what in ((c.name, c.what) for c in CONTESTANTS if c.name in paced):
        f = paced[name]
        latency = [f"{f[k] / 1000:.1f}" for k in "min_ns p50_ns p90_ns p99_ns max_ns".split()]
        ratios = [ratio(f[key], base, key) for key in ("p50_ns", "p99_ns")]
        switches = [f"{f[f'{side}_switches_per_message']:.2f}" for side in ("talker", "listener")]
        cores = [f"{f[f'{side}_core_percent']:.1f}" for side in ("talker", "listener")]
        both = [" / ".join(switches), " / ".join(cores)]
        rows.append([name, *latency, *ratios, f"{f['lost']:.0f}", *both, what])
    return table(head, rows)


def flat_table(flat: dict[str, Figures]) -> str:
    base = flat.get(BASE)
    head = "|received/s|x|lost %|switches t/l|cpu ns t/l|".split("|")
    rows = []
    for name, what in ((c.name, c.what) for c in CONTESTANTS if c.name in flat):
        f = flat[name]
        switches = [f"{f[f'{side}_switches_per_message']:.3f}" for side in ("talker", "listener")]
        cpu = [f"{f[f'{side}_cpu_ns_per_message']:.0f}" for side in ("talker", "listener")]
        both = [" / ".join(switches), " / ".join(cpu)]
        lost = f["lost"] / f["sent"] * 100
        figures_ = [f"{f['rate_per_s']:.0f}", ratio(f["rate_per_s"], base, "rate_per_s")]
        rows.append([name, *figures_, f"{lost:.2f}", *both, what])
    return table(head, rows)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="names, separated by commas; `packet` is always there")
    parser.add_argument("--period-us", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5, help="of a paced round")
    parser.add_argument("--flat-seconds", type=float, default=2, help="of one flat out; 0: none")
    parser.add_argument("--quick", action="store_true", help="2 rounds of 1 s and 0.5 s")
    parser.add_argument("--cores", help="talker's and listener's, such as 0,1")
    parser.add_argument("--fifo", type=int, default=0, help="SCHED_FIFO priority of paced rounds")
    parser.add_argument("--install", action="store_true", help="install the peers' Debian packages")
    parser.add_argument("--json", type=Path, default=OUT / "result.json")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.rounds, chosen.seconds, chosen.flat_seconds = 2, 1.0, 0.5
    return chosen


def main() -> int:
    chosen = options()
    # A termination ends the run as an interrupt does: through `finally`.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if chosen.install:
        command(["apt-get", "install", "--yes", "--no-install-recommends", *DEBIAN])
    allowed = sorted(os.sched_getaffinity(0))
    cores = chosen.cores.split(",") if chosen.cores else (allowed[0], allowed[-1])
    place = Place((int(cores[0]), int(cores[1])), chosen.fifo)
    names = {BASE, *chosen.only.split(",")} if chosen.only else {c.name for c in CONTESTANTS}
    built, missing = build([c for c in CONTESTANTS if c.name in names])
    rounds = chosen.rounds
    paced = run_rounds(built, missing, chosen.period_us * 1000, rounds, chosen.seconds, place)
    flat: Rounds = {}
    if chosen.flat_seconds:
        flat = run_rounds(built, missing, 0, rounds, chosen.flat_seconds, place)
    say("")
    print(f"one-way latency in us, 64 octets every {chosen.period_us} us, medians of {rounds}")
    print(f"rounds of {chosen.seconds} s, {place}\n")
    print(paced_table(medians(paced)))
    if flat:
        print(f"\nflat out, medians of {rounds} rounds of {chosen.flat_seconds} s\n")
        print(flat_table(medians(flat)))
    print()
    for name, reason in missing.items():
        print(f"{name}: {reason}")
    machine = {"kernel": platform.release(), "cores": os.cpu_count(), "load": os.getloadavg()[0]}
    settings = {"period_us": chosen.period_us, "seconds": chosen.seconds, "place": str(place)}
    result = {"machine": machine, "settings": settings, "missing": missing}
    result |= {"paced": medians(paced), "flat": medians(flat)}
    result |= {"paced_rounds": paced, "flat_rounds": flat}
    chosen.json.write_text(json.dumps(result, indent=1) + "\n")
    print(f"all rounds: {chosen.json}")
    return 1 if any(reason.startswith("did not run") for reason in missing.values()) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Missing as reason:
        sys.exit(f"latency: {reason}")
    except KeyboardInterrupt:
        sys.exit(130)
