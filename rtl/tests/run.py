"""Runs the tests of the hardware in a simulator: `run.py [NAME...]`, all quick ones if none is named.

A file `test_NAME.py` says with literals what is simulated: TOP (the module), PARAMETERS (a list of
what each run overrides), LONG_PARAMETERS (more of them, only with --long), SIMULATOR (icarus or
verilator), DEFINES, LONG (the whole file only with --long or by name).
What a test prints is below target/hardware/tests; a failed one's end is shown.
"""

import argparse
import ast
import concurrent.futures
import contextlib
import io
import os
import re
import sys
import time
from pathlib import Path

RTL = Path(__file__).resolve().parents[1]
TARGET = RTL.parent / "target" / "hardware" / "tests"
LITERALS = {
    "TOP": None,
    "PARAMETERS": [{}],
    "LONG_PARAMETERS": [],
    "SIMULATOR": "icarus",
    "DEFINES": {},
    "LONG": False,
}
SHOWN_LINES = 60


def literals(path):
    """What the file says of itself, read without running it."""
    found = dict(LITERALS)
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            if node.targets[0].id in LITERALS:
                found[node.targets[0].id] = ast.literal_eval(node.value)
    if not found["TOP"]:
        sys.exit(f"{path.name}: TOP names no module")
    return found


def sources():
    """Every module of the devices: one file each. The simulators take what TOP needs."""
    return sorted(path for room in ("mac", "switch", "station") for path in (RTL / room).glob("*.v"))


def build_arguments(simulator):
    """The simulator's own flags: a warning of the devices' code is the business of `lint`."""
    include = [f"-I{RTL / room}" for room in ("mac", "switch", "station")]
    if simulator == "verilator":
        return [*include, "-Wno-fatal", "-O3"]
    return ["-g2005", *include]


# Precompiled headers of Verilator's package are named without the compiler's flag for them.
os.environ["MAKEFLAGS"] = "CFG_CXXFLAGS_PCH_I=-include"


def chosen(said, long):
    return said["PARAMETERS"] + (said["LONG_PARAMETERS"] if long else [])


def run(name, number, parameters, said, seed):
    """One simulation: its log, how many of its tests failed, their number, seconds."""
    from cocotb_tools.runner import get_results, get_runner

    place = TARGET / f"{name}-{number}"
    place.mkdir(parents=True, exist_ok=True)
    log = place / "log"
    results = place / "results.xml"
    results.unlink(missing_ok=True)
    start = time.monotonic()
    runner = get_runner(said["SIMULATOR"])
    heard = io.StringIO()
    try:
        with contextlib.redirect_stdout(heard), contextlib.redirect_stderr(heard):
            runner.build(
                sources=sources(),
                hdl_toplevel=said["TOP"],
                parameters=parameters,
                defines=said["DEFINES"],
                build_args=build_arguments(said["SIMULATOR"]),
                build_dir=place / "build",
                timescale=("1ns", "1ps"),
                always=True,
                log_file=log.with_suffix(".build"),
            )
            runner.test(
                test_module=name,
                hdl_toplevel=said["TOP"],
                parameters=parameters,
                build_dir=place / "build",
                test_dir=place,
                results_xml=str(results),
                extra_env={"PYTHONPATH": str(RTL / "tests"), "PYTHONDONTWRITEBYTECODE": "1"},
                seed=seed,
                log_file=log,
            )
    except (SystemExit, RuntimeError, ValueError):
        pass
    seconds = time.monotonic() - start
    tests, failed = get_results(results) if results.exists() else (1, 1)
    # A file in which no test was found proves nothing.
    return log, max(failed, 1 if tests == 0 else 0), tests, seconds


def show(log):
    """The end of what a failed simulation or its build said."""
    for path in (log.with_suffix(".build"), log):
        if path.exists():
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            print("\n".join(lines[-SHOWN_LINES:]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="as in test_NAME.py")
    parser.add_argument("--long", action="store_true", help="also the files that say LONG")
    parser.add_argument("--seed", type=int, help="of the random tests; 1, and with --long any")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    seed = arguments.seed or (None if arguments.long else 1)

    files = {path.stem: literals(path) for path in sorted(Path(__file__).parent.glob("test_*.py"))}
    wanted = [re.sub(r"^(test_)?", "test_", re.sub(r"\.py$", "", name)) for name in arguments.names]
    unknown = [name for name in wanted if name not in files]
    if unknown:
        sys.exit(f"no such test: {' '.join(unknown)}; there are {' '.join(files)}")
    wanted = wanted or [name for name in files if arguments.long or not files[name]["LONG"]]

    failures = 0
    with concurrent.futures.ProcessPoolExecutor(arguments.jobs) as pool:
        runs = {
            pool.submit(run, name, number, parameters, files[name], seed): (name, parameters)
            for name in wanted
            for number, parameters in enumerate(chosen(files[name], arguments.long))
        }
        for done in concurrent.futures.as_completed(runs):
            name, parameters = runs[done]
            log, failed, tests, seconds = done.result()
            of = "".join(f" {key}={value}" for key, value in parameters.items())
            word = "failed" if failed else "passed"
            print(f"{name}{of}: {tests} tests, {failed or tests} {word}, {seconds:.1f} s", flush=True)
            if failed:
                show(log)
                failures += 1
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
