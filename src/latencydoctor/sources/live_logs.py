"""Logs that another program prints: kubectl's of pods and journald's of a unit, where those programs are installed.

They are started with a list of arguments, never through a shell; what a user names stands behind its option's `=` or
behind `--`, so that it cannot become an option itself.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO

from latencydoctor.errors import KnownError, UsageError
from latencydoctor.evidence.redact import plain
from latencydoctor.model.evidence import Gap, GapReason
from latencydoctor.sources.log_reading import SOURCE

_PATIENCE_S = 2.0
_ERROR_BYTES = 4000
_MOST_PODS = 50
"""kubectl follows five pods at once unless told otherwise."""


@dataclass(frozen=True, slots=True)
class LiveLog:
    """What to run, and how events name what it prints."""

    argv: tuple[str, ...]
    place: str


def kubectl(asked: str, namespace: str = "", *, follow: bool = False, since_s: float | None = None) -> LiveLog:
    """The logs of what matches a label selector, or of one object such as `pod/NAME` or `deploy/NAME`."""
    _refuse_blank(asked, "--kubectl")
    options = ["--timestamps", "--prefix", "--all-containers"]
    if namespace:
        options.append(f"--namespace={namespace}")
    if since_s is not None and since_s > 0:
        options.append(f"--since-time={datetime.fromtimestamp(since_s, UTC).isoformat(timespec='seconds')}")
    if follow:
        options.append("--follow")
    named = "/" in asked and "=" not in asked and " " not in asked
    if named:
        return LiveLog(("kubectl", "logs", *options, "--", asked), f"kubectl:{asked}")
    # Of a selector kubectl prints the last ten lines only, unless told otherwise.
    wide = [f"--selector={asked}", "--tail=-1", f"--max-log-requests={_MOST_PODS}", "--ignore-errors"]
    return LiveLog(("kubectl", "logs", *options, *wide, "--"), f"kubectl:{asked}")


def journal(unit: str, *, follow: bool = False, since_s: float | None = None, until_s: float | None = None) -> LiveLog:
    """The journal of a systemd unit."""
    _refuse_blank(unit, "--journal")
    options = ["--output=json", "--no-pager", f"--unit={unit}"]
    if since_s is not None and since_s > 0:
        options.append(f"--since=@{since_s:.0f}")
    if until_s is not None:
        options.append(f"--until=@{until_s:.0f}")
    # Following starts with the last ten lines unless told otherwise.
    options += ["--follow", "--no-tail"] if follow else []
    return LiveLog(("journalctl", *options, "--"), f"journal:{unit}")


def _refuse_blank(name: str, option: str) -> None:
    if not name.strip() or "\0" in name:
        raise UsageError(f"{option} names nothing", hint=f"Write {option} NAME.")


@dataclass(frozen=True, slots=True)
class Running:
    """A program that prints a log. `complaint` says what it said when it failed, empty while all is well."""

    output: IO[bytes]
    _process: subprocess.Popen[bytes]
    _errors: IO[bytes]

    def complaint(self) -> str:
        """Why the program ended badly, once its output has ended; its first words on standard error."""
        try:
            code = self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            return ""
        if code == 0:
            return ""
        self._errors.seek(0)
        said = self._errors.read(_ERROR_BYTES).decode("utf-8", "replace").strip().partition("\n")[0]
        return plain(said) or f"it ended with status {code}"


def installed(log: LiveLog) -> str:
    """The program's path. `KnownError` where it is not installed."""
    name = log.argv[0]
    program = shutil.which(name)
    if program is None:
        raise KnownError(f"{name} is not installed here", hint=f"Run it where it is: {_piped(log.argv)}")
    return program


@contextmanager
def running(log: LiveLog) -> Iterator[Running]:
    """Runs the program as long as its output is read. `KnownError` where it is not installed."""
    program = installed(log)
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                [program, *log.argv[1:]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
            )
        except OSError as error:
            raise KnownError(f"{program} cannot be run: {error.strerror}", hint="Check its permissions.") from error
        assert process.stdout is not None
        try:
            yield Running(process.stdout, process, errors)
        finally:
            process.stdout.close()
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _piped(argv: Sequence[str]) -> str:
    return f"{' '.join(argv)} | latencydoctor logs -"


def missing(log: LiveLog, complaint: str) -> Gap:
    """The gap that a program leaves which ended badly."""
    return Gap(SOURCE, GapReason.UNREACHABLE, f"{log.place}: {complaint}", f"`{' '.join(log.argv)}` to work here")
