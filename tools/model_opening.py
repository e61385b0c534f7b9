"""Opens the model of a run, and shows that one is being loaded where that takes a while: one in this process, and no other."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from typing import Final

from affidavit.actors.models.port import Model
from affidavit.actors.models.registry import open_model
from affidavit.tools.progress import open_bar

_IN_THIS_PROCESS: Final = re.compile(r"local(?:[:?].*)?", re.DOTALL)


@asynccontextmanager
async def open_shown_model(spec: str) -> AsyncIterator[Model]:
    """Open a model for as long as the block lasts; see `open_model`.

    While a local one is loaded the whole process stands still, so what is shown stands there from the beginning.

    Raises:
        ConfigurationError: There is no such provider, or it cannot open what it was asked for.

    Cancellation: loading a local model is waited for.
    """
    async with AsyncExitStack() as stack:
        with ExitStack() as shown:
            if _IN_THIS_PROCESS.fullmatch(spec):
                shown.enter_context(open_bar("loading the model", still=True))
            model = await stack.enter_async_context(open_model(spec))
        yield model
