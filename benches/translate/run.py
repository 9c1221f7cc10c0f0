#!/usr/bin/env python3
"""How long translating 10,000 lines of Timed C takes beside the C compiler's own time.

The source is made here: tasks with loops, branches, channels, macros and firm points, as programs have
them, with the arithmetic of a controller in between. Prints medians of CPU time; writes target/translate/result.json.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
LINES = 10_000

HEAD = """#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cilktc.h>

#define LIMIT(x, low, high) ((x) < (low) ? (low) : (x) > (high) ? (high) : (x))
#define PERIOD_MS 10
#define WAIT() fdelay(PERIOD_MS, ms)

struct sample {
	int64_t at;
	double values[8];
};
"""

# One task and its functions; NN is its number.
TASK = """
/* Axis NN: reads, filters, controls, writes. */
static double gain_NN = 0.5, integral_NN, last_NN;
struct sample fifochannel(samples_NN, 16);
struct sample lvchannel(state_NN);

static double filter_NN(const struct sample *sample, int taps)
{
	double sum = 0;

	for (int i = 0; i < taps; i++) {
		double weight = 1.0 / (1 + i);

		if (i % 2 == 0)
			sum += weight * sample->values[i & 7];
		else
			sum -= weight * sample->values[i & 7] / 2;
	}
	return LIMIT(sum, -100.0, 100.0);
}

static double control_NN(double target, double measured, double dt)
{
	double error = target - measured;
	double slope = (error - last_NN) / dt;

	integral_NN = LIMIT(integral_NN + error * dt, -10.0, 10.0);
	last_NN = error;
	return gain_NN * (error + 0.1 * integral_NN + 0.01 * slope);
}

task reader_NN(int count)
{
	struct sample sample = {0};

	spolicy(FIFO_RM);
	for (int i = 0; i < count; i++) {
		sample.at = i;
		for (int j = 0; j < 8; j++)
			sample.values[j] = sin(i + j);
		switch (i % 3) {
		case 0:
			sample.values[0] += 1;
			break;
		case 1:
			sample.values[1] *= 2;
			/* fall through */
		default:
			sample.values[2] = 0;
		}
		cwrite(samples_NN, sample);
		WAIT();
	}
}

task controller_NN(int count)
{
	struct sample sample;
	double output = 0;

	while (count-- > 0) {
		cread(samples_NN, sample);
		output = control_NN(1.0, filter_NN(&sample, 8), 0.01);
		if (output > 50) {
			critical {
				integral_NN = 0;
				last_NN = 0;
			}
		}
		sample.values[0] = output;
		cwrite(state_NN, sample);
		if (fdelay(20, ms) > 0)
			fprintf(stderr, "axis NN is late\\n");
	}
}
"""

MAIN = """
int main(void)
{
%s	return 0;
}
"""


def source() -> str:
    """A program of at least `LINES` lines."""
    count = (LINES - HEAD.count("\n") - 6) // (TASK.count("\n") + 2) + 1
    tasks = "".join(TASK.replace("NN", str(n)) for n in range(count))
    calls = "".join(f"\treader_{n}(1000);\n\tcontroller_{n}(1000);\n" for n in range(count))
    return HEAD + tasks + MAIN % calls


def median(command: list[str], rounds: int) -> float:
    """CPU seconds that a command and its children take: what else the machine does counts little."""
    taken = []
    for _ in range(rounds):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(taken)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--quick", action="store_true", help="3 rounds")
    arguments = parser.parse_args()
    rounds = 3 if arguments.quick else arguments.rounds
    place = TARGET / "translate"
    place.mkdir(parents=True, exist_ok=True)
    text = source()
    (place / "large.c").write_text(text)
    onbeat = str(TARGET / "dist" / "onbeat")
    os.environ.setdefault("ONBEAT_HOME", str(ROOT))
    os.chdir(place)
    subprocess.run([onbeat, "cc", "-S", "large.c", "-o", "generated.c"], check=True)
    includes = [f"-I{ROOT / p}" for p in ("timedc/include", "compat/include", "crates/capi/include")]
    result = {
        "lines": text.count("\n"),
        "translate_s": median([onbeat, "cc", "-S", "large.c", "-o", "generated.c"], rounds),
        "preprocess_s": median(["cc", "-E", *includes, "-DTIMEDC_TRANSLATING", "large.c"], rounds),
        "compile_O0_s": median(["cc", "-c", *includes, "generated.c", "-o", "large.o"], rounds),
        "compile_O2_s": median(["cc", "-O2", "-c", *includes, "generated.c", "-o", "large.o"], rounds),
        "cc_O2_s": median([onbeat, "cc", "-O2", "-c", "large.c", "-o", "large.o"], rounds),
    }
    (place / "result.json").write_text(json.dumps(result, indent=2) + "\n")
    for name, value in result.items():
        print(f"{name:14} {value:8.3f}" if isinstance(value, float) else f"{name:14} {value:8}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
