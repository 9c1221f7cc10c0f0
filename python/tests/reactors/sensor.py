"""A sensor in the reactor runtime xronos: sends a reading each 20 ms, and prints each answer."""

from __future__ import annotations

import contextlib
import datetime
import struct
import sys
import threading
from collections.abc import Callable

import xronos

from onbeat.channels import Run, Stopped, Talker

COUNT = 25


class Sensor(xronos.Reactor):
    """Sends a number and the time of its tag since the start."""

    _timer = xronos.PeriodicTimerDeclaration(period=datetime.timedelta(milliseconds=20))
    _answer = xronos.PhysicalEventDeclaration[tuple[int, int]]()

    def __init__(self, talker: Talker, answers: Callable[[], tuple[int, int]]) -> None:
        """Keep the sending end, and what waits for an answer."""
        super().__init__()
        self._talker = talker
        self._answers = answers
        self._sent = 0

    @xronos.reaction
    def on_startup(self, ctx: xronos.ReactionContext) -> Callable[[], None]:
        """Listen to the answers."""
        ctx.add_trigger(self.startup)

        def listen() -> None:
            while True:
                try:
                    answer = self._answers()
                except Stopped:
                    return
                if self._answer.trigger(answer) is not xronos.TriggerStatus.ACCEPTED:
                    return

        return lambda: threading.Thread(target=listen, daemon=True).start()

    @xronos.reaction
    def on_timer(self, ctx: xronos.ReactionContext) -> Callable[[], None]:
        """Send."""
        ctx.add_trigger(self._timer)

        def handler() -> None:
            if self._sent == COUNT:
                return
            capture = self._talker.write(struct.pack("<qq", self._sent, self._sent**2))
            print(f"sent {self._sent} {capture}", flush=True)
            self._sent += 1

        return handler

    @xronos.reaction
    def on_answer(self, ctx: xronos.ReactionContext) -> Callable[[], None]:
        """Print, and end with the last one."""
        answer = ctx.add_trigger(self._answer)
        end = ctx.add_effect(self.shutdown)

        def handler() -> None:
            count, value = answer.get()
            print(f"answer {count} {value}", flush=True)
            if count == COUNT - 1:
                end.trigger_shutdown()

        return handler


def main() -> None:
    """Join the run, and execute the reactors in it."""
    with Run() as run:
        talker = run.talker("reading", 16)
        listener = run.listener("answer", 16)
        run.start()

        def next_answer() -> tuple[int, int]:
            message = listener.read_wait()
            assert message is not None
            count, value = struct.unpack("<qq", message.payload)
            return count, value

        environment = xronos.Environment(timeout=datetime.timedelta(seconds=60))
        environment.create_reactor("sensor", Sensor, talker, next_answer)
        # The run may end before the reactors do.
        with contextlib.suppress(Stopped):
            environment.execute()
    sys.stdout.flush()


if __name__ == "__main__":
    main()
