"""Messages in memory of the program's own: nothing is copied on the way to the C interface."""

from __future__ import annotations

from pathlib import Path

from systems import channel, said, system

# What both programs do: they note the addresses that the C interface is given.
NOTED = """
import tracemalloc
import numpy as np
from onbeat.channels import Run, Stopped

READING = np.dtype([("count", "<u4"), ("kind", "u1"), ("flags", "u1", 3), ("value", "<f8")])

def noted(run, name):
    function = getattr(run._library, name)
    addresses = set()
    def call(handle, address, *rest):
        addresses.add(address)
        return function(handle, address, *rest)
    setattr(run._library, name, call)
    return addresses

def refused(call, *arguments):
    try:
        call(*arguments)
    except (BufferError, TypeError, ValueError) as error:
        print("refused", error)
"""

TALKER = (
    NOTED
    + """
with Run() as run:
    addresses = noted(run, "onbeat_write")
    talker = run.talker("reading", READING.itemsize)
    run.start()
    reading = np.zeros((), READING)
    refused(talker.write, np.zeros(4, "<i4")[::2])
    refused(talker.write, 16)
    for count in range(2000):
        run.sleep_until(count * 1_000_000)
        reading["count"], reading["value"] = count, count / 2
        talker.write(reading)
    assert addresses == {reading.ctypes.data}
    octets, frozen = bytes(16), np.ones(2)
    frozen.flags.writeable = False
    # Memory that is not to be written into, and parts of other memory.
    for count, payload in enumerate((octets, frozen, memoryview(bytearray(20))[4:]), 2000):
        run.sleep_until(count * 1_000_000)
        talker.write(payload)
    assert frozen.ctypes.data in addresses
"""
)

LISTENER = (
    NOTED
    + """
with Run() as run:
    addresses = noted(run, "onbeat_read")
    listener = run.listener("reading", READING.itemsize)
    run.start()
    block = np.zeros(4, READING)
    refused(listener.read_into, bytes(16))
    refused(listener.read_into, block)
    second = block[1:2]
    assert listener.try_read_into(second) is None
    before = 0
    for count in range(2000):
        if count == 1000:
            tracemalloc.start()
            before = tracemalloc.get_traced_memory()[0]
        known = listener.read_into(second)
        assert known.sequence == count and known.lost == 0 and not known.repeated
        assert second["count"][0] == count and second["value"][0] == count / 2
    print("grown", tracemalloc.get_traced_memory()[0] - before)
    assert addresses == {block.ctypes.data + READING.itemsize}
    assert block[0] == block[2] == np.zeros((), READING)
    rest = [message.payload for message in listener]
    assert rest == [bytes(16), np.ones(2).tobytes(), bytes(16)], rest
    print("done 1")
"""
)


def test_arrays_are_sent_and_filled_where_they_are(tmp_path: Path) -> None:
    described = channel("reading", 1, "ab", rate_hz=1000)
    lines = system(tmp_path, 2_100, described, {"talker": TALKER, "listener": LISTENER})
    assert said(lines, "done") == [[1]]
    # A message's 16 octets, kept 1,000 times, would be 16 kB.
    assert said(lines, "grown")[0][0] < 4_000
    refused = [line for line in lines if line.startswith("refused")]
    assert len(refused) == 4, refused
    advice = "give an object with memory"
    assert sum(f"{advice} in one piece" in line for line in refused) == 2
    assert sum(f"{advice} to write into in one piece" in line for line in refused) == 1
    assert "refused 64 octets, but the channel has 16" in refused
