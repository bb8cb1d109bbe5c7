"""A company's CA for tests: what it has signed, what has expired, what was made out to another host."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True, slots=True)
class Authority:
    """A company's CA and what it has signed; each certificate has its key in `<name>.key`."""

    folder: Path

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def server(self, name: str = "server", *, asks_back: bool = False) -> ssl.SSLContext:
        """What a server with that certificate listens with; with `asks_back` it wants a client's as well."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.path(f"{name}.pem"), self.path(f"{name}.key"))
        if asks_back:
            context.load_verify_locations(self.path("ca.pem"))
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def sign(self, name: str, subject: str, *more: str) -> None:
        """A certificate `<name>.pem` for `subject` (a subjectAltName)."""
        extension = self.folder / f"{name}.ext"
        extension.write_text(f"subjectAltName={subject}\n")
        request, key = self.path(f"{name}.csr"), self.path(f"{name}.key")
        openssl(
            "req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", "-keyout", key, "-out", request
        )  # fmt: skip
        authority = ["-CA", self.path("ca.pem"), "-CAkey", self.path("ca.key"), "-CAcreateserial"]
        openssl(
            "x509", "-req", "-in", request, *authority, "-extfile", str(extension), "-out", self.path(f"{name}.pem"),
            *(more or ("-days", "2")),
        )  # fmt: skip


def openssl(*arguments: str) -> None:
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("no openssl to make certificates with")
    subprocess.run([program, *arguments], check=True, capture_output=True, timeout=60)


def found_company(folder: Path) -> Authority:
    """A new CA in that folder, and certificates of every kind."""
    made = Authority(folder)
    openssl(
        "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=Company CA",
        "-keyout", made.path("ca.key"), "-out", made.path("ca.pem"),
    )  # fmt: skip
    made.sign("server", "IP:127.0.0.1")
    made.sign("elsewhere", "DNS:prometheus.example")
    made.sign("client", "DNS:oncall")
    # OpenSSL counts days from now, so a certificate that has expired is one whose days are over.
    made.sign("expired", "IP:127.0.0.1", "-days", "-1")
    openssl("rsa", "-in", made.path("client.key"), "-aes256", "-passout", "pass:x", "-out", made.path("locked.key"))
    return made
