from __future__ import annotations

import pwd
from dataclasses import replace

import pytest

from latencydoctor.errors import KnownError
from latencydoctor.stack.host import Host, other_people, refuse_unsupported, this_host

GOOD = Host("Linux", "x86_64", "CPython", (3, 11), "glibc", (2, 36))


def test_a_supported_machine_passes() -> None:
    refuse_unsupported(GOOD)
    refuse_unsupported(replace(GOOD, python=(3, 12), libc_version=(2, 35)))


@pytest.mark.parametrize(
    ("host", "message"),
    [
        (replace(GOOD, system="Darwin", machine="arm64"), "Darwin arm64"),
        (replace(GOOD, machine="aarch64"), "Linux aarch64"),
        (replace(GOOD, python=(3, 13)), "CPython 3.13"),
        (replace(GOOD, implementation="PyPy"), "PyPy 3.11"),
        (replace(GOOD, libc_version=(2, 31)), "glibc 2.31"),
        (replace(GOOD, libc="", libc_version=()), "this C library"),
    ],
)
def test_another_machine_is_refused_in_one_line(host: Host, message: str) -> None:
    with pytest.raises(KnownError, match="does not run on") as caught:
        refuse_unsupported(host)
    assert message in caught.value.message
    assert "CPython 3.11 or 3.12" in caught.value.hint


def account(name: str, uid: int, shell: str = "/bin/bash") -> pwd.struct_passwd:
    return pwd.struct_passwd((name, "x", uid, uid, "", f"/home/{name}", shell))


def test_other_people_are_those_who_can_log_in() -> None:
    accounts = [
        account("root", 0),
        account("me", 1000),
        account("ann", 1001),
        account("backup", 1002, "/usr/sbin/nologin"),
        account("nobody", 65534),
    ]
    assert other_people(accounts, 1000) == ("ann",)


def test_this_machine_is_described() -> None:
    assert this_host().python >= (3, 11)
