"""Reports to stdout or to a file, in the form that was asked for."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import tempfile
from pathlib import Path

from latencydoctor.cli import streams
from latencydoctor.errors import KnownError
from latencydoctor.model.diagnosis import Diagnosis

_FILE_WIDTH = 120


def diagnosis(result: Diagnosis, form: str, output: Path | None, *, verbose: bool) -> None:
    """One diagnosis, as text, json or markdown."""
    if form == "json":
        from latencydoctor.report import machine

        document(machine.diagnosis(result), output)
    elif form == "markdown":
        from latencydoctor.report import markdown

        document(markdown.diagnosis(result), output)
    else:
        _text(result, output, verbose=verbose)


def _text(result: Diagnosis, output: Path | None, *, verbose: bool) -> None:
    from latencydoctor.report import terminal

    if output is None:
        terminal.show(result, streams.stdout(), verbose=verbose)
        return
    from rich.console import Console

    console = Console(file=io.StringIO(), width=_FILE_WIDTH, color_system=None, markup=False, highlight=False)
    terminal.show(result, console, verbose=verbose)
    assert isinstance(console.file, io.StringIO)
    document(console.file.getvalue(), output)


def refuse_unwritable(**named: Path | None) -> None:
    """`KnownError` for the option with a file that could not be written, before anything long is begun for it."""
    for option, path in named.items():
        if path is None:
            continue
        folder = Path(os.path.realpath(path)).parent
        if path.is_dir():
            reason = os.strerror(errno.EISDIR)
        elif not folder.is_dir():
            reason = f"there is no folder {folder}"
        elif not os.access(path if path.exists() else folder, os.W_OK):
            reason = os.strerror(errno.EACCES)
        else:
            continue
        raise KnownError(f"cannot write {path}: {reason}", hint=f"Name another file with --{option}.")


def document(text: str, output: Path | None, option: str = "output") -> None:
    """A finished text to stdout, or to the file that `option` names; `KnownError` when it cannot be written."""
    if output is None:
        streams.write(text)
        return
    try:
        _keep(text if text.endswith("\n") else text + "\n", output)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        hint = f"{'Make room there, or name' if full else 'Name'} another file with --{option}."
        raise KnownError(f"cannot write {output}: {error.strerror or error}", hint=hint) from error


def _keep(text: str, output: Path) -> None:
    """Write a file whole or not at all: what it held before stays until all of the new text is on the disk."""
    real = Path(os.path.realpath(output))
    if (real.exists() and not real.is_file()) or not os.access(real.parent, os.W_OK):
        # A device or a pipe takes what it is given; so does a file in a folder where no other may be made.
        output.write_text(text, encoding="utf-8")
        return
    descriptor, name = tempfile.mkstemp(prefix=f".{real.name}.", dir=real.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(_mode_of(real))
        Path(name).replace(real)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


def _mode_of(path: Path) -> int:
    """The rights that a file has, or that a new one would get."""
    try:
        return path.stat().st_mode & 0o777
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
