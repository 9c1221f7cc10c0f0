"""Programs of asyncio in virtual and in real time, on the same event loop."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import not_run
from systems import channel, run, said, system

# Both ends of two channels, timers and timeouts of asyncio, a queue between tasks.
SENSOR = """
import asyncio, struct
from onbeat import aio

async def sense(talker):
    loop = asyncio.get_running_loop()
    for count in range(20):
        capture = await talker.write(struct.pack("<qq", count, count * count))
        print("sent", count, capture, round(loop.time() * 1e9), flush=True)
        await asyncio.sleep(0.010)

async def main(run):
    talker, listener = run.talker("reading", 16), run.listener("answer", 16)
    run.start()
    queue = asyncio.Queue()
    async def take():
        async for message in listener:
            queue.put_nowait(message)
        queue.put_nowait(None)
        print("over 1", flush=True)
    tasks = [asyncio.create_task(sense(talker)), asyncio.create_task(take())]
    begun = asyncio.get_running_loop().time()
    try:
        await asyncio.wait_for(asyncio.Event().wait(), 0.0005)
    except TimeoutError:
        pass
    except asyncio.TimeoutError:
        pass
    print("timeout", round((asyncio.get_running_loop().time() - begun) * 1e9))
    assert await asyncio.to_thread(sum, (1, 2)) == 3
    while (message := await queue.get()) is not None:
        print("answer", *struct.unpack("<qq", message.payload), flush=True)
    await asyncio.gather(*tasks)
    return "returned"

assert aio.run(main) == "returned"
"""

LOGIC = """
import asyncio, struct
import numpy as np
from onbeat import aio

async def tick():
    try:
        while True:
            await asyncio.sleep(0.001)
    finally:
        print("cancelled 1", flush=True)

async def main(run):
    talker, listener = run.talker("answer", 16), run.listener("reading", 16)
    run.start()
    ticking = asyncio.create_task(tick())
    values = np.zeros(2, "<i8")
    async for known in listener.into(values):
        now = run.now_ns()
        print("got", *values, known.sequence, known.lost, known.capture_ns, now, flush=True)
        values[1] = -values[1]
        await talker.write(values)
    # The run is over: there is no time to wait for.
    await asyncio.sleep(1)
    raise AssertionError("time passed after the end")

assert aio.run(main) is None
"""

# More than the rate allows, while another task shows that the loop is not held up.
HASTY = """
import asyncio
from onbeat import aio

async def main(run):
    talker = run.talker("reading", 16)
    run.start()
    ticks = 0
    async def tick():
        nonlocal ticks
        while True:
            await asyncio.sleep(0.001)
            ticks += 1
    ticking = asyncio.create_task(tick())
    for count in range(5):
        print("sent", await talker.write(bytes(16)))
    print("ticks", ticks)
    await run.sleep_until(60_000_000)
    assert run.now_ns() == 60_000_000

aio.run(main)
"""

WATCHER = """
from onbeat.channels import ChannelError, Run, Stopped

with Run() as run:
    ends = [run.listener("other", 16), run.listener("reading", 16)]
    run.start()
    try:
        ends[0].fileno()
    except ChannelError as error:
        print("refused", error.status)
    assert run.machine_time(0) is None
    try:
        while (end := run.select(ends)) is ends[1]:
            assert end.try_read() is not None and end.try_read() is None
            print("selected", run.now_ns())
            assert run.select(ends, 1_000_000) is None
    except Stopped:
        print("stopped 1")
"""


@pytest.mark.parametrize("time", ["virtual", "real", "netns"])
def test_a_program_of_asyncio_is_the_same_in_virtual_and_in_real_time(
    tmp_path: Path, time: str
) -> None:
    if time == "netns" and os.geteuid() != 0:
        not_run("superuser", "only it makes namespaces: asyncio is not tested on interfaces")
    channels = channel("reading", 1, "ab") + channel("answer", 2, "ba")
    lines = system(tmp_path, 1_000, channels, {"sensor": SENSOR, "logic": LOGIC}, time)
    sent, got, answers = (said(lines, word) for word in ("sent", "got", "answer"))
    captures = [line[1] for line in sent]
    assert said(lines, "over") == [[1]]
    assert said(lines, "cancelled") == [[1]]
    for count, line in enumerate(got):
        assert line[:5] == [count, count**2, count, 0, captures[count]]
        assert line[5] > captures[count]
    assert answers == [[count, -(count**2)] for count in range(len(answers))]
    if time == "virtual":
        assert [line[1:] for line in sent] == [[count * 10_000_000] * 2 for count in range(20)]
        assert len(got) == len(answers) == 20
        assert len({line[5] - line[4] for line in got}) == 1
        assert said(lines, "timeout") == [[500_000]]
        # What they say after the end of the run, they say beside each other.
        during = [line for line in lines if line[:4] in ("sent", "got ", "answ")]
        again = run(tmp_path, time)
        assert [line for line in again if line[:4] in ("sent", "got ", "answ")] == during
    else:
        # Nothing is said of how many a slow machine manages before the run ends.
        assert len(sent) >= len(got) >= len(answers) >= 1
        assert captures == sorted(set(captures))
        # A loop that counted in milliseconds would be as right; one that ended early would not.
        assert said(lines, "timeout")[0][0] >= 500_000


def test_a_writer_that_the_rate_holds_lets_other_tasks_execute(tmp_path: Path) -> None:
    channels = channel("reading", 1, "ab") + channel("other", 2, "ab")
    lines = system(tmp_path, 100, channels, {"hasty": HASTY, "watcher": WATCHER})
    sent = [line[0] for line in said(lines, "sent")]
    assert sent == [count * 10_000_000 for count in range(5)]
    assert said(lines, "ticks")[0][0] in (39, 40)
    assert len(said(lines, "selected")) == 5
    assert said(lines, "refused") == [[-3]]
    assert said(lines, "stopped") == [[1]]


def test_of_100_000_messages_at_1_khz_in_virtual_time_none_is_lost(tmp_path: Path) -> None:
    talker = (
        "from onbeat.channels import Run\n"
        "with Run() as run:\n"
        "    talker = run.talker('reading', 16)\n"
        "    run.start()\n"
        "    for count in range(COUNT):\n"
        "        run.sleep_until(count * 1_000_000)\n"
        "        talker.write(count.to_bytes(16, 'little'))\n"
    )
    listener = (
        "from onbeat.channels import Run\n"
        "with Run() as run:\n"
        "    listener = run.listener('reading', 16)\n"
        "    run.start()\n"
        "    for count, message in enumerate(listener):\n"
        "        assert message.sequence == count and message.lost == 0\n"
        "        assert int.from_bytes(message.payload, 'little') == count\n"
        "    print('received', count + 1)\n"
    )
    count = 100_000
    sources = {"talker": talker.replace("COUNT", str(count)), "listener": listener}
    described = channel("reading", 1, "ab", rate_hz=1000)
    lines = system(tmp_path, count + 10, described, sources)
    assert said(lines, "received") == [[count]]
