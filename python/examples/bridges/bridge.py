"""What bridges of channels have in common, whatever is on the other side.

The side of channels never waits for the other one. Each direction has a queue of QUEUE messages: if
the other side is gone or slow, the oldest message is dropped and counted. A thread sends what is in
the queue, and may wait as long as the other side makes it.

A message is a row of doubles, as in `plant.py`; another layout needs another `pack` and `unpack`.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event
from typing import Protocol

from onbeat import aio

QUEUE = 64
# Programs have 10 s to end; so long what is queued may still be sent.
FAREWELL_S = 2.0


def unpack(octets: bytes) -> list[float]:
    """Give the values of a message."""
    return list(struct.unpack(f"<{len(octets) // 8}d", octets))


def pack(values: list[float], size: int) -> bytes:
    """Make a message; ValueError if these are no values of one."""
    if not isinstance(values, list) or not all(isinstance(v, int | float) for v in values):
        raise ValueError("it is no row of numbers")
    if not all(map(math.isfinite, values)):
        raise ValueError("a number is not finite")
    octets = struct.pack(f"<{len(values)}d", *values)
    if len(octets) != size:
        raise ValueError(f"{len(octets)} octets, but the channel has {size}")
    return octets


class Queue:
    """The newest QUEUE items; older ones are dropped and counted."""

    def __init__(self) -> None:
        """Begin without any."""
        self._items: deque[list[float]] = deque()
        self._changed = threading.Condition()
        self.dropped = 0

    def put(self, item: list[float]) -> bool:
        """Add one; return whether there was none."""
        with self._changed:
            was_empty = not self._items
            if len(self._items) == QUEUE:
                self._items.popleft()
                self.dropped += 1
            self._items.append(item)
            self._changed.notify()
            return was_empty

    def take(self, timeout_s: float = 0.0) -> list[float] | None:
        """Take the oldest; None if there was none in time."""
        with self._changed:
            if timeout_s and not self._items:
                self._changed.wait(timeout_s)
            return self._items.popleft() if self._items else None

    def __len__(self) -> int:
        """Give how many there are."""
        return len(self._items)


@dataclass
class Route:
    """A channel, and the topic it is connected to."""

    channel: str
    size: int
    topic: str
    queue: Queue = field(default_factory=Queue)
    taken: int = 0
    given: int = 0
    refused: int = 0

    @classmethod
    def parse(cls, text: str) -> Route:
        """Read CHANNEL:OCTETS:TOPIC."""
        channel, octets, topic = text.split(":", 2)
        size = int(octets)
        if size <= 0 or size % 8:
            raise ValueError("a message is a row of doubles")
        return cls(channel, size, topic)

    def report(self, direction: str) -> None:
        """Say what became of all messages."""
        print(
            f"bridge {direction} {self.channel} {self.topic}: taken {self.taken}"
            f" given {self.given} dropped {self.queue.dropped} left {len(self.queue)}"
            f" refused {self.refused}",
            flush=True,
        )


class Outside(Protocol):
    """The other side."""

    def start(self, topics: list[str], take: Callable[[str, list[float]], None]) -> None:
        """Begin to connect; give what comes for these topics to `take`, from any thread."""

    def send(self, topic: str, values: list[float], closing: Event) -> bool:
        """Send; False if it is to be tried again. Waits a short time only, or for `closing`."""

    def stop(self) -> None:
        """Disconnect."""


def send_all(route: Route, outside: Outside, ending: Event, closing: Event) -> None:
    """Send what is in a queue, as a thread: the rest, too, when the run ends."""
    while len(route.queue) or not ending.is_set():
        values = route.queue.take(0.1)
        if values is None:
            continue
        while not closing.is_set():
            if outside.send(route.topic, values, closing):
                route.given += 1
                break
        else:
            route.queue.dropped += 1


async def outwards(listener: aio.Listener, route: Route) -> None:
    """Put a channel's messages into the queue."""
    async for message in listener:
        route.taken += 1
        route.queue.put(unpack(message.payload))


async def inwards(talker: aio.Talker, route: Route, come: asyncio.Event) -> None:
    """Write what is in the queue, as fast as the channel's rate allows."""
    while True:
        await come.wait()
        come.clear()
        while (values := route.queue.take()) is not None:
            await talker.write(pack(values, route.size))
            route.given += 1


async def connect(
    run: aio.Run, outside: Outside, outgoing: list[Route], incoming: list[Route]
) -> None:
    """Connect channels and topics until the run is over."""
    loop = asyncio.get_running_loop()
    listeners = [(run.listener(route.channel, route.size), route) for route in outgoing]
    talkers = [(run.talker(route.channel, route.size), route) for route in incoming]
    comes = {route.topic: (route, asyncio.Event()) for route in incoming}
    run.start()

    def take(topic: str, values: list[float]) -> None:
        route, come = comes[topic]
        route.taken += 1
        try:
            pack(values, route.size)
        except ValueError as error:
            route.refused += 1
            print(f"bridge refuses a message of {topic}: {error}", flush=True)
            return
        if route.queue.put(values):
            loop.call_soon_threadsafe(come.set)

    ends = (Event(), Event())
    threads = [threading.Thread(target=send_all, args=(r, outside, *ends)) for r in outgoing]
    try:
        outside.start(list(comes), take)
        for thread in threads:
            thread.start()
        tasks = [outwards(listener, route) for listener, route in listeners]
        tasks += [inwards(talker, route, comes[route.topic][1]) for talker, route in talkers]
        await asyncio.gather(*tasks)
    finally:
        last = time.monotonic() + FAREWELL_S
        ending, closing = ends
        ending.set()
        for thread in threads:
            thread.join(max(last - time.monotonic(), 0.0))
        closing.set()
        outside.stop()
        for thread in threads:
            thread.join()
        for direction, routes in (("out", outgoing), ("in", incoming)):
            for route in routes:
                route.report(direction)


def arguments(description: str) -> argparse.ArgumentParser:
    """Parse what all bridges understand."""
    parser = argparse.ArgumentParser(description=description)
    route = {"type": Route.parse, "default": [], "action": "append", "metavar": "CH:OCTETS:TOPIC"}
    parser.add_argument("--out", help="a channel that goes to a topic", **route)
    parser.add_argument("--in", dest="into", help="a channel that comes from a topic", **route)
    return parser
