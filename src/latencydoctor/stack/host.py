"""Whether this machine can run the bundled stack, said in one line where it cannot."""

from __future__ import annotations

import platform
import pwd
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from latencydoctor.errors import KnownError

PYTHONS = ((3, 11), (3, 12))
"""Triton's wheel needs numpy < 2, which has no wheels for newer Pythons; it starts at the program's own minimum."""

MIN_GLIBC = (2, 35)
"""Triton's wheel is built for manylinux_2_35."""

MIN_FREE_BYTES = 200 * 1024 * 1024
"""What one stack needs to start: Prometheus's write-ahead log and the logs take tens of MB an hour."""


PEOPLE = range(1000, 60_000)
"""User ids that Debian and its kin give to people."""


@dataclass(frozen=True, slots=True)
class Host:
    """What of a machine decides whether the stack runs there."""

    system: str
    machine: str
    implementation: str
    python: tuple[int, int]
    libc: str
    libc_version: tuple[int, ...]


def this_host() -> Host:
    """The machine and the Python this program runs on."""
    libc, version = platform.libc_ver()
    return Host(
        system=platform.system(),
        machine=platform.machine(),
        implementation=platform.python_implementation(),
        python=sys.version_info[:2],
        libc=libc,
        libc_version=tuple(int(part) for part in version.split(".") if part.isdecimal()),
    )


def refuse_unsupported(host: Host) -> None:
    """KnownError naming what of `host` the stack cannot run on."""
    wanted = (
        "The bundled stack needs CPython 3.11 or 3.12 on Linux x86_64 with glibc 2.35 or newer; all else works here."
    )
    if host.system != "Linux" or host.machine not in ("x86_64", "AMD64"):
        raise KnownError(f"the bundled stack does not run on {host.system} {host.machine}", hint=wanted)
    if host.implementation != "CPython" or host.python not in PYTHONS:
        version = ".".join(map(str, host.python))
        raise KnownError(f"the bundled stack does not run on {host.implementation} {version}", hint=wanted)
    if host.libc != "glibc" or host.libc_version < MIN_GLIBC:
        version = ".".join(map(str, host.libc_version))
        raise KnownError(f"the bundled stack does not run on {host.libc or 'this C library'} {version}", hint=wanted)


def other_people(accounts: Iterable[pwd.struct_passwd], own_uid: int) -> tuple[str, ...]:
    """The names of accounts that other people log in with: regular user ids with a shell."""
    return tuple(
        account.pw_name
        for account in accounts
        if account.pw_uid in PEOPLE
        and account.pw_uid != own_uid
        and not account.pw_shell.endswith(("nologin", "false"))
    )


def refuse_full_disk(folder: Path) -> None:
    """KnownError when the file system of `folder` has less room than a stack needs to start."""
    free = shutil.disk_usage(folder).free
    if free < MIN_FREE_BYTES:
        raise KnownError(
            f"only {free // 2**20} MB are free at {folder}, the stack needs {MIN_FREE_BYTES // 2**20} MB",
            hint="Free some space, or choose another place with --state.",
        )
