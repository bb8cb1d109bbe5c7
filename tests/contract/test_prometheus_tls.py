"""TLS: an unknown certificate is refused, the own CA of a company is trusted when it is named."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from latencydoctor.content.locate import locate
from latencydoctor.content.signals import read_signals
from latencydoctor.errors import SourceError
from latencydoctor.model.configuration import PrometheusSource
from latencydoctor.model.evidence import Selection
from latencydoctor.sources.prometheus import PrometheusMetrics
from tests.contract.strangers import Asked, names_json, stranger

_, DIALECTS = read_signals(locate())


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 with its key, in one file, signed by itself."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    key, made = folder / "key.pem", folder / "made.pem"
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(made)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    whole = folder / "whole.pem"
    whole.write_text(made.read_text() + key.read_text())
    return whole


def discover(certificate: Path, ca_file: str) -> int:
    """How many metric names come over TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def answer(asked: Asked) -> None:
        asked.reply(names_json("up", "go_info"))

    with stranger(answer, context) as server:
        metrics = PrometheusMetrics(PrometheusSource(server.url, ca_file=ca_file), 5.0)
        return len(metrics.discover(DIALECTS, Selection(""), 1_800_000_000.0).names)


def test_a_named_ca_is_trusted(certificate: Path) -> None:
    assert discover(certificate, str(certificate)) == 2


def test_an_unknown_certificate_is_refused(certificate: Path) -> None:
    with pytest.raises(SourceError, match="TLS failed") as caught:
        discover(certificate, "")
    assert "ca_file" in caught.value.hint


def test_a_ca_file_that_holds_no_certificate_is_told(certificate: Path, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("nothing of the kind")
    with pytest.raises(SourceError, match="TLS failed"):
        discover(certificate, str(tmp_path / "ca.pem"))
