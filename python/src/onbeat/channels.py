"""Network channels from Python, over the C interface of Onbeat.

A program joins a run of ``onbeat run``, opens its ends, and starts::

    with Run() as run:
        talker = run.talker("reading", 16)
        run.start()
        talker.write(bytes(16))

All times are nanoseconds of the network clock since the start of the run. In virtual time only the
thread that made the :class:`Run` may call; in real time any thread may, each end one at a time.
Calls that wait let other threads of Python execute.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

_STOPPED = 1
_EMPTY = 2
_TIMED_OUT = 3
_LATE = 1


class ChannelError(Exception):
    """A call failed: the status, as in ``onbeat.h``, and why."""

    def __init__(self, status: int, why: str) -> None:
        """Keep both."""
        super().__init__(why)
        self.status = status


class Stopped(Exception):  # noqa: N818 - it is no error
    """The run is over: clean up and exit."""


@dataclass(frozen=True)
class Message:
    """A received message."""

    payload: bytes
    """Its octets."""
    capture_ns: int
    """When the value was captured, by the talker's clock."""
    latency_ns: int
    """Receipt minus capture."""
    sequence: int
    """Its number, from 0."""
    lost: int
    """How many were lost just before it."""
    late: bool
    """Whether it came later than capture + D."""


class _Info(ctypes.Structure):
    _fields_ = (
        ("capture_ns", ctypes.c_int64),
        ("latency_ns", ctypes.c_int64),
        ("arrived_ns", ctypes.c_int64),
        ("age_ns", ctypes.c_int64),
        ("wakeup_error_ns", ctypes.c_int64),
        ("sequence", ctypes.c_uint64),
        ("gap", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
    )


_POINTER = ctypes.c_void_p
_OUT = ctypes.POINTER(ctypes.c_void_p)
_TIME = ctypes.POINTER(ctypes.c_int64)
_INFO = ctypes.POINTER(_Info)
_FUNCTIONS = {
    "onbeat_open": [_OUT],
    "onbeat_start": [_POINTER],
    "onbeat_talker_open": [_POINTER, ctypes.c_char_p, ctypes.c_size_t, _OUT],
    "onbeat_listener_open": [_POINTER, ctypes.c_char_p, ctypes.c_size_t, _OUT],
    "onbeat_write": [_POINTER, ctypes.c_char_p, _TIME],
    "onbeat_read": [_POINTER, ctypes.c_char_p, _INFO],
    "onbeat_read_wait": [_POINTER, ctypes.c_char_p, _INFO],
    "onbeat_read_timeout": [_POINTER, ctypes.c_char_p, ctypes.c_int64, _INFO],
    "onbeat_now": [_POINTER, _TIME],
    "onbeat_sleep_until": [_POINTER, ctypes.c_int64, _TIME],
}


def _load(library: str | Path | None) -> ctypes.CDLL:
    home = os.environ.get("ONBEAT_HOME")
    built = Path(home, "target/release/libonbeat.so") if home else None
    if library is None and built is not None and built.is_file():
        library = built
    if library is None:
        library = ctypes.util.find_library("onbeat") or "libonbeat.so"
    loaded = ctypes.CDLL(str(library))
    for name, arguments in _FUNCTIONS.items():
        function = getattr(loaded, name)
        function.argtypes, function.restype = arguments, ctypes.c_int
    for name in ("onbeat_close", "onbeat_talker_close", "onbeat_listener_close"):
        function = getattr(loaded, name)
        function.argtypes, function.restype = [_POINTER], None
    loaded.onbeat_last_error.argtypes = []
    loaded.onbeat_last_error.restype = ctypes.c_char_p
    return loaded


class Run:
    """A program's membership in a run. Leaves it at the end of a ``with``."""

    def __init__(self, library: str | Path | None = None) -> None:
        """Join. The library is that of ``ONBEAT_HOME``, or of the system, unless given."""
        self._library = _load(library)
        self._context = ctypes.c_void_p()
        self._ends: list[Talker | Listener] = []
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
        return status

    def talker(self, channel: str, size: int) -> Talker:
        """Open the talker endpoint of a channel for messages of ``size`` octets."""
        return Talker(self, channel, size)

    def listener(self, channel: str, size: int) -> Listener:
        """Open a listener endpoint of a channel for messages of ``size`` octets."""
        return Listener(self, channel, size)

    def start(self) -> None:
        """End set-up: wait until all programs of the run have."""
        self._call("onbeat_start", self._context)

    def now_ns(self) -> int:
        """Read this host's copy of the network clock."""
        now = ctypes.c_int64()
        self._call("onbeat_now", self._context, ctypes.byref(now))
        return now.value

    def sleep_until(self, until_ns: int) -> int:
        """Sleep until the clock reads ``until_ns``; return what it reads then."""
        woke = ctypes.c_int64()
        self._call("onbeat_sleep_until", self._context, until_ns, ctypes.byref(woke))
        return woke.value

    def close(self) -> None:
        """Close all ends and leave the run; a second time does nothing.

        While another thread waits at an end, that end and the run stay open until the process ends.
        """
        self._ends = [end for end in self._ends if not end.close()]
        if self._context and not self._ends:
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
        self.size = size
        """Octets of a message."""
        name = f"onbeat_{self._kind}_open"
        run._call(name, run._context, channel.encode(), size, ctypes.byref(self._handle))
        run._ends.append(self)  # type: ignore[arg-type]

    def _call(self, name: str, *arguments: object) -> int:
        with self._busy:
            if not self._handle:
                raise ValueError("the end is closed")
            return self._run._call(name, self._handle, *arguments)

    def close(self) -> bool:
        """Close the end, unless another thread waits at it; return whether it is closed."""
        if not self._busy.acquire(blocking=False):
            return False
        try:
            if self._handle:
                getattr(self._run._library, f"onbeat_{self._kind}_close")(self._handle)
                self._handle = ctypes.c_void_p()
            return True
        finally:
            self._busy.release()


class Talker(_End):
    """The talker endpoint of a channel."""

    _kind = "talker"

    def write(self, payload: bytes) -> int:
        """Send a message of exactly ``size`` octets; return its capture time."""
        if len(payload) != self.size:
            raise ValueError(f"{len(payload)} octets, but the channel has {self.size}")
        capture = ctypes.c_int64()
        self._call("onbeat_write", payload, ctypes.byref(capture))
        return capture.value


class Listener(_End):
    """A listener endpoint of a channel."""

    _kind = "listener"

    def _read(self, name: str, *arguments: object) -> Message | None:
        buffer = ctypes.create_string_buffer(self.size)
        info = _Info()
        status = self._call(name, buffer, *arguments, ctypes.byref(info))
        if status in (_EMPTY, _TIMED_OUT):
            return None
        return Message(
            payload=buffer.raw,
            capture_ns=info.capture_ns,
            latency_ns=info.latency_ns,
            sequence=info.sequence,
            lost=info.gap,
            late=bool(info.flags & _LATE),
        )

    def read(self, timeout_ns: int | None = None) -> Message | None:
        """Wait for a message; ``None`` when none came within ``timeout_ns``."""
        if timeout_ns is None:
            return self._read("onbeat_read")
        return self._read("onbeat_read_timeout", timeout_ns)

    def read_wait(self) -> Message | None:
        """Wait for a message, and then until its capture time + D."""
        return self._read("onbeat_read_wait")
