"""Addresses and credentials are checked before the first request, and no message shows a secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from latencydoctor.errors import SourceError
from latencydoctor.model.configuration import Credentials, PrometheusSource, Tenant
from latencydoctor.sources.address import Address, read_address
from latencydoctor.sources.authentication import origin_of

SECRET = "s3cr3t"


@pytest.mark.parametrize(
    ("url", "bare"),
    [
        ("http://h:9090", "http://h:9090"),
        (" https://h/team/prom/ ", "https://h/team/prom"),
        ("http://[::1]:9090/", "http://[::1]:9090"),
        (f"http://ann:{SECRET}@h", "http://h"),
    ],
)
def test_an_address_is_tidied(url: str, bare: str) -> None:
    assert read_address(PrometheusSource(url), {}).url == bare


@pytest.mark.parametrize(
    "url",
    [
        f"h:9090/{SECRET}",
        "ftp://h",
        "http://",
        f"http://h:port{SECRET}",
        f"http://[::1{SECRET}",
        f"http://h?token={SECRET}",
        f"http://h#{SECRET}",
        "",
    ],
)
def test_a_malformed_address_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(SourceError) as caught:
        read_address(PrometheusSource(url), {})
    assert SECRET not in caught.value.message + caught.value.hint
    assert caught.value.hint


@pytest.mark.parametrize(
    ("credentials", "message"),
    [
        (Credentials(bearer_env="ABSENT"), "the environment variable ABSENT is not set"),
        (Credentials(bearer_env="BAD"), "the credentials in BAD are empty or hold characters"),
        (Credentials(bearer_env="BLANK"), "the credentials in BLANK are empty"),
        (Credentials("ann", password_file="/no/such"), "the credentials cannot be read: No such file"),
    ],
)
def test_credentials_that_cannot_be_used_are_told(credentials: Credentials, message: str) -> None:
    environment = {"BAD": f"{SECRET}\nInjected: x", "BLANK": "  "}
    with pytest.raises(SourceError) as caught:
        read_address(PrometheusSource("http://h", credentials), environment)
    assert message in caught.value.message
    assert SECRET not in str(caught.value)


def test_a_credential_file_that_is_no_text_is_told_without_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"\xff" + SECRET.encode())
    with pytest.raises(SourceError, match="are not text") as caught:
        read_address(PrometheusSource("http://h", Credentials(bearer_file=str(tmp_path / "key"))), {})
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_the_ca_file_must_exist(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="CA file does not exist"):
        read_address(PrometheusSource("https://h", ca_file=str(tmp_path / "ca.pem")), {})
    (tmp_path / "ca.pem").touch()
    found = read_address(PrometheusSource("https://h", ca_file=str(tmp_path / "ca.pem")), {})
    assert found == Address("https://h", (), str(tmp_path / "ca.pem"))


def test_credentials_of_the_configuration_beat_those_of_the_address() -> None:
    source = PrometheusSource(f"http://ann:{SECRET}@h", Credentials(bearer_env="TOKEN"))
    assert read_address(source, {"TOKEN": "t"}).headers == (("Authorization", "Bearer t"),)


def test_an_origin_is_scheme_host_and_port() -> None:
    assert origin_of("http://H/a") == origin_of("http://h:80/b") == ("http", "h", 80)
    assert origin_of("https://h") != origin_of("http://h")
    assert origin_of("http://h:81") != origin_of("http://h")


@pytest.mark.parametrize("header", ["", "X Scope", "X-Scope:", "Authorization", "host", "X\r\nInjected"])
def test_a_header_that_no_tenant_can_have_is_refused(header: str) -> None:
    with pytest.raises(SourceError, match="cannot be the tenant's header"):
        read_address(PrometheusSource("http://h", tenant=Tenant(header, value_env="TEAM")), {"TEAM": "a"})


def test_a_tenant_that_is_not_there_is_told() -> None:
    source = PrometheusSource("http://h", tenant=Tenant("X-Scope-OrgID", value_env="TEAM"))
    with pytest.raises(SourceError, match="TEAM is not set"):
        read_address(source, {})
    assert read_address(source, {"TEAM": "a"}).headers == (("X-Scope-OrgID", "a"),)
