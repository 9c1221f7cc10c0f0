"""The bridges of python/examples/bridges, with a real broker and with ROS 2 itself."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import paho.mqtt.client as mqtt
import pytest
from conftest import ROOT, not_run

BRIDGES = ROOT / "python/examples/bridges"
PATIENCE_S = 60
QUEUE = 64


def until(what: Callable[[], object]) -> None:
    """Wait until something is so."""
    last = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < last, "it did not happen"
        time.sleep(0.02)


class Broker:
    """A mosquitto, on a port of this machine that was free."""

    def __init__(self, log: Path) -> None:
        """Choose a port."""
        with socket.create_server(("localhost", 0)) as free:
            self.port = free.getsockname()[1]
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; it answers when this returns."""
        where = shutil.which("mosquitto") or "/usr/sbin/mosquitto"
        with self._log.open("ab") as log:
            command = [where, "-p", str(self.port)]
            self._process = subprocess.Popen(command, stdout=log, stderr=log)

        def answers() -> bool:
            try:
                socket.create_connection(("localhost", self.port), 1).close()
            except OSError:
                return False
            return True

        until(answers)

    def tell(self, number: signal.Signals) -> None:
        """Stop it, or let it continue."""
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        """End it without farewell."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    """A broker, not started yet."""
    if not (shutil.which("mosquitto") or Path("/usr/sbin/mosquitto").exists()):
        not_run("tools", "mosquitto is missing: the bridge to MQTT is not tested")
    broker = Broker(tmp_path / "mosquitto.log")
    yield broker
    broker.kill()


class Client:
    """What is on the other side of the broker."""

    def __init__(self, port: int) -> None:
        """Connect."""
        self.readings: list[list[float]] = []
        self._client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
        self._client.on_message = lambda _, __, m: self.readings.append(json.loads(m.payload))
        self._client.on_connect = lambda *_: self._client.subscribe("plant/reading")
        self._client.connect("localhost", port)
        self._client.loop_start()

    def say(self, payload: str) -> None:
        """Publish a setpoint."""
        self._client.publish("plant/setpoint", payload, 1).wait_for_publish(PATIENCE_S)

    def leave(self) -> None:
        """Disconnect."""
        self._client.disconnect()
        self._client.loop_stop()


class System:
    """The example while it runs."""

    def __init__(self, place: Path, file: str, seconds: int, python: Path, **more: str) -> None:
        """Start it, where `python3` is a certain one."""
        self._out, self._said = place / "out", place / "said"
        more["PATH"] = f"{python.parent}:{os.environ['PATH']}"
        # Without buffers a line is written in two parts, and another program's may come between.
        more |= {"PYTHONPATH": str(ROOT / "python/src"), "PYTHONUNBUFFERED": ""}
        command = [os.environ["ONBEAT"], "run", str(BRIDGES / file), "--out", str(self._out)]
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(
                [*command, "--duration", f"{seconds}s"],
                stdout=said,
                stderr=said,
                env={**os.environ, **more},
            )

    def said(self) -> str:
        """What its programs have printed."""
        return self._said.read_text()

    def end(self) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, int]]]:
        """Wait for its end; return what bridge and record say of both channels."""
        status = self._process.wait()
        assert status == 0, self.said()
        reports = {}
        for line in self.said().splitlines():
            words = line.split()
            if words[:2] in (["bridge", "out"], ["bridge", "in"]):
                counts = zip(words[4::2], map(int, words[5::2]), strict=True)
                reports[words[2]] = dict(counts)
        results = json.loads((self._out / "results.json").read_text())
        recorded = {channel["name"]: channel for channel in results["runs"][0]["channels"]}
        return reports, recorded


def balanced(counts: dict[str, int]) -> bool:
    """Whether every message is accounted for."""
    return counts["taken"] == sum(counts[n] for n in ("given", "dropped", "left", "refused"))


def test_channels_and_topics_of_a_broker_are_connected(tmp_path: Path, broker: Broker) -> None:
    broker.start()
    place = f"localhost:{broker.port}"
    system = System(tmp_path, "system.toml", 10, Path(sys.executable), BRIDGE_BROKER=place)
    client = Client(broker.port)
    until(lambda: client.readings)
    for payload in ("[25]", "[25, 3]", "warm", "[NaN]", '"25"', "[true, []]"):
        client.say(payload)
    # The heater obeys: a real program at each end, and a broker between.
    until(lambda: client.readings[-1][0] > 24)
    reports, recorded = system.end()
    client.leave()
    reading, setpoint = reports["reading"], reports["setpoint"]
    assert "setpoint 25.0" in system.said()
    assert setpoint == {"taken": 6, "given": 1, "dropped": 0, "left": 0, "refused": 5}
    assert balanced(reading) and reading["given"] >= len(client.readings)
    assert recorded["reading"]["lost"] == recorded["setpoint"]["lost"] == 0
    assert recorded["reading"]["received"] == reading["taken"]
    assert all(len(values) == 2 for values in client.readings)


@pytest.mark.parametrize("how", ["gone", "stalled"])
def test_channels_do_not_wait_for_a_broker(tmp_path: Path, broker: Broker, how: str) -> None:
    broker.start()
    place = f"localhost:{broker.port}"
    # In 8 s there are more messages than the queue and, at QoS 1, what may be on the way.
    directory = tmp_path / "bridges"
    shutil.copytree(BRIDGES, directory)
    text = (directory / "system.toml").read_text()
    changed = text.replace('"mqtt_bridge.py",', '"mqtt_bridge.py", "--qos", "1",')
    assert changed != text
    (directory / "system.toml").write_text(changed)
    file = str(directory / "system.toml")
    system = System(tmp_path, file, 8, Path(sys.executable), BRIDGE_BROKER=place)
    until(lambda: "the broker answers" in system.said())
    if how == "gone":
        broker.kill()
        until(lambda: "the broker is gone" in system.said())
    else:
        broker.tell(signal.SIGSTOP)
    reports, recorded = system.end()
    if how == "stalled":
        broker.tell(signal.SIGCONT)
    reading = reports["reading"]
    # The record is complete, and what the other side did not get is counted.
    assert recorded["reading"]["lost"] == 0
    assert recorded["reading"]["received"] == reading["taken"] > 2 * QUEUE
    assert reading["dropped"] >= reading["taken"] - reading["given"] - QUEUE - 1 > QUEUE
    assert balanced(reading)


def test_a_broker_that_comes_later_gets_the_newest_messages(tmp_path: Path, broker: Broker) -> None:
    place = f"localhost:{broker.port}"
    system = System(tmp_path, "system.toml", 12, Path(sys.executable), BRIDGE_BROKER=place)
    time.sleep(3)
    broker.start()
    client = Client(broker.port)
    until(lambda: client.readings)
    client.say("[21]")
    reports, recorded = system.end()
    client.leave()
    assert "setpoint 21.0" in system.said()
    assert reports["setpoint"]["given"] == 1
    assert balanced(reports["reading"])
    assert recorded["reading"]["lost"] == 0


def test_channels_and_topics_of_ros_2_are_connected(tmp_path: Path) -> None:
    named = os.environ.get("ONBEAT_ROS_PYTHON")
    if named is None:
        not_run("machine", "ROS 2 cannot be installed: its bridge is not tested")
    # Nodes of other machines, or of other tests, are not spoken to.
    alone = {"ROS_DOMAIN_ID": str(os.getpid() % 100 + 1)}
    alone["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    system = System(tmp_path, "ros2.toml", 20, Path(named), **alone)
    peer = subprocess.run(
        [named, Path(__file__).parent / "ros2_peer.py", "24"],
        capture_output=True,
        text=True,
        env={**os.environ, **alone},
        check=False,
    )
    reports, recorded = system.end()
    assert peer.returncode == 0, peer.stdout + peer.stderr + system.said()
    assert "warm" in peer.stdout
    assert "setpoint 24.0" in system.said()
    assert balanced(reports["reading"]) and reports["reading"]["given"] > 0
    assert reports["setpoint"]["given"] >= 1 and reports["setpoint"]["refused"] >= 1
    assert recorded["reading"]["lost"] == recorded["setpoint"]["lost"] == 0
