"""Shows a run's events as they come, each once and in order. A reader that goes away stops the showing, and not the run."""

from __future__ import annotations

from typing import final

from affidavit.actors.codec import decode
from affidavit.actors.events import Event
from affidavit.actors.logs.port import LogReader
from affidavit.actors.subscription import Subscription
from affidavit.tools.errors import notice, sentence
from affidavit.tools.output import Output
from affidavit.tools.transcript import Transcript


@final
class Narrator:
    """Tells one run."""

    def __init__(self, output: Output, transcript: Transcript, *, after: int = 0) -> None:
        """Begin after the event of this seq."""
        self._output = output
        self._transcript = transcript
        self._mute = False
        self._seq = after

    async def follow(self, events: Subscription) -> None:
        """Tell events until the subscription ends."""
        async for event in events:
            await self.tell(event)

    async def skip_to(self, seq: int, run_id: str) -> None:
        """Leave out the events up to a seq, and say so where there are any."""
        if seq > self._seq:
            self._seq = seq
            await self._write(f"(events 1 to {seq}: `affidavit replay {run_id}` shows them)\n")

    async def catch_up(self, log: LogReader, run_id: str) -> None:
        """Tell what is on the log and was not told yet."""
        while batch := await log.read(run_id, self._seq):
            for row in batch:
                await self.tell(decode(row.data))
        # A cancelled write may still be waiting for its turn.
        await self._write("")

    async def line(self, text: str) -> None:
        """Write one more line, unless nobody reads any more."""
        await self._write(f"{text}\n")

    async def tell(self, event: Event) -> None:
        """Tell one event, unless it was told."""
        if event.seq > self._seq:
            # Before it is written: an event whose writing was cancelled keeps its place in the output, so it is not told again.
            self._seq = event.seq
            await self._write(self._transcript.show(event))

    async def _write(self, text: str) -> None:
        if self._mute:
            return
        try:
            await self._output.write(text)
        except BrokenPipeError:
            self._mute = True
        except OSError as error:
            self._mute = True
            notice(f"affidavit: standard output: {sentence(error)}; the run goes on without being shown")
