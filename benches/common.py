"""What the benchmarks on interfaces share: two namespaces, two cores, building, telling."""

from __future__ import annotations

import argparse
import os
import platform
import re
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

BENCHES = Path(__file__).resolve().parent
ROOT = BENCHES.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
PROFILE = "dist"  # what is given to others
INTERFACE = "veth0"  # the C programs have the same name and addresses
ADDRESSES = ("10.77.0.1", "10.77.0.2")
STATIONS = ("02:00:00:00:00:01", "02:00:00:00:00:02")
READY_S = 15
# Histograms of cyclictest have at most so many nanoseconds; what is above counts as the largest.
CYCLICTEST_NS = 1_000_000


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


def compile_c(binary: Path, sources: list[Path], *flags: str | Path) -> Path:
    """The program `binary`, made of C sources."""
    binary.parent.mkdir(parents=True, exist_ok=True)
    warnings = ["-std=gnu11", "-O2", "-Wall", "-Wextra"]
    command(["cc", *warnings, "-o", binary, *sources, *flags, "-lpthread", "-lm"])
    return binary


def onbeat_flags() -> list[str | Path]:
    """Builds the channel library; what a C program is compiled with to use it."""
    cargo = ["cargo", "build", "--profile", PROFILE, "--locked", "--quiet", "-p", "onbeat-capi"]
    command(cargo, cwd=ROOT)
    return [f"-I{ROOT / 'crates' / 'capi' / 'include'}", TARGET / PROFILE / "libonbeat.a"]


# --- running ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Network:
    """The words before a command that make it run in the talker's or the listener's namespace."""

    talker: list[str]
    listener: list[str]


def check_place() -> None:
    """`Missing` where no namespaces can be made, said before anything is built."""
    if os.geteuid() != 0:
        raise Missing("not run: network namespaces need root")
    for tool in ("unshare", "nsenter", "ip", "taskset", "chrt"):
        if not shutil.which(tool):
            raise Missing(f"not run: {tool} is not installed (util-linux, iproute2)")


@contextmanager
def network() -> Iterator[Network]:
    """Two namespaces and a veth pair, held by two processes that end when their input does."""
    check_place()
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


def wait_until_ready(process: subprocess.Popen[str], who: str) -> None:
    """Until it has said so."""
    assert process.stdout is not None and process.stderr is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        if not selector.select(READY_S):
            raise Missing(f"{who} did not get ready")
    if process.stdout.readline() != "ready\n":
        raise Missing(f"{who}: {process.stderr.read().strip()}")


# --- wake-up errors ------------------------------------------------------------------------------


def cyclictest(words: list[str | Path], priority: int, wakes: int) -> list[int]:
    """The same of cyclictest, without the first wake-ups' worth: it has no order in time."""
    class_ = ["--policy=fifo", f"--priority={priority}"] if priority else ["--policy=other"]
    options = ["--default-system", "--mlockall", "--quiet", "--nsecs", "--threads=1"]
    count = ["--interval=1000", f"--loops={wakes}", f"--histogram={CYCLICTEST_NS}"]
    output = command([*words, "cyclictest", *options, *class_, *count])
    errors: list[int] = []
    for line in output.splitlines():
        if pair := re.match(r"(\d+)\s+(\d+)\s*$", line):
            errors += [int(pair[1])] * int(pair[2])
    most = re.search(r"# Max Latencies: (\d+)", output)
    # It does not say more of those that its histogram has no room for.
    return errors + [int(most[1]) if most else CYCLICTEST_NS] * (wakes - len(errors))


def percentile(values: list[int], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * part), len(ordered) - 1)]


# --- telling ------------------------------------------------------------------------------------


def say(text: str) -> None:
    """Progress: one line that is written over where somebody looks, else a line each."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
    else:
        print(text, file=sys.stderr, flush=True)


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


# --- the command line ---------------------------------------------------------------------------


def add_place(parser: argparse.ArgumentParser) -> None:
    """The options that say where the two sides run."""
    parser.add_argument("--cores", help="talker's and listener's, such as 0,1")
    parser.add_argument("--fifo", type=int, default=0, help="SCHED_FIFO priority")


def place_of(chosen: argparse.Namespace) -> Place:
    allowed = sorted(os.sched_getaffinity(0))
    cores = chosen.cores.split(",") if chosen.cores else (allowed[0], allowed[-1])
    return Place((int(cores[0]), int(cores[1])), chosen.fifo)


def machine() -> dict[str, object]:
    """What a result says of where it was measured."""
    return {
        "kernel": platform.release(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }


def run(name: str, main: Callable[[], int]) -> None:
    """Ends the program with what `main` says. Namespaces go with it, however it ends."""
    # A termination ends the run as an interrupt does: through `finally`.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main())
    except Missing as reason:
        sys.exit(f"{name}: {reason}")
    except KeyboardInterrupt:
        sys.exit(130)
