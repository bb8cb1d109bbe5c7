"""The program as a user meets it: a child process with an exit code, stdout and stderr."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import latencydoctor
from latencydoctor.cli.main import main

SOURCE = Path(latencydoctor.__file__).resolve().parents[1]
TIMEOUT_S = 60.0

# Makes stdin the session's terminal first, so that the keys for interrupt and end of input work.
WITH_TERMINAL = """
import fcntl, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from latencydoctor.cli.main import main
main()
"""


@dataclass(frozen=True, slots=True)
class Ran:
    """How one run ended."""

    code: int
    out: str
    err: str

    @property
    def errors(self) -> tuple[str, ...]:
        """The lines that say what is wrong."""
        return tuple(line.removeprefix("error: ") for line in self.err.splitlines() if line.startswith("error: "))

    @property
    def hint(self) -> str:
        """What to do next; a list of choices is part of it."""
        return self.err.partition("\nhint: ")[2].rstrip("\n")


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    """This process's environment, in which a child finds the same package; `extra` on top."""
    paths = (str(SOURCE), os.environ.get("PYTHONPATH", ""))
    return os.environ | {"PYTHONPATH": os.pathsep.join(path for path in paths if path)} | dict(extra)


def command(*arguments: str | Path) -> list[str]:
    """The command line of one run."""
    return [sys.executable, "-m", "latencydoctor", *map(str, arguments)]


def start(*arguments: str | Path, cwd: Path, **extra: str) -> subprocess.Popen[str]:
    """A run in the background, its streams piped; `extra` are environment variables."""
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command(*arguments),
        cwd=cwd,
        env=environment(extra),
        stdin=subprocess.DEVNULL,
        stdout=pipe,
        stderr=pipe,
        text=True,
        encoding="utf-8",
    )


def finish(process: subprocess.Popen[str]) -> Ran:
    """Wait for a run's end."""
    with process:
        out, err = process.communicate(timeout=TIMEOUT_S)
    return Ran(process.returncode, out, err)


def run(*arguments: str | Path, cwd: Path, **extra: str) -> Ran:
    """One run, without a terminal."""
    return finish(start(*arguments, cwd=cwd, **extra))


def here(*arguments: str | Path, cwd: Path) -> Ran:
    """The same in this process: a tenth of the time, for the further members of a family that was run as a child."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2)]
    kept = sys.argv, sys.stdout, sys.stderr
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    sys.argv, (sys.stdout, sys.stderr) = ["latencydoctor", *map(str, arguments)], streams
    try:
        with contextlib.chdir(cwd):
            main()
    except SystemExit as ended:
        code = int(ended.code or 0)
    finally:
        sys.argv, sys.stdout, sys.stderr = kept
        for number, handler in handlers.items():
            signal.signal(number, handler)
    out, err = (stream.buffer.getvalue().decode() for stream in streams)
    return Ran(code, out, err)


def on_terminal(answer: bytes, *arguments: str | Path, cwd: Path) -> Ran:
    """One run on a terminal: `answer` is typed once the question is there. stdout is piped, the terminal is `err`."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", WITH_TERMINAL, *map(str, arguments)],
        cwd=cwd,
        env=environment({}),
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        start_new_session=True,
    ) as process:
        os.close(theirs)
        seen, ended = _type_when_asked(ours, answer)
        if not ended:
            process.kill()
        out = process.stdout.read() if process.stdout else b""
        process.wait(TIMEOUT_S)
    os.close(ours)
    return Ran(process.returncode, out.decode(), seen.decode())


def _type_when_asked(terminal: int, answer: bytes) -> tuple[bytes, bool]:
    """Everything the terminal showed, and whether the program has let go of it in time."""
    seen, typed, end_s = b"", False, time.monotonic() + TIMEOUT_S
    while time.monotonic() < end_s:
        if not select.select([terminal], [], [], 1.0)[0]:
            continue
        try:
            piece = os.read(terminal, 4096)
        except OSError:  # on Linux this is how a terminal says that its other side is closed
            return seen, True
        seen += piece
        if not typed and b"[y/N]" in seen:
            os.write(terminal, answer)
            typed = True
    return seen, False


def refused(ran: Ran, code: int, message: str, hint: str | None = "") -> None:
    """The shape of every known failure: exit code, one clear line, a hint, nothing on stdout, no traceback.

    `hint` None is for a message that says it all.
    """
    assert ran.out == "", ran
    assert ran.err.startswith("error: "), ran
    complained(ran, code, message, hint)


def complained(ran: Ran, code: int, message: str, hint: str | None = "") -> None:
    """The same for a command that showed something before it failed."""
    assert ran.code == code, ran
    assert len(ran.errors) == 1, ran
    assert message in ran.errors[0], ran
    if hint is not None:
        assert ran.hint, ran
        assert hint in ran.hint, ran
    clean(ran)


def clean(ran: Ran) -> None:
    """Nothing that a terminal would obey, and no innards."""
    for text in (ran.out, ran.err):
        assert all(character.isprintable() or character == "\n" for character in text), repr(text)
        assert "Traceback" not in text


def digest(folder: Path) -> dict[str, str]:
    """Every file below a folder by its content and time of change: equal before and after means nothing was written."""
    return {
        str(path.relative_to(folder)): f"{hashlib.sha256(path.read_bytes()).hexdigest()} {path.stat().st_mtime_ns}"
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
