"""Network channels from Python, over the C interface of Onbeat.

A program joins a run of ``onbeat run``, opens its ends, and starts::

    with Run() as run:
        talker = run.talker("reading", 16)
        run.start()
        talker.write(bytes(16))

All times are nanoseconds of the network clock since the start of the run. In virtual time only the
thread that made the :class:`Run` may call; in real time any thread may, each end one at a time.
Calls that wait let other threads of Python execute. :mod:`onbeat.aio` has the same for asyncio.

A message is any object that lends its memory in one piece: ``bytes``, ``bytearray``, a memoryview,
a NumPy array. The C interface is given the address of that memory; nothing is copied on the way.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from onbeat import _library

_STOPPED = 1
_EMPTY = 2
_TIMED_OUT = 3
_LINK_DOWN = 6
_REFUSED = -3
_LATE = 1
_UNCERTAIN = 4
_REPEATED = 64
_MATCHED = 1
_DEADLINE_MISSED = 2
_OUT_OF_SYNC = 4
_RESTARTED = 8
_NEVER = -(2**63)
_Found = TypeVar("_Found")
_SLICE_NS = 100_000_000
"""In real time a wait returns to Python so often, which then looks for signals."""


class ChannelError(Exception):
    """A call failed: the status, as in ``onbeat.h``, and why."""

    def __init__(self, status: int, why: str) -> None:
        """Keep both."""
        super().__init__(why)
        self.status = status


class Stopped(Exception):  # noqa: N818 - it is no error
    """The run is over: clean up and exit."""


class LinkDown(Exception):  # noqa: N818 - it is no error
    """The interface is down or not there now: the message was not sent; later ones may be."""


@dataclass(frozen=True)
class Liveness:
    """What a listener knows of its talker, by the messages that were read."""

    matched: bool
    """A message of the talker has come."""
    silent: bool
    """None has come for longer than the deadline."""
    out_of_sync: bool
    """The talker's clock, by its last message, or this host's is not known to be synchronised."""
    restarted: bool
    """Since the last call: the talker was started again, or another one has taken its place."""
    changed: bool
    """Since the last call anything of this began or ended."""
    deadline_missed: int
    """How often no message came for longer than the deadline."""
    restarts: int
    """How often the talker was started again or replaced."""
    second_talker: int
    """Messages of a second talker, all rejected."""
    last_arrival_ns: int | None
    """When the last message came; ``None`` before the first."""


@dataclass(frozen=True)
class Metadata:
    """What is known of a received message."""

    capture_ns: int
    """When the value was captured, by the talker's clock."""
    latency_ns: int
    """Receipt minus capture."""
    age_ns: int
    """Now minus capture, at the return of the call."""
    repeated: bool
    """Whether it is the last message again, not a new one."""
    uncertain: bool
    """Whether the talker's clock was not synchronised."""
    sequence: int
    """Its number, from 0."""
    lost: int
    """How many were lost just before it."""
    late: bool
    """Whether it came later than capture + D."""


@dataclass(frozen=True)
class Message(Metadata):
    """A received message."""

    payload: bytes
    """Its octets."""


class Run:
    """A program's membership in a run. Leaves it at the end of a ``with``."""

    def __init__(self, library: str | Path | None = None) -> None:
        """Join. The library is the given one, that of ``ONBEAT_HOME``, the wheel's or installed."""
        self._library = _library.load(library)
        self._context = ctypes.c_void_p()
        self._ends: list[Talker | Listener] = []
        # How many calls of other threads use the context: what is in use is not freed.
        self._inside = 0
        self._lock = threading.Lock()
        # Known from the start on: asked once, not before each wait.
        self._real: bool | None = None
        self._call("onbeat_open", ctypes.byref(self._context))

    def __enter__(self) -> Run:
        """Stay in the run."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the run."""
        self.close()

    def _call(self, name: str, *arguments: object) -> int:
        status = getattr(self._library, name)(*arguments)
        if status < 0:
            raise ChannelError(status, self._library.onbeat_last_error().decode())
        if status == _STOPPED:
            raise Stopped
        if status == _LINK_DOWN:
            raise LinkDown
        return status

    def _enter(self, name: str, *arguments: object) -> int:
        """Call with the context, which stays until the call returns."""
        with self._lock:
            self._inside += 1
        try:
            return self._call(name, self._context, *arguments)
        finally:
            with self._lock:
                self._inside -= 1

    def _is_real(self) -> bool:
        """Whether time passes by itself, as far as that is known yet."""
        if self._real is None:
            try:
                self._real = self.machine_time(0) is not None
            except ChannelError:
                return False
        return self._real

    def talker(self, channel: str, size: int) -> Talker:
        """Open the talker endpoint of a channel for messages of ``size`` octets."""
        return Talker(self, channel, size)

    def listener(self, channel: str, size: int) -> Listener:
        """Open a listener endpoint of a channel for messages of ``size`` octets."""
        return Listener(self, channel, size)

    def start(self) -> None:
        """End set-up: wait until all programs of the run have."""
        self._enter("onbeat_start")

    def stop(self) -> None:
        """End all waits with :class:`Stopped` soon: on an interface. A run ends by itself."""
        self._enter("onbeat_stop")

    def now_ns(self) -> int:
        """Read this host's copy of the network clock."""
        now = ctypes.c_int64()
        self._enter("onbeat_now", ctypes.byref(now))
        return now.value

    def sleep_until(self, until_ns: int) -> int:
        """Sleep until the clock reads ``until_ns``; return what it reads then."""
        until_ns = _library.INT64.checked(until_ns)
        woke = ctypes.c_int64()
        while self._is_real() and (soon := self.now_ns() + _SLICE_NS) < until_ns:
            self._enter("onbeat_sleep_until", soon, ctypes.byref(woke))
        self._enter("onbeat_sleep_until", until_ns, ctypes.byref(woke))
        return woke.value

    def select(self, listeners: Sequence[Listener], timeout_ns: int = -1) -> Listener | None:
        """Wait until one of them has something to read, and return the first that has.

        None if none had within ``timeout_ns``; a negative one is no limit. What is there may turn
        out not to be for programs: read it with :meth:`Listener.try_read`.
        """
        if others := [end for end in listeners if not isinstance(end, Listener)]:
            raise TypeError(f"{others[0]!r} is no listener")
        count, index = len(listeners), ctypes.c_size_t()
        out = ctypes.byref(index)

        def once(timeout_ns: int | None) -> Listener | None:
            wait = -1 if timeout_ns is None else timeout_ns
            # In one order, so that two threads never wait for each other's.
            with ExitStack() as held:
                for end in sorted(set(listeners), key=id):
                    held.enter_context(end._busy)
                    end._open()
                handles = (ctypes.c_void_p * count)(*(end._handle.value for end in listeners))
                status = self._enter("onbeat_select", handles, count, wait, out)
                return None if status == _TIMED_OUT else listeners[index.value]

        return self._patiently(once, None if timeout_ns < 0 else timeout_ns)

    def _patiently(
        self, once: Callable[[int | None], _Found | None], timeout_ns: int | None
    ) -> _Found | None:
        """Wait for at most so long, by waits that are short where time passes by itself."""
        if timeout_ns is not None:
            timeout_ns = _library.INT64.checked(timeout_ns)
        if not self._is_real():
            return once(timeout_ns)
        until = None if timeout_ns is None else self.now_ns() + timeout_ns
        while True:
            left = _SLICE_NS if until is None else until - self.now_ns()
            found = once(max(min(left, _SLICE_NS), 0))
            if found is not None or (until is not None and left <= _SLICE_NS):
                return found

    def machine_time(self, at_ns: int) -> tuple[int, int] | None:
        """Say which clock of the machine reads what when the network clock reads ``at_ns``.

        A number as of ``time.clock_gettime``, and nanoseconds; None in virtual time, which no clock
        of the machine tells.
        """
        clock, machine = ctypes.c_int32(), ctypes.c_int64()
        try:
            out = (ctypes.byref(clock), ctypes.byref(machine))
            self._enter("onbeat_machine_time", at_ns, *out)
        except ChannelError as error:
            if error.status == _REFUSED:
                return None
            raise
        return clock.value, machine.value

    def close(self) -> None:
        """Close all ends and leave the run; a second time does nothing.

        While another thread waits at an end, that end and the run stay open until the process ends.
        So does the run while another thread sleeps in it.
        """
        self._ends = [end for end in self._ends if not end.close()]
        with self._lock:
            if self._context and not self._ends and not self._inside:
                self._library.onbeat_close(self._context)
                self._context = ctypes.c_void_p()


class _End:
    """An end of a channel."""

    _kind = ""

    def __init__(self, run: Run, channel: str, size: int) -> None:
        self._run = run
        self._handle = ctypes.c_void_p()
        # Held by a call: what is in use is not freed.
        self._busy = threading.Lock()
        # What an event loop does when it is closed.
        self._closing: Callable[[], None] | None = None
        # What calls fill, made once.
        self._view = _library.View()
        self.channel = channel
        """The channel's name."""
        self.size = size
        """Octets of a message."""
        if "\0" in channel:
            raise ValueError(f"{channel!r}: a name has no character 0")
        name = f"onbeat_{self._kind}_open"
        run._call(name, run._context, channel.encode(), size, ctypes.byref(self._handle))
        run._ends.append(self)  # type: ignore[arg-type]

    def _open(self) -> None:
        if not self._handle:
            raise ValueError(f"the {self._kind} of channel {self.channel} is closed")

    def _call(self, name: str, buffer: object, access: int, *arguments: object) -> int:
        """Call with the memory of an object, while this end's lock is held."""
        self._open()
        view = ctypes.byref(self._view)
        try:
            _library.lend(buffer, view, access)
        except (BufferError, TypeError, ValueError) as error:
            wanted = "to write into " * access + "in one piece"
            raise type(error)(
                f"channel {self.channel}: {error}; give an object with memory {wanted}"
            ) from error
        try:
            if self._view.length != self.size:
                raise ValueError(f"{self._view.length} octets, but the channel has {self.size}")
            return self._run._call(name, self._handle, self._view.address, *arguments)
        finally:
            _library.give_back(view)

    def close(self) -> bool:
        """Close the end, unless another thread waits at it; return whether it is closed."""
        if not self._busy.acquire(blocking=False):
            return False
        try:
            if self._handle:
                if self._closing:
                    self._closing()
                getattr(self._run._library, f"onbeat_{self._kind}_close")(self._handle)
                self._handle = ctypes.c_void_p()
            return True
        finally:
            self._busy.release()


class Talker(_End):
    """The talker endpoint of a channel."""

    _kind = "talker"

    def _write(self, name: str, payload: Any) -> tuple[int, int]:  # noqa: ANN401 - any buffer
        with self._busy:
            time = ctypes.c_int64()
            status = self._call(name, payload, _library.READ_ONLY, ctypes.byref(time))
            return status, time.value

    def write(self, payload: Any) -> int:  # noqa: ANN401 - any buffer
        """Send a message of exactly ``size`` octets; return its capture time.

        Waits while the channel's declared rate is exceeded. The payload is not copied on the way
        into the frame. Raises :class:`LinkDown` while the interface is down or not there.
        """
        return self._write("onbeat_write", payload)[1]

    def try_write(self, payload: Any) -> tuple[bool, int]:  # noqa: ANN401 - any buffer
        """Send a message unless that would have to wait; return whether, and a time.

        The time is that of capture, or the one until which :meth:`write` would wait.
        """
        status, time = self._write("onbeat_try_write", payload)
        return status == 0, time


class Listener(_End):
    """A listener endpoint of a channel. Iterating reads messages until the run is over."""

    _kind = "listener"

    def __init__(self, run: Run, channel: str, size: int) -> None:
        """Open it."""
        super().__init__(run, channel, size)
        self._info = _library.Info()
        self._buffer = bytearray(size)

    def _receive(self, name: str, buffer: object, *arguments: object) -> dict[str, Any] | None:
        info = self._info
        status = self._call(name, buffer, _library.WRITABLE, *arguments, ctypes.byref(info))
        if status in (_EMPTY, _TIMED_OUT):
            return None
        return {
            "capture_ns": info.capture_ns,
            "latency_ns": info.latency_ns,
            "age_ns": info.age_ns,
            "repeated": bool(info.flags & _REPEATED),
            "uncertain": bool(info.flags & _UNCERTAIN),
            "sequence": info.sequence,
            "lost": info.gap,
            "late": bool(info.flags & _LATE),
        }

    def _read(self, name: str, *arguments: object) -> Message | None:
        with self._busy:
            known = self._receive(name, self._buffer, *arguments)
            return known and Message(**known, payload=bytes(self._buffer))

    def _within(
        self, timeout_ns: int | None, read: Callable[..., _Found | None], *into: object
    ) -> _Found | None:
        """Read, in this way, with a limit."""

        def once(timeout_ns: int | None) -> _Found | None:
            if timeout_ns is None:
                return read("onbeat_read", *into)
            return read("onbeat_read_timeout", *into, timeout_ns)

        return self._run._patiently(once, timeout_ns)

    def _read_into(self, name: str, buffer: object, *arguments: object) -> Metadata | None:
        with self._busy:
            known = self._receive(name, buffer, *arguments)
            return known and Metadata(**known)

    def read(self, timeout_ns: int | None = None) -> Message | None:
        """Wait for a message; ``None`` when none came within ``timeout_ns``."""
        return self._within(timeout_ns, self._read)

    def try_read(self) -> Message | None:
        """Take a message if there is one; never waits."""
        return self._read("onbeat_try_read")

    def read_latest(self) -> Message | None:
        """Take the newest message and drop those before it; without a new one, the last again."""
        return self._read("onbeat_read_latest")

    def read_wait(self) -> Message | None:
        """Wait for a message, and then until its capture time + D."""
        return self._read("onbeat_read_wait")

    def read_into(self, buffer: Any, timeout_ns: int | None = None) -> Metadata | None:  # noqa: ANN401
        """Wait for a message, as :meth:`read`, and have it written into a buffer, say an array.

        The buffer has exactly ``size`` octets. It may be used again and again; a view of it as a
        structured type shows the fields of the message.
        """
        return self._within(timeout_ns, self._read_into, buffer)

    def try_read_into(self, buffer: Any) -> Metadata | None:  # noqa: ANN401 - any buffer
        """Take a message into a buffer if there is one; never waits."""
        return self._read_into("onbeat_try_read", buffer)

    def read_latest_into(self, buffer: Any) -> Metadata | None:  # noqa: ANN401 - any buffer
        """Take the newest message into a buffer, as :meth:`read_latest`."""
        return self._read_into("onbeat_read_latest", buffer)

    def read_wait_into(self, buffer: Any) -> Metadata | None:  # noqa: ANN401 - any buffer
        """Wait for a message, as :meth:`read_wait`, and have it written into a buffer."""
        return self._read_into("onbeat_read_wait", buffer)

    def deadline(self, deadline_ns: int) -> None:
        """Set the longest time between two messages, 0 for any.

        :meth:`Run.select` gives the listener once when it is missed, without a message to read.
        """
        with self._busy:
            self._open()
            self._run._call("onbeat_listener_deadline", self._handle, deadline_ns)

    def lifespan(self, lifespan_ns: int) -> None:
        """Set the age above which messages are not handed over, 0 for any."""
        with self._busy:
            self._open()
            self._run._call("onbeat_listener_lifespan", self._handle, lifespan_ns)

    def liveness(self) -> Liveness:
        """Tell what is known of the talker, and what has changed since the last call."""
        with self._busy:
            self._open()
            known = _library.Known()
            out = ctypes.byref(known)
            size = ctypes.sizeof(known)
            self._run._call("onbeat_listener_liveness", self._handle, size, out)
        last = known.last_arrival_ns
        return Liveness(
            matched=bool(known.state & _MATCHED),
            silent=bool(known.state & _DEADLINE_MISSED),
            out_of_sync=bool(known.state & _OUT_OF_SYNC),
            restarted=bool(known.changed & _RESTARTED),
            changed=known.changed != 0,
            deadline_missed=known.deadline_missed,
            restarts=known.restarts,
            second_talker=known.second_talker,
            last_arrival_ns=None if last == _NEVER else last,
        )

    def fileno(self) -> int:
        """Give a descriptor that is readable when there may be a message, for event loops.

        It belongs to the listener. In virtual time, which passes only in calls of this library,
        there is none, and a :class:`ChannelError` says so: use :meth:`Run.select` or
        :mod:`onbeat.aio`.
        """
        with self._busy:
            self._open()
            descriptor = ctypes.c_int()
            out = ctypes.byref(descriptor)
            self._run._call("onbeat_listener_descriptor", self._handle, out)
            return descriptor.value

    def __iter__(self) -> Listener:
        """Iterate over messages."""
        return self

    def __next__(self) -> Message:
        """Wait for the next one."""
        try:
            message = self.read()
        except Stopped:
            raise StopIteration from None
        if message is None:
            raise StopIteration
        return message
