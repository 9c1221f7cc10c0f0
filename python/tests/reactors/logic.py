"""A logic in the reactor runtime xronos: sends back what it gets, negated, and prints when."""

from __future__ import annotations

import contextlib
import datetime
import struct
import threading
from collections.abc import Callable

import xronos
from sensor import COUNT

from onbeat.channels import Listener, Message, Run, Stopped, Talker


class Logic(xronos.Reactor):
    """What comes is an event at the instant capture + D."""

    _reading = xronos.PhysicalEventDeclaration[Message]()

    def __init__(self, run: Run, listener: Listener, talker: Talker) -> None:
        """Keep the run and both ends."""
        super().__init__()
        self._run = run
        self._listener = listener
        self._talker = talker

    @xronos.reaction
    def on_startup(self, ctx: xronos.ReactionContext) -> Callable[[], None]:
        """Listen to the readings."""
        ctx.add_trigger(self.startup)

        def listen() -> None:
            while True:
                try:
                    message = self._listener.read_wait()
                except Stopped:
                    return
                assert message is not None
                if self._reading.trigger(message) is not xronos.TriggerStatus.ACCEPTED:
                    return

        return lambda: threading.Thread(target=listen, daemon=True).start()

    @xronos.reaction
    def on_reading(self, ctx: xronos.ReactionContext) -> Callable[[], None]:
        """Answer."""
        reading = ctx.add_trigger(self._reading)
        end = ctx.add_effect(self.shutdown)

        def handler() -> None:
            message = reading.get()
            now = self._run.now_ns()
            count, value = struct.unpack("<qq", message.payload)
            print(
                f"got {count} {value} {message.sequence} {message.lost} {message.capture_ns} {now}",
                flush=True,
            )
            self._talker.write(struct.pack("<qq", count, -value))
            if count == COUNT - 1:
                end.trigger_shutdown()

        return handler


def main() -> None:
    """Join the run, and execute the reactor in it."""
    with Run() as run:
        listener = run.listener("reading", 16)
        talker = run.talker("answer", 16)
        run.start()
        environment = xronos.Environment(timeout=datetime.timedelta(seconds=60))
        environment.create_reactor("logic", Logic, run, listener, talker)
        # The run may end before the reactors do.
        with contextlib.suppress(Stopped):
            environment.execute()


if __name__ == "__main__":
    main()
