"""Network channels for asyncio, in the time of the run.

:func:`run` joins a run and executes a coroutine on an event loop whose clock is the network clock:
``loop.time()`` is its reading in seconds, and ``asyncio.sleep``, timeouts and timers pass that
time::

    async def main(run):
        talker, listener = run.talker("answer", 16), run.listener("reading", 16)
        run.start()
        async for message in listener:
            await talker.write(message.payload)

    aio.run(main)

In virtual time the loop waits in the library, as everything in such a run does, so programs of
asyncio execute there unchanged and are reproduced exactly. Descriptors of the system, such as
sockets, are looked at whenever time would pass, but time does not wait for them. What a program
gives to threads (``asyncio.to_thread``) is executed at once, and takes no time.

In real time the loop waits for descriptors and for a timer of the network clock.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import selectors
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from onbeat import channels
from onbeat.channels import ChannelError, Message, Metadata, Stopped

__all__ = ["EventLoop", "Listener", "Run", "Talker", "run"]

_Result = TypeVar("_Result")
_NOT_STARTED = -4
_FOREVER_NS = (1 << 63) - 1
# After so long the loop looks whether the run is over, as calls of the library do.
_LOOK_AGAIN_NS = 100_000_000
_ABSOLUTE = 1


class _Timer(ctypes.Structure):
    """``struct itimerspec``."""

    _fields_ = (
        ("every_s", ctypes.c_long),
        ("every_ns", ctypes.c_long),
        ("at_s", ctypes.c_long),
        ("at_ns", ctypes.c_long),
    )


class _Selector(selectors.EpollSelector):
    """Waits in the time of a run: also for listeners, which wake a future each."""

    def __init__(self, run: channels.Run) -> None:
        super().__init__()
        self._run = run
        self._timer = -1
        self.waiting: dict[channels.Listener, asyncio.Future[None]] = {}

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait at most so many seconds for what is registered."""
        ready = self._look(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        try:
            until = self._run.now_ns() + round(timeout * 1e9) if timeout else _FOREVER_NS
            if self._run.machine_time(0) is None:
                self._pass_virtual(until)
                return []
            return self._pass_real(until)
        except Stopped:
            if not self.waiting:
                raise
            # First those who read learn it, so that they may end on their own.
            for future in self.waiting.values():
                if not future.done():
                    future.set_exception(Stopped())
            self.waiting.clear()
            return []

    def _look(self, timeout: float | None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for descriptors; the timer only ends the wait."""
        return [pair for pair in super().select(timeout) if pair[0].fd != self._timer]

    def _pass_virtual(self, until_ns: int) -> None:
        if not self.waiting:
            self._run.sleep_until(until_ns)
            return
        timeout = -1 if until_ns == _FOREVER_NS else until_ns - self._run.now_ns()
        found = self._run.select(list(self.waiting), timeout)
        if found is not None:
            wake(self.waiting[found])

    def _pass_real(self, until_ns: int) -> list[tuple[selectors.SelectorKey, int]]:
        until_ns = min(until_ns, self._run.now_ns() + _LOOK_AGAIN_NS)
        told = self._run.machine_time(until_ns)
        assert told is not None, "it is real time"
        self._arm(*told)
        ready = self._look(None)
        # Returns at once, and says whether the run is over.
        self._run.sleep_until(0)
        return ready

    def _arm(self, clock: int, at_ns: int) -> None:
        """Have the timer end the wait when the machine's clock reads so much: not in steps of 1 ms.

        The number of the clock does not change, so one timer does.
        """
        library = ctypes.CDLL(None, use_errno=True)
        if self._timer < 0:
            self._timer = library.timerfd_create(clock, os.O_CLOEXEC | os.O_NONBLOCK)
            if self._timer < 0:
                raise OSError(ctypes.get_errno(), "timerfd_create")
            self.register(self._timer, selectors.EVENT_READ)
        # Zero would disarm it.
        seconds, rest = divmod(max(at_ns, 1), 1_000_000_000)
        timer = _Timer(0, 0, seconds, rest)
        if library.timerfd_settime(self._timer, _ABSOLUTE, ctypes.byref(timer), None) < 0:
            raise OSError(ctypes.get_errno(), "timerfd_settime")

    def close(self) -> None:
        """Close the timer, too."""
        super().close()
        if self._timer >= 0:
            os.close(self._timer)
            self._timer = -1


def wake(future: asyncio.Future[None]) -> None:
    """End a wait, unless it has been given up."""
    if not future.done():
        future.set_result(None)


class EventLoop(asyncio.SelectorEventLoop):
    """An event loop of asyncio in the time of a run that the program has joined."""

    def __init__(self, run: channels.Run) -> None:
        """Make it. Nothing may wait on it before ``run.start()``."""
        self._joined = run
        self._waits = _Selector(run)
        super().__init__(self._waits)

    def time(self) -> float:
        """Read the network clock, in seconds since the start; 0 before."""
        try:
            return self._joined.now_ns() / 1e9
        except ChannelError as error:
            if error.status == _NOT_STARTED:
                return 0.0
            raise

    async def readable(self, listener: channels.Listener) -> None:
        """Wait until a listener may have a message, which ``try_read`` takes."""
        if listener in self._waits.waiting:
            raise RuntimeError(f"channel {listener.channel}: another task waits at this listener")
        descriptor = None if self._joined.machine_time(0) is None else listener.fileno()
        future = self._waits.waiting[listener] = self.create_future()

        def end() -> None:
            # Before the descriptor is another end's.
            listener._closing = None
            self._waits.waiting.pop(listener, None)
            if descriptor is not None and not self.is_closed():
                self.remove_reader(descriptor)

        def closed() -> None:
            end()
            if not future.done():
                why = f"the listener of channel {listener.channel} is closed"
                future.set_exception(ValueError(why))

        listener._closing = closed
        if descriptor is not None:
            self.add_reader(descriptor, wake, future)
        try:
            await future
        finally:
            if listener._closing is closed:
                end()

    def run_in_executor(
        self,
        executor: Any,  # noqa: ANN401 - as asyncio has it
        func: Callable[..., Any],
        *args: Any,  # noqa: ANN401
    ) -> asyncio.Future[Any]:
        """Execute a function in a thread; in virtual time at once, in which no time passes."""
        if self._joined.machine_time(0) is not None:
            return super().run_in_executor(executor, func, *args)
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future


class Talker:
    """The talker endpoint of a channel."""

    def __init__(self, end: channels.Talker) -> None:
        """Take an end that was opened."""
        self.end = end
        """The same for programs without asyncio."""

    async def write(self, payload: Any) -> int:  # noqa: ANN401 - any buffer
        """Send a message of exactly ``size`` octets; return its capture time.

        While the channel's declared rate is exceeded other tasks execute. The payload is not copied
        before, so it stays as it is until then.
        """
        while True:
            written, time_ns = self.end.try_write(payload)
            if written:
                return time_ns
            # Where nothing is reserved no time is known.
            left = time_ns - self.end._run.now_ns()
            await asyncio.sleep(left / 1e9 if left > 0 else 1e-3)


class Listener:
    """A listener endpoint of a channel. ``async for`` reads messages until the run is over."""

    def __init__(self, end: channels.Listener) -> None:
        """Take an end that was opened."""
        self.end = end
        """The same for programs without asyncio."""

    async def _take(self, take: Callable[[], _Result | None]) -> _Result:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, EventLoop), "use onbeat.aio.run, or onbeat.aio.EventLoop"
        while (taken := take()) is None:
            await loop.readable(self.end)
        return taken

    async def read(self) -> Message:
        """Wait for a message."""
        return await self._take(self.end.try_read)

    async def read_into(self, buffer: Any) -> Metadata:  # noqa: ANN401 - any buffer
        """Wait for a message, and have it written into a buffer of exactly ``size`` octets."""
        return await self._take(lambda: self.end.try_read_into(buffer))

    async def into(self, buffer: Any) -> AsyncIterator[Metadata]:  # noqa: ANN401 - any buffer
        """Read message after message into one buffer, until the run is over."""
        with contextlib.suppress(Stopped):
            while True:
                yield await self.read_into(buffer)

    def __aiter__(self) -> Listener:
        """Iterate over messages."""
        return self

    async def __anext__(self) -> Message:
        """Wait for the next one."""
        try:
            return await self.read()
        except Stopped:
            raise StopAsyncIteration from None


class Run:
    """A program's membership in a run, for coroutines."""

    def __init__(self, joined: channels.Run) -> None:
        """Take a run that was joined."""
        self.joined = joined
        """The same for programs without asyncio."""

    def talker(self, channel: str, size: int) -> Talker:
        """Open the talker endpoint of a channel for messages of ``size`` octets."""
        return Talker(self.joined.talker(channel, size))

    def listener(self, channel: str, size: int) -> Listener:
        """Open a listener endpoint of a channel for messages of ``size`` octets."""
        return Listener(self.joined.listener(channel, size))

    def start(self) -> None:
        """End set-up: wait until all programs of the run have. Comes before all other waiting."""
        self.joined.start()

    def now_ns(self) -> int:
        """Read this host's copy of the network clock."""
        return self.joined.now_ns()

    async def sleep_until(self, until_ns: int) -> int:
        """Sleep until the clock reads ``until_ns``; return what it reads then."""
        while (left := until_ns - self.now_ns()) > 0:
            await asyncio.sleep(left / 1e9)
        return self.now_ns()


def run(
    main: Callable[[Run], Coroutine[Any, Any, _Result]], library: str | Path | None = None
) -> _Result | None:
    """Join a run, execute ``main`` in it, and leave.

    Returns what ``main`` returns, or None if the run was over before: then its tasks are cancelled.
    """
    with channels.Run(library) as joined:
        loop = EventLoop(joined)
        try:
            return loop.run_until_complete(main(Run(joined)))
        except Stopped:
            return None
        finally:
            _end(loop)


def _end(loop: EventLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    try:
        # Who sleeps while being cancelled is left: no time passes any more.
        with contextlib.suppress(Stopped):
            if tasks:
                loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        with contextlib.suppress(Stopped):
            loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()
