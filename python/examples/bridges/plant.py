"""A heater: the temperature follows the power, the power the wanted temperature."""

from __future__ import annotations

import asyncio

import numpy as np

from onbeat import aio

PERIOD_NS = 10_000_000
OUTSIDE = 20.0


async def obey(setpoints: aio.Listener, wanted: np.ndarray) -> None:
    """Keep the newest setpoint where the controller reads it."""
    async for _ in setpoints.into(wanted):
        print(f"setpoint {wanted[0]}", flush=True)


async def main(run: aio.Run) -> None:
    """Send a reading every 10 ms."""
    talker = run.talker("reading", 16)
    setpoints = run.listener("setpoint", 8)
    run.start()
    wanted = np.full(1, OUTSIDE)
    reading = np.array([OUTSIDE, 0.0])
    obeying = asyncio.create_task(obey(setpoints, wanted))
    step = 0
    while not obeying.done():
        temperature, _ = reading
        power = min(max(4.0 * (wanted[0] - temperature), 0.0), 100.0)
        reading[:] = temperature + 0.01 * (power - 0.5 * (temperature - OUTSIDE)), power
        await talker.write(reading)
        step += 1
        await run.sleep_until(step * PERIOD_NS)


if __name__ == "__main__":
    aio.run(main)
