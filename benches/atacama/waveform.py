"""One real-time frame that cuts a best-effort frame at a switch: what is on the pins."""

from __future__ import annotations

from experiments import PORTS, START, read_counters
from network import CYCLE_FS, Network

# The wire that brings the real-time frame, and one on which it leaves.
WIRES = {"in": ("talker", 0), "out": ("s0", 2)}
LENGTH = 64
CUT_LENGTH = 400


def cut(policy: int = 0) -> dict:
    """Octets of three wires, one value for each cycle, all of one clock."""
    network = Network(seed=1, link_cycles=0)
    network.device("switch", "s0")
    network.write("s0", 0x002, policy)
    for port, name in enumerate(("talker", "client", "listener")):
        network.link("s0", port, network.device("injector", name), 0)
    network.stream("client", "best-effort", length=CUT_LENGTH, count=1, start=START,
                   source=0x020000000002)
    # Best effort is stored, then moved at a quarter of the time: it leaves two frames later.
    begin = START + 2 * CUT_LENGTH + 90
    network.stream("talker", "real-time", type="rt", length=LENGTH, count=1, start=begin,
                   source=0x020000000001)
    for device, port in WIRES.values():
        network.lines.append(
            f"window {device} {port} {(begin - 80) * CYCLE_FS} {(begin + 600) * CYCLE_FS}"
        )
    read_counters(network, 1)
    result = network.run(START + 4_000, drain_cycles=100)
    registers = next(d["registers"] for d in result["devices"] if d["name"] == "s0")
    wires = {
        name: next(w["pins"] for w in result["windows"] if (w["from"], w["port"]) == wire)
        for name, wire in WIRES.items()
    }
    first = min(pins[0][0] for pins in wires.values())
    return {
        "cycle_fs": CYCLE_FS,
        "wires": {
            name: [[(at - first) // CYCLE_FS, data, valid, error]
                   for at, data, valid, error in pins]
            for name, pins in wires.items()
        },
        "counters": {name: value for name, value in registers.items()
                     if value and name.endswith(tuple(f":{port}" for port in range(PORTS)))},
    }


def bursts(pins: list[list[int]]) -> list[dict]:
    """Runs of valid octets: first cycle, the one behind the last, its octets, whether cut."""
    found: list[dict] = []
    before = 0
    for at, data, valid, error in pins:
        if valid and not before:
            found.append({"begin": at, "end": at, "octets": [], "cut": False})
        if valid:
            found[-1]["end"] = at + 1
            found[-1]["octets"].append(data)
            found[-1]["cut"] = bool(error)
        before = valid
    return found


def vcd(data: dict) -> str:
    """The same for a viewer of waveforms; the time unit is a nanosecond."""
    lines = ["$timescale 1 ns $end", "$scope module wires $end"]
    signals = {}
    for number, name in enumerate(data["wires"]):
        place = name.replace(" ", "_")
        signals[name] = tuple(chr(33 + 3 * number + part) for part in range(3))
        for code, signal, width in zip(signals[name], ("data", "en", "er"), (8, 1, 1), strict=True):
            lines.append(f"$var wire {width} {code} {place}_{signal} $end")
    lines += ["$upscope $end", "$enddefinitions $end"]
    last: dict[str, int] = {}
    columns = zip(*data["wires"].values(), strict=True)
    for column in columns:
        changes = []
        for name, (_, octet, valid, error) in zip(data["wires"], column, strict=True):
            for code, value in zip(signals[name], (octet, valid, error), strict=True):
                if last.get(code) != value:
                    last[code] = value
                    wide = code == signals[name][0]
                    changes.append(f"b{value:08b} {code}" if wide else f"{value}{code}")
        if changes:
            lines += [f"#{column[0][0] * 8}", *changes]
    return "\n".join(lines) + "\n"
