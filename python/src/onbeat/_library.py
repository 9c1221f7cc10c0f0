"""The C interface of Onbeat, as ctypes sees it."""

from __future__ import annotations

import ctypes
import ctypes.util
import operator
import os
from pathlib import Path
from typing import SupportsIndex


class Info(ctypes.Structure):
    """``struct onbeat_message`` of version 0.1."""

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


class Known(ctypes.Structure):
    """``struct onbeat_liveness``."""

    _fields_ = (
        ("state", ctypes.c_uint32),
        ("changed", ctypes.c_uint32),
        ("deadline_missed", ctypes.c_uint64),
        ("restarts", ctypes.c_uint64),
        ("second_talker", ctypes.c_uint64),
        ("last_arrival_ns", ctypes.c_int64),
    )


class View(ctypes.Structure):
    """``Py_buffer``: the memory of an object that lends it."""

    _fields_ = (
        ("address", ctypes.c_void_p),
        ("owner", ctypes.c_void_p),
        ("length", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("dimensions", ctypes.c_int),
        ("format", ctypes.c_void_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    )


READ_ONLY = 0
"""PyBUF_SIMPLE: octets in a row."""
WRITABLE = 1
"""PyBUF_WRITABLE: the same, to write into."""

lend = ctypes.pythonapi.PyObject_GetBuffer
lend.argtypes, lend.restype = [ctypes.py_object, ctypes.POINTER(View), ctypes.c_int], ctypes.c_int
give_back = ctypes.pythonapi.PyBuffer_Release
give_back.argtypes, give_back.restype = [ctypes.POINTER(View)], None


class _Whole:
    """A whole number for C. One that does not fit is refused; ctypes would cut it off."""

    def __init__(self, kind: type[ctypes.c_int64] | type[ctypes.c_size_t], low: int) -> None:
        self._kind, self._low = kind, low
        self._high = low + (1 << 8 * ctypes.sizeof(kind)) - 1

    def checked(self, value: SupportsIndex) -> int:
        """Give it back if it fits."""
        number = operator.index(value)
        if not self._low <= number <= self._high:
            raise OverflowError(f"{number} is not within {self._low} to {self._high}")
        return number

    def from_param(self, value: SupportsIndex) -> ctypes.c_int64 | ctypes.c_size_t:
        """Convert it."""
        return self._kind(self.checked(value))


INT64 = _Whole(ctypes.c_int64, -(1 << 63))
_COUNT = _Whole(ctypes.c_size_t, 0)
_POINTER = ctypes.c_void_p
_OUT = ctypes.POINTER(ctypes.c_void_p)
_TIME = ctypes.POINTER(ctypes.c_int64)
_SIZE = ctypes.POINTER(ctypes.c_size_t)
_INFO = ctypes.POINTER(Info)
_FUNCTIONS = {
    "onbeat_open": [_OUT],
    "onbeat_start": [_POINTER],
    "onbeat_talker_open": [_POINTER, ctypes.c_char_p, _COUNT, _OUT],
    "onbeat_listener_open": [_POINTER, ctypes.c_char_p, _COUNT, _OUT],
    "onbeat_write": [_POINTER, _POINTER, _TIME],
    "onbeat_try_write": [_POINTER, _POINTER, _TIME],
    "onbeat_read": [_POINTER, _POINTER, _INFO],
    "onbeat_try_read": [_POINTER, _POINTER, _INFO],
    "onbeat_read_latest": [_POINTER, _POINTER, _INFO],
    "onbeat_read_wait": [_POINTER, _POINTER, _INFO],
    "onbeat_read_timeout": [_POINTER, _POINTER, INT64, _INFO],
    "onbeat_listener_deadline": [_POINTER, INT64],
    "onbeat_listener_lifespan": [_POINTER, INT64],
    "onbeat_listener_liveness": [_POINTER, _COUNT, ctypes.POINTER(Known)],
    "onbeat_listener_descriptor": [_POINTER, ctypes.POINTER(ctypes.c_int)],
    "onbeat_select": [_POINTER, _OUT, _COUNT, INT64, _SIZE],
    "onbeat_now": [_POINTER, _TIME],
    "onbeat_machine_time": [_POINTER, INT64, ctypes.POINTER(ctypes.c_int32), _TIME],
    "onbeat_sleep_until": [_POINTER, INT64, _TIME],
    "onbeat_stop": [_POINTER],
}


def find(library: str | Path | None) -> str:
    """Where the library is: given, below ``ONBEAT_HOME``, in the package, or of the system."""
    if library is not None:
        return str(library)
    home = os.environ.get("ONBEAT_HOME")
    places = [Path(home, "target/release/libonbeat.so")] if home else []
    places.append(Path(__file__).with_name("libonbeat.so"))
    for place in places:
        if place.is_file():
            return str(place)
    return ctypes.util.find_library("onbeat") or "libonbeat.so"


def load(library: str | Path | None) -> ctypes.CDLL:
    """Load it.

    Raises:
        OSError: if there is none, or it is of another machine.
    """
    place = find(library)
    try:
        loaded = ctypes.CDLL(place)
    except OSError as error:
        advice = "install a wheel that `make wheel` built, or Onbeat, or set ONBEAT_HOME"
        raise OSError(f"the library {place} cannot be loaded ({error}): {advice}") from error
    for name, arguments in _FUNCTIONS.items():
        function = getattr(loaded, name)
        function.argtypes, function.restype = arguments, ctypes.c_int
    for name in ("onbeat_close", "onbeat_talker_close", "onbeat_listener_close"):
        function = getattr(loaded, name)
        function.argtypes, function.restype = [_POINTER], None
    loaded.onbeat_last_error.argtypes = []
    loaded.onbeat_last_error.restype = ctypes.c_char_p
    return loaded
