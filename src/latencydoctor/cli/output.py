"""Reports to stdout or to a file, in the form that was asked for."""

from __future__ import annotations

import io
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


def document(text: str, output: Path | None) -> None:
    """A finished text to stdout, or to a file; `KnownError` when the file cannot be written."""
    if output is None:
        streams.write(text)
        return
    try:
        output.write_text(text if text.endswith("\n") else text + "\n", encoding="utf-8")
    except OSError as error:
        raise KnownError(
            f"cannot write {output}: {error.strerror or error}", hint="Name another file with --output."
        ) from error
