"""Has two programs read each module of the hardware; whatever they warn of fails. So does a planted
fault that no longer has its place."""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

RTL = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(RTL / "tests"))
from mutants import MUTANTS  # noqa: E402
ROOMS = [RTL / room for room in ("mac", "switch", "station")]
LINE_LIMIT = 100


def modules():
    """All files of the devices' modules."""
    return sorted(path for room in ROOMS for path in room.glob("*.v"))


def own_rules(path):
    """What the programs do not say: layout, one module of the file's name, no default nets."""
    text = path.read_text(encoding="utf-8")
    found = [
        f"line {number} has {len(line)} characters"
        for number, line in enumerate(text.splitlines(), 1)
        if len(line) > LINE_LIMIT
    ]
    if re.findall(r"^module\s+(\w+)", text, re.MULTILINE) != [path.stem]:
        found.append("does not have exactly the module that it is named after")
    if not text.startswith("//"):
        found.append("does not begin with a comment that says what it is")
    if "`default_nettype none" not in text:
        found.append("`default_nettype none is missing")
    for before, line in zip(["", *text.splitlines()], text.splitlines(), strict=False):
        said = "//" in line.partition("lint_off")[2] or before.strip().startswith("//")
        if "lint_off" in line and not said:
            found.append(f"no reason beside {line.strip()}")
    for old, _ in MUTANTS.get(f"{path.parent.name}/{path.name}", ()):
        if text.count(old) != 1:
            found.append(f"tests/mutants.py plants a fault in {old!r}, which is not there once")
    return [f"{path}: {finding}" for finding in found]


def commands(path):
    """How the programs are asked."""
    search = [word for room in ROOMS for word in ("-y", str(room), f"-I{room}")]
    verilator = ["verilator", "--lint-only", "-Wall", "-Wno-DECLFILENAME"]
    verilator += ["--top-module", path.stem]
    icarus = ["iverilog", "-g2005", "-Wall", "-t", "null", "-s", path.stem]
    return [
        [*verilator, "--language", "1364-2005", "+libext+.v", *search, str(path)],
        [*icarus, "-Y", ".v", *search, str(path)],
    ]


def read(path):
    """All that is wrong with one file."""
    found = own_rules(path)
    for command in commands(path):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        said = (done.stdout + done.stderr).strip()
        if re.search(r"^(%Warning|%Error)|warning:|error", said, re.MULTILINE) or done.returncode:
            found.append(f"{path}: {command[0]} says\n{said or 'nothing, and fails'}")
    return found


def main():
    paths = modules()
    if not paths:
        sys.exit("lint: there is no module")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        findings = [finding for found in pool.map(read, paths) for finding in found]
    print("\n".join([*findings, f"lint: {len(paths)} modules, {len(findings)} findings"]))
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
