"""Channels from Python: plain programs in virtual time, and a live reactor runtime in real time."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from systems import HOSTS, channel, describe, programs, run, said, system

from onbeat.channels import ChannelError, Run

REACTORS = Path(__file__).parent / "reactors"
DELAY_NS = 2_000_000

TALKER = """
from onbeat.channels import ChannelError, Run

with Run() as run:
    try:
        run.talker("reading", 15)
    except ChannelError as error:
        print("refused", error.status, error)
    talker = run.talker("reading", 16)
    run.start()
    try:
        talker.write(bytes(15))
    except ValueError as error:
        print("refused", error)
    for count in range(5):
        assert run.sleep_until(count * 10_000_000) == count * 10_000_000
        print("sent", talker.write(bytes([count] * 16)))
"""

LISTENER = """
from onbeat.channels import Run, Stopped

with Run() as run:
    listener = run.listener("reading", 16)
    run.start()
    for _ in range(4):
        message = listener.read_wait()
        print("got", message.payload.hex(), message, run.now_ns())
    message = listener.read()
    print("got", message.payload.hex(), message, run.now_ns())
    assert listener.read(timeout_ns=1_000_000) is None
    try:
        listener.read()
    except Stopped:
        print("stopped")
"""


def test_python_sends_and_receives_in_virtual_time(tmp_path: Path) -> None:
    sources = {"talker": TALKER, "listener": LISTENER}
    lines = system(tmp_path, 200, channel("reading", 1, "ab"), sources)
    assert [line for line in lines if line.startswith("sent")] == [
        f"sent {count * 10_000_000}" for count in range(5)
    ]
    got = [line for line in lines if line.startswith("got")]
    assert len(got) == 5
    latencies = {line.split("latency_ns=")[1].split(",")[0] for line in got}
    assert len(latencies) == 1
    latency = int(latencies.pop())
    assert 0 < latency < DELAY_NS
    for count, line in enumerate(got):
        assert line.startswith(f"got {bytes([count] * 16).hex()} ")
        assert f"capture_ns={count * 10_000_000}," in line
        assert f"sequence={count}, lost=0, late=False" in line
        # The last one is read when it comes; the others are kept until capture + D.
        at = count * 10_000_000 + (latency if count == 4 else DELAY_NS)
        assert line.endswith(f" {at}")
    assert "stopped" in lines
    refused = [line for line in lines if line.startswith("refused")]
    assert refused[0].startswith("refused -3 channel `reading` carries messages of 16 octets")
    assert refused[1] == "refused 15 octets, but the channel has 16"


SILENT = """
from onbeat.channels import Run, Stopped

with Run() as run:
    listener = run.listener("reading", 16)
    listener.deadline(15_000_000)
    run.start()
    for _ in range(6):
        assert run.select([listener]) is listener
        message = listener.try_read()
        known = listener.liveness()
        print("known", message and message.sequence, run.now_ns() // 1_000_000, known)
    listener.deadline(0)
    try:
        run.select([listener])
    except Stopped:
        print("stopped")
"""


MISUSE = """
import threading
from onbeat.channels import ChannelError, LinkDown, Run

def refused(kind, call, *arguments):
    try:
        call(*arguments)
    except kind as error:
        print("refused", error)
    else:
        raise SystemExit(f"{call} took {arguments}")

run = Run()
listener = run.listener("back", 16)
talker = run.talker("reading", 16)
refused(ChannelError, listener.try_read)
refused(ChannelError, listener.read, 1_000)
run.start()
refused(TypeError, run.select, [talker])
refused(OverflowError, run.sleep_until, 2**63)
refused(OverflowError, listener.read, 2**64)
refused(ctypes.ArgumentError, run.listener, "back", 2**64 + 16)
refused(ctypes.ArgumentError, listener.deadline, 2**64)
refused(ValueError, run.listener, "back\\0x", 16)
assert run.select([listener, listener], 1_000_000) is None
if run.machine_time(0):
    # What another thread uses stays.
    waits = threading.Thread(target=lambda: run.select([listener], 300_000_000))
    waits.start()
    while not listener._busy.locked():
        pass
    run.close()
    assert run._context and listener._handle and not talker._handle
    waits.join()
    # A wait ends for an exception of a signal's handler.
    def handler(number, frame):
        raise InterruptedError("a signal")
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    refused(InterruptedError, listener.read)
run.close()
assert not run._context and not listener._handle
print("done")
"""
SILENCE = """
from onbeat.channels import Run, Stopped

with Run() as run:
    run.talker("back", 16)
    run.listener("reading", 16)
    run.start()
    try:
        run.sleep_until(2**63 - 1)
    except Stopped:
        pass
"""


@pytest.mark.parametrize("time", ["virtual", "real"])
def test_misuse_is_refused_and_what_is_in_use_stays(tmp_path: Path, time: str) -> None:
    text = "import ctypes\nimport signal\n" + MISUSE
    channels = channel("reading", 1, "ab") + channel("back", 2, "ba")
    describe(tmp_path, 2_000, channels, {"misuse": text, "silence": SILENCE})
    lines = run(tmp_path, time)
    assert "done" in lines
    assert sum(line.startswith("refused") for line in lines) == (9 if time == "real" else 8)


def test_a_deadline_is_told_by_select_and_liveness(tmp_path: Path) -> None:
    sources = {"talker": TALKER, "listener": SILENT}
    lines = system(tmp_path, 200, channel("reading", 1, "ab"), sources)
    known = [line for line in lines if line.startswith("known")]
    # Messages at 0 to 40 ms, 10 ms apart; then none.
    assert [line.split()[1:3] for line in known[:5]] == [
        [str(count), str(count * 10)] for count in range(5)
    ]
    assert known[5].split()[1:3] == ["None", "55"]
    assert "matched=True, silent=False" in known[4] and "deadline_missed=0" in known[4]
    assert "matched=True, silent=True" in known[5] and "changed=True" in known[5]
    assert "deadline_missed=1, restarts=0, second_talker=0" in known[5]


def test_outside_of_a_run_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ONBEAT_COORDINATOR", "ONBEAT_FABRIC", "ONBEAT_INTERFACE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ChannelError, match="`onbeat run`") as error:
        Run()
    assert error.value.status == -2


def test_a_live_reactor_runtime_exchanges_messages_through_channels(tmp_path: Path) -> None:
    pytest.importorskip("xronos", reason="xronos has no wheel for this machine")
    text = HOSTS.format(duration_ms=8_000)
    text += channel("reading", 1, "ab") + channel("answer", 2, "ba")
    (tmp_path / "system.toml").write_text(text + programs(("sensor", "logic")))
    for name in ("sensor.py", "logic.py"):
        shutil.copy(REACTORS / name, tmp_path)
    lines = run(tmp_path, "real")
    sent, got, answers = (said(lines, word) for word in ("sent", "got", "answer"))
    # Nothing is said of how many a slow machine manages before the run ends.
    assert 25 >= len(sent) >= len(got) >= len(answers) >= 1
    assert [line[0] for line in sent] == list(range(len(sent)))
    captures = [capture for _, capture in sent]
    assert captures == sorted(set(captures))
    # All values in order, and never before capture + D.
    for count, line in enumerate(got):
        assert line[:5] == [count, count**2, count, 0, captures[count]]
        assert line[5] >= captures[count] + DELAY_NS
    assert answers == [[count, -(count**2)] for count in range(len(answers))]
