"""Connects channels with topics of an MQTT broker: rows of doubles as lists in JSON."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from typing import Any

import paho.mqtt.client as mqtt
from bridge import arguments, connect

from onbeat import aio

SENT_S = 0.1


class Broker:
    """A broker, which may come and go."""

    def __init__(self, host: str, port: int, qos: int) -> None:
        """Keep where it is."""
        self._place = (host, port)
        self._qos = qos
        self._connected = threading.Event()
        self._client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
        self._client.reconnect_delay_set(1, 4)

    def start(self, topics: list[str], take: Callable[[str, list[float]], None]) -> None:
        """Begin to connect."""

        def on_connect(*answer: Any) -> None:  # noqa: ANN401 - as paho has it
            reason = answer[3]
            print(f"bridge: the broker answers: {reason}", flush=True)
            if reason.is_failure:
                return
            # Subscriptions are lost with the connection.
            for topic in topics:
                self._client.subscribe(topic, self._qos)
            self._connected.set()

        def on_disconnect(*_: object) -> None:
            print("bridge: the broker is gone", flush=True)
            self._connected.clear()

        def on_message(_: mqtt.Client, __: object, message: mqtt.MQTTMessage) -> None:
            try:
                values = json.loads(message.payload)
            except ValueError:
                values = []
            take(message.topic, values)

        self._client.on_connect = on_connect
        self._client.on_disconnect = on_disconnect
        self._client.on_message = on_message
        self._client.connect_async(*self._place, keepalive=10)
        # A thread of its own, which connects again and again.
        self._client.loop_start()

    def send(self, topic: str, values: list[float], closing: threading.Event) -> bool:
        """Publish, and wait until it has been sent; at QoS 1 until the broker has it."""
        if not self._connected.wait(SENT_S):
            return False
        info = self._client.publish(topic, json.dumps(values), self._qos)
        try:
            while not info.is_published():
                if closing.is_set():
                    return False
                info.wait_for_publish(SENT_S)
        except (RuntimeError, ValueError):
            # The connection was lost before: at QoS 0 nothing is kept.
            return False
        return True

    def stop(self) -> None:
        """Disconnect; a broker that takes nothing is not waited for."""
        self._client.disconnect()
        stopping = threading.Thread(target=self._client.loop_stop, daemon=True)
        stopping.start()
        stopping.join(1.0)


def main() -> None:
    """Join the run, and connect."""
    parser = arguments(__doc__)
    place = os.environ.get("BRIDGE_BROKER", "localhost:1883")
    parser.add_argument("--broker", default=place, metavar="HOST:PORT", help="BRIDGE_BROKER")
    parser.add_argument("--qos", type=int, choices=(0, 1), default=0)
    given = parser.parse_args()
    host, _, port = given.broker.rpartition(":")
    broker = Broker(host, int(port), given.qos)
    aio.run(lambda run: connect(run, broker, given.out, given.into))


if __name__ == "__main__":
    main()
