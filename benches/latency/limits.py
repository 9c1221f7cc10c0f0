"""What the latency benchmark asks of Onbeat, and whether it is kept.

A figure is compared with that of another contestant in the same round, and the median over the
rounds counts: a stall of the machine spoils a round, not the comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

Figures = dict[str, float]
Rounds = dict[str, list[Figures]]

# What the others are compared with.
BASE = "packet"
NETWORKED = ("udp", "zeromq", "cyclonedds", "zenoh", "open62541")
BLOCKING = ("onbeat", "onbeat-rust")
MANY = "onbeat-many"

P50_TIMES = 1.10
P99_TIMES = 1.25
RATE_TIMES = 0.95
SWITCHES = 1.0
PIPE_US = 10.0
SCHEDULE_TIMES = 0.60
MEMORY_OCTETS = 64 * 1024
CLOSE_S = 1.0
AUTHENTICATION_US = 2.0
SELECTOR_TIMES = 1.2


def pairs(rounds: Rounds, name: str, other: str, key: str) -> list[tuple[float, float]]:
    """Both contestants' figures, round by round."""
    both = zip(rounds.get(name, []), rounds.get(other, []), strict=False)
    return [(mine[key], its[key]) for mine, its in both]


def paired(rounds: Rounds, name: str, key: str, other: str) -> list[float]:
    """How many times the other's figure, round by round."""
    return [mine / its for mine, its in pairs(rounds, name, other, key) if its]


def row(
    what: str, wanted: str, values: list[float], kept: Callable[[float], bool], text: str
) -> list[str]:
    """A line of the table: the median counts, the range shows how noisy the machine was."""
    if not values:
        return [what, wanted, "-", "-", "not measured"]
    got = median(values)
    range_ = f"{min(values):.2f} to {max(values):.2f}"
    return [what, wanted, text.format(got), range_, "kept" if kept(got) else "NOT kept"]


def at_most(what: str, limit: float, values: list[float]) -> list[str]:
    return row(what, f"<= {limit:.2f}x", values, lambda got: got <= limit, "{:.2f}x")


def below(what: str, values: list[float]) -> list[str]:
    return row(what, "< 1.00x", values, lambda got: got < 1, "{:.2f}x")


def rate_row(name: str, flat: Rounds) -> list[str]:
    """The slower side counts."""
    sent, received = (paired(flat, name, f"{what}_per_s", BASE) for what in ("sent", "received"))
    what = f"{name}: rate to bare, sent or received"
    rate = [min(pair) for pair in zip(sent, received, strict=True)]
    return row(what, f">= {RATE_TIMES:.2f}x", rate, lambda got: got >= RATE_TIMES, "{:.2f}x")


def of_blocking(name: str, paced: Rounds, flat: Rounds) -> list[list[str]]:
    """The limits of an end that blocks in its receive call."""
    # To two places: the end of a run costs a handful of switches. One that another task forces
    # upon it is no message's.
    waits = [
        round(max(one[f"{side}_waits_per_message"] for side in ("talker", "listener")), 2)
        for one in paced.get(name, [])
    ]
    pipe = [(its - mine) / 1000 for mine, its in pairs(paced, name, "pipe", "p50_ns")]
    return [
        at_most(f"{name}: p50 to bare", P50_TIMES, paired(paced, name, "p50_ns", BASE)),
        at_most(f"{name}: p99 to bare", P99_TIMES, paired(paced, name, "p99_ns", BASE)),
        rate_row(name, flat),
        row(
            f"{name}: switches per message and side",
            f"<= {SWITCHES:.0f}",
            waits,
            lambda got: got <= SWITCHES,
            "{:.2f}",
        ),
        row(
            f"{name}: p50 better than pipe",
            f">= {PIPE_US:.0f} us",
            pipe,
            lambda got: got >= PIPE_US,
            "{:.1f} us",
        ),
    ]


def ahead_of_all(name: str, paced: Rounds) -> list[str]:
    """Against whichever networked peer is the best."""
    ran = [peer for peer in NETWORKED if peer in paced]
    ratios = {peer: paired(paced, name, "p50_ns", peer) for peer in ran}
    best = max((peer for peer in ran if ratios[peer]), key=lambda p: median(ratios[p]), default="")
    what = f"{name}: p50 to the best networked peer"
    return below(f"{what} ({best})" if best else what, ratios.get(best, []))


def rows_of(paced: Rounds, flat: Rounds) -> list[list[str]]:
    """The limits of latency and rate."""
    schedule = "onbeat-schedule"
    xdp = "onbeat-xdp-schedule"
    rows = [line for name in BLOCKING for line in of_blocking(name, paced, flat)]
    rows.append(rate_row(MANY, flat))
    times = paired(paced, schedule, "p50_ns", BASE)
    rows.append(at_most(f"{schedule}: p50 to bare", SCHEDULE_TIMES, times))
    rows.append(below(f"{xdp}: p50 to {schedule}", paired(paced, xdp, "p50_ns", schedule)))
    added = [(mine - its) / 1000 for mine, its in pairs(paced, "onbeat-auth", "onbeat", "p50_ns")]
    rows.append(
        row(
            "onbeat-auth: p50 above onbeat",
            f"<= {AUTHENTICATION_US:.1f} us",
            added,
            lambda got: got <= AUTHENTICATION_US,
            "{:.2f} us",
        )
    )
    cpu = "listener_cpu_ns_per_message"
    times = paired(paced, "onbeat-selector-1000", cpu, "onbeat-selector-1")
    rows.append(at_most("1,000 channels: listener's CPU per message to 1", SELECTOR_TIMES, times))
    rows += [ahead_of_all(name, paced) for name in (*BLOCKING, schedule)]
    return rows


def memory_row(memory: Figures) -> list[str]:
    """Per open end, in user space and the kernel."""
    user, kernel = (memory[key] / memory["channels"] for key in ("user", "kernel"))
    got = f"{user / 1024:.1f} + {kernel / 1024:.1f} KiB"
    kept = "kept" if user + kernel <= MEMORY_OCTETS else "NOT kept"
    return ["memory per channel, program + kernel", "<= 64 KiB", got, "-", kept]


def close_row(memory: Figures) -> list[str]:
    """All ends, beside plain sockets that are closed in a row."""
    seconds, plain = (memory[key] / 1e9 for key in ("close_ns", "close_plain_ns"))
    kept = "kept" if seconds <= CLOSE_S else "NOT kept"
    got = f"{seconds:.2f} s, plain sockets {plain:.2f} s"
    return [f"closing {memory['channels']:.0f} channels", f"<= {CLOSE_S:.0f} s", got, "-", kept]
