"""TLS as companies have it: an own CA, certificates of yesterday or of another host, servers that ask back."""

from __future__ import annotations

from pathlib import Path

import pytest

from latencydoctor.content.locate import locate
from latencydoctor.content.signals import read_signals
from latencydoctor.errors import LatencyDoctorError, SourceError
from latencydoctor.model.configuration import PrometheusSource
from latencydoctor.model.evidence import Selection
from latencydoctor.sources.prometheus import PrometheusMetrics
from tests.contract.authority import Authority, found_company
from tests.contract.strangers import Asked, names_json, stranger

_, DIALECTS = read_signals(locate())


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return found_company(tmp_path_factory.mktemp("tls"))


def discover(
    authority: Authority, server_name: str, ca: str = "", client: tuple[str, str] = ("", ""), *, ask_back: bool = False
) -> int:
    """How many metric names come over TLS from a server with that certificate."""

    def answer(asked: Asked) -> None:
        asked.reply(names_json("up", "go_info"))

    with stranger(answer, authority.server(server_name, asks_back=ask_back)) as server:
        source = PrometheusSource(server.url, ca_file=ca, cert_file=client[0], key_file=client[1])
        return len(PrometheusMetrics(source, 5.0).discover(DIALECTS, Selection(""), 1_800_000_000.0).names)


def test_a_named_ca_is_trusted(authority: Authority) -> None:
    assert discover(authority, "server", authority.path("ca.pem")) == 2


def test_an_unknown_certificate_is_refused(authority: Authority) -> None:
    with pytest.raises(SourceError, match="TLS failed") as caught:
        discover(authority, "server")
    assert "ca_file" in caught.value.hint


@pytest.mark.parametrize(
    ("server_name", "message"), [("expired", "certificate has expired"), ("elsewhere", "IP address mismatch")]
)
def test_a_certificate_that_is_over_or_another_hosts_is_refused(
    authority: Authority, server_name: str, message: str
) -> None:
    with pytest.raises(SourceError, match=message):
        discover(authority, server_name, authority.path("ca.pem"))


def test_a_ca_file_that_holds_no_certificate_is_told(authority: Authority, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("nothing of the kind")
    with pytest.raises(SourceError, match="TLS failed"):
        discover(authority, "server", str(tmp_path / "ca.pem"))


def test_a_server_that_asks_for_a_certificate_gets_it(authority: Authority, tmp_path: Path) -> None:
    ca, certificate, key = (authority.path(name) for name in ("ca.pem", "client.pem", "client.key"))
    assert discover(authority, "server", ca, (certificate, key), ask_back=True) == 2
    both = tmp_path / "both.pem"
    both.write_text(Path(certificate).read_text() + Path(key).read_text())
    assert discover(authority, "server", ca, (str(both), ""), ask_back=True) == 2


def test_a_server_that_asks_for_a_certificate_in_vain_says_so(authority: Authority) -> None:
    with pytest.raises(LatencyDoctorError) as caught:
        discover(authority, "server", authority.path("ca.pem"), ask_back=True)
    assert isinstance(caught.value, SourceError)
    assert "certificate required" in caught.value.message
    assert "cert_file" in caught.value.hint


@pytest.mark.parametrize(
    ("certificate", "key", "message"),
    [
        ("absent.pem", "client.key", "cannot be read: No such file"),
        ("client.pem", "absent.key", "cannot be read: No such file"),
        ("client.pem", "server.key", "key values mismatch"),
        ("client.pem", "ca.pem", "cannot be used"),
        # It would ask for the pass phrase on the terminal otherwise.
        ("client.pem", "locked.key", "cannot be used"),
    ],
)
def test_a_client_certificate_that_cannot_be_used_is_told_at_once(
    authority: Authority, certificate: str, key: str, message: str
) -> None:
    source = PrometheusSource("https://h", cert_file=authority.path(certificate), key_file=authority.path(key))
    with pytest.raises(SourceError, match=message) as caught:
        PrometheusMetrics(source)
    assert "without a pass phrase" in caught.value.hint
