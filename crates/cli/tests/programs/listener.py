"""Reads the channel `c` through the C ABI; its argument is the shared library."""

import ctypes
import sys

library = ctypes.CDLL(sys.argv[1])
library.onbeat_last_error.restype = ctypes.c_char_p
OK, STOPPED = 0, 1


def must(status: int) -> None:
    if status != OK:
        sys.exit(f"status {status}: {library.onbeat_last_error().decode()}")


run, listener = ctypes.c_void_p(), ctypes.c_void_p()
value, expected = ctypes.c_uint64(), 0
must(library.onbeat_open(ctypes.byref(run)))
must(library.onbeat_listener_open(run, b"c", ctypes.c_size_t(8), ctypes.byref(listener)))
must(library.onbeat_start(run))
while (status := library.onbeat_read(listener, ctypes.byref(value), None)) == OK:
    if value.value != expected:
        sys.exit(f"read {value.value} instead of {expected}")
    expected += 1
if status != STOPPED or expected == 0:
    sys.exit(f"status {status} after {expected} messages")
library.onbeat_listener_close(listener)
library.onbeat_close(run)
