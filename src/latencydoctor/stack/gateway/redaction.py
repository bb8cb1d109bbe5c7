"""Masks personal data in a question before the model sees it: in a process beside the gateway, one at a time."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress

from latencydoctor.errors import KnownError

_MODULE = "latencydoctor.stack.gateway.redact_worker"

STUCK_S = 1.0
"""A text that takes longer is given up once its caller, or the next one, has left: some patterns never end on some
texts. The slowest that are of use take some ten milliseconds."""


class Redactor:
    """Redacts in turn; questions whose callers have left by then are passed over."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._process: Process | None = None
        self._pattern = ""
        self._number = 0
        self._waiting = 0
        """Texts that the process has and has not answered; `_heard_s` is when it began on the first of them."""
        self._heard_s = 0.0

    @property
    def pid(self) -> int | None:
        """The process that redacts; None while there is none."""
        return self._process.pid if self._process is not None else None

    async def __call__(self, pattern: str, text: str) -> str:
        """The text as the model may see it; KnownError when the process broke down (the next call starts another)."""
        if not pattern:
            return text
        async with self._turn:
            process = await self._running(pattern)
            self._number += 1
            try:
                return await self._exchange(process, self._number, text)
            except asyncio.CancelledError:
                if self._now_s() - self._heard_s > STUCK_S:
                    await self.close()
                raise
            except (OSError, ValueError) as error:
                await self.close()
                raise KnownError(
                    f"the redaction broke down: {error}", hint="See preprocessing.redact_pattern."
                ) from error

    async def _exchange(self, process: Process, number: int, text: str) -> str:
        assert process.stdin is not None, "it was started with pipes"
        assert process.stdout is not None, "it was started with pipes"
        if not self._waiting:
            self._heard_s = self._now_s()
        process.stdin.write(json.dumps([number, text]).encode() + b"\n")
        self._waiting += 1
        await process.stdin.drain()
        while True:
            # The answer to a caller that left while it was being worked on still comes, before ours.
            answered, redacted = json.loads(await process.stdout.readline())
            self._waiting, self._heard_s = self._waiting - 1, self._now_s()
            if answered == number:
                return str(redacted)

    @staticmethod
    def _now_s() -> float:
        return asyncio.get_running_loop().time()

    async def _running(self, pattern: str) -> Process:
        if self._process is not None and self._process.returncode is None and pattern == self._pattern:
            return self._process
        await self.close()
        self._pattern, self._waiting = pattern, 0
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", _MODULE, pattern, stdin=PIPE, stdout=PIPE
        )
        return self._process

    async def close(self) -> None:
        """Ends the process, if there is one."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            # Not process.kill(): before Python 3.13 it asks whether the process lives and so takes its exit from the
            # loop, which waits for it as well (https://github.com/python/cpython/issues/87744).
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
            await process.wait()
