"""Makes Debian's Alertmanager run from a folder it was unpacked into, without installing it.

Debian's build reads its notification templates from a fixed path below /usr/share, which does not exist where the
package was only unpacked, and no option changes it. So the user's cache gets a copy of the program in which that path
is replaced by one of the same length, relative to the working directory, and the stack puts the templates there.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from latencydoctor.stack.binaries import Binaries
from latencydoctor.stack.files import clear_left

FIXED = b"/usr/share/prometheus/alertmanager"
RELATIVE = b"./share"
"""Padded with slashes to the length of FIXED: the same folder to the operating system."""

TEMPLATES = ("default.tmpl", "email.tmpl")


@dataclass(frozen=True, slots=True)
class Alertmanager:
    """A runnable Alertmanager; `templates` is what has to be in the folder `share` where it runs, None for nothing."""

    binary: Path
    templates: Path | None


def runnable(found: Binaries, cache: Path) -> Alertmanager | None:
    """The Alertmanager among `found`, made to run from where it is; None when there is none or it cannot be."""
    if found.alertmanager is None:
        return None
    if (Path(os.fsdecode(FIXED)) / TEMPLATES[0]).is_file():
        return Alertmanager(found.alertmanager, None)
    program = found.alertmanager.read_bytes()
    if FIXED not in program:
        return Alertmanager(found.alertmanager, None)
    templates = found.alertmanager.parents[1] / "share" / "prometheus" / "alertmanager"
    if not all((templates / name).is_file() for name in TEMPLATES):
        return None
    changed = found.alertmanager.stat()
    copy = cache / f"alertmanager-{changed.st_size}-{changed.st_mtime_ns}"
    if not copy.is_file():
        _write_program(copy, _relocated(program))
    return Alertmanager(copy, templates)


def _relocated(program: bytes) -> bytes:
    """The program with FIXED replaced, except where the path goes on to the web pages, which are not needed."""
    kept = program.replace(FIXED + b"/", b"\0" * (len(FIXED) + 1))
    place = kept.find(FIXED)
    if place < 0:
        return program
    return program[:place] + RELATIVE.ljust(len(FIXED), b"/") + program[place + len(FIXED) :]


def _write_program(path: Path, program: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    clear_left(path.parent, ".alertmanager-*")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(program)
        temporary.chmod(0o700)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def place_templates(found: Alertmanager, folder: Path) -> None:
    """Puts the templates where a relocated program run in `folder` looks for them."""
    if found.templates is None:
        return
    share = folder / "share"
    share.mkdir(mode=0o700, exist_ok=True)
    for name in TEMPLATES:
        shutil.copyfile(found.templates / name, share / name)
