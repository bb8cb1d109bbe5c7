"""Metrics pages that are not for everyone: who may read them is said in the configuration, and told to no one else."""

from __future__ import annotations

import base64
import gzip
import json
import time
from pathlib import Path

import pytest

from latencydoctor.cli import probing, wiring
from latencydoctor.cli.sources_wiring import DiagnoseRequest
from latencydoctor.content.configuration import load
from latencydoctor.errors import CannotTell, LatencyDoctorError, SourceError
from latencydoctor.model.configuration import Configuration, Credentials, MetricsPage, Tenant
from latencydoctor.report import machine
from latencydoctor.sources.pages_http import places_of
from tests.contract.authority import Authority, found_company
from tests.contract.strangers import Answer, Asked, stranger
from tests.contract.test_pages import triton

SECRET = "s3cr3t-0f-the-team"
TEXT = "text/plain; version=0.0.4"
TRUSTED = "    ca_file: ca.pem\n    cert_file: client.pem\n    key_file: client.key\n"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return found_company(tmp_path_factory.mktemp("pages"))


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch, authority: Authority) -> None:
    monkeypatch.setenv("PAGE_TOKEN", SECRET)
    monkeypatch.setenv("PAGE_TEAM", "blue")
    (authority.folder / "password").write_text(f"{SECRET}\n")


def served_to(header: str, value: str) -> Answer:
    """A page of a served model, for whoever shows that header; others are told what they showed."""
    began_s = time.monotonic()

    def answer(asked: Asked) -> None:
        if asked.header(header) == value:
            asked.reply(triton("bert", 20.0, time.monotonic() - began_s).encode(), kind=TEXT)
        else:
            told = json.dumps({"error": f"not for {asked.header('authorization')}"}).encode()
            asked.reply(told, "401 Unauthorized")

    return answer


def written(authority: Authority, url: str, more: str) -> Path:
    """A configuration file beside the company's certificates with one page, and what is said of it."""
    path = authority.folder / "latencydoctor.yaml"
    path.write_text(f"sources:\n  nvml: false\n  metrics:\n  - url: {url}\n{more}")
    return path


def basic(user: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{SECRET}".encode()).decode()


def diagnose(file: Path, *urls: str) -> wiring.Diagnosed:
    return wiring.diagnose(
        wiring.DiagnoseRequest(config=file, metrics_urls=urls, scrapes=3, every="300ms", deadline="10s")
    )


@pytest.mark.parametrize(
    ("header", "value", "said"),
    [
        ("Authorization", f"Bearer {SECRET}", "    bearer_env: PAGE_TOKEN\n"),
        ("Authorization", f"Bearer {SECRET}", "    bearer_file: password\n"),
        ("Authorization", basic("ann"), "    username: ann\n    password_file: password\n"),
        ("Authorization", basic("ann"), "    username: ann\n    password_env: PAGE_TOKEN\n"),
        ("X-Scope-OrgID", "blue", "    tenant: {header: X-Scope-OrgID, value_env: PAGE_TEAM}\n"),
    ],
)
def test_a_page_is_read_with_what_the_file_names(authority: Authority, header: str, value: str, said: str) -> None:
    with stranger(served_to(header, value), authority.server(asks_back=True)) as server:
        file = written(authority, f"{server.url}/metrics", TRUSTED + said)
        found = diagnose(file)
        probed = probing.probe(DiagnoseRequest(config=file))
    assert found.collected.selection.model == "bert"
    assert [one.state for one in probed.sources] == ["ok"]
    assert len(server.asked) == 4
    assert {asked.header(header) for asked in server.asked} == {value}


@pytest.mark.parametrize(
    ("said", "message", "hint"),
    [
        ("", "TLS failed", "ca_file"),
        ("    ca_file: ca.pem\n", "certificate required", "cert_file"),
        (TRUSTED, "credentials refused", "bearer_env"),
        (TRUSTED + "    bearer_env: ABSENT\n", "ABSENT is not set", "the credentials for the metrics page"),
        (TRUSTED + "    bearer_file: nowhere\n", "the credentials cannot be read", ""),
        ("    ca_file: nowhere.pem\n", "the CA file does not exist", "ca_file"),
        (
            "    cert_file: client.pem\n    key_file: locked.key\n",
            "the client certificate cannot be used",
            "pass phrase",
        ),
    ],
)
def test_what_is_missing_is_said(authority: Authority, said: str, message: str, hint: str) -> None:
    with stranger(served_to("Authorization", f"Bearer {SECRET}"), authority.server(asks_back=True)) as server:
        file = written(authority, f"{server.url}/metrics", said)
        with pytest.raises(SourceError, match=message) as refused:
            diagnose(file)
        (probed,) = probing.probe(DiagnoseRequest(config=file)).sources
    assert hint in refused.value.hint
    assert "Prometheus" not in refused.value.message + refused.value.hint
    assert probed.state == "wrong"
    assert message in probed.detail


@pytest.mark.parametrize(("server_name", "message"), [("expired", "has expired"), ("elsewhere", "IP address mismatch")])
def test_a_certificate_that_is_over_or_another_hosts(authority: Authority, server_name: str, message: str) -> None:
    with (
        stranger(served_to("", ""), authority.server(server_name)) as server,
        pytest.raises(SourceError, match=message),
    ):
        diagnose(written(authority, server.url, TRUSTED))
    assert server.asked == []


def test_the_ca_of_the_file_beats_the_one_of_the_environment(
    authority: Authority, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", found_company(tmp_path).path("ca.pem"))
    with stranger(served_to("", ""), authority.server()) as server:
        assert probing.probe(DiagnoseRequest(config=written(authority, server.url, TRUSTED))).sources[0].state == "ok"


def configured(authority: Authority, url: str, *flags: str) -> Configuration:
    file = written(authority, url, TRUSTED + "    bearer_env: PAGE_TOKEN\n")
    return wiring.load_configuration(wiring.DiagnoseRequest(config=file, metrics_urls=flags))


def test_a_flag_takes_credentials_along_for_the_address_that_they_were_written_for(authority: Authority) -> None:
    url = "https://Server.example:443/metrics"
    (entry,) = configured(authority, url).metrics_pages
    assert entry.credentials == Credentials(bearer_env="PAGE_TOKEN")
    same = [url, "https://server.example/metrics", "https://server.example", "https://server.example/metrics/"]
    assert configured(authority, url, *same).metrics_pages == (entry,) * 4
    other = [
        "http://server.example:443/metrics", "https://server.example:444/metrics", "https://server.example.evil/metrics",
        "https://server.example/metrics/b", "https://server.example/other", "https://me:mine@server.example/metrics",
        "https://server.example@evil.example/metrics",
    ]  # fmt: skip
    assert configured(authority, url, *other).metrics_pages == tuple(MetricsPage(one) for one in other)
    with pytest.raises(SourceError):
        configured(authority, url, "server.example/metrics")


def test_a_flag_sends_nothing_elsewhere(authority: Authority) -> None:
    with (
        stranger(served_to("Authorization", f"Bearer {SECRET}"), authority.server()) as known,
        stranger(served_to("", "")) as other,
    ):
        file = written(authority, known.url, TRUSTED + "    bearer_env: PAGE_TOKEN\n")
        assert diagnose(file, f"{known.url}/metrics").collected.selection.model == "bert"
        diagnose(file, other.url)
    assert {asked.header("authorization") for asked in known.asked} == {f"Bearer {SECRET}"}
    assert {asked.header("authorization") for asked in other.asked} == {""}


def test_a_redirect_to_another_host_carries_nothing_there(authority: Authority) -> None:
    with stranger(served_to("", ""), authority.server()) as other:

        def away(asked: Asked) -> None:
            asked.reply(b"", "307 Temporary Redirect", Location=f"{other.url}/metrics")

        with stranger(away, authority.server()) as server:
            said = TRUSTED + "    bearer_env: PAGE_TOKEN\n    tenant: {header: X-Scope-OrgID, value_env: PAGE_TEAM}\n"
            with pytest.raises(SourceError, match="another host"):
                diagnose(written(authority, server.url, said))
    assert other.asked == []


def test_no_secret_is_told_to_anyone(authority: Authority, tmp_path: Path) -> None:
    told: list[str] = []

    def gossip(asked: Asked) -> None:
        shown = asked.header("authorization")
        body = json.dumps({"error": f"{shown} and {shown.split()[-1]} may not"}).encode()
        asked.reply(body, "503 Service Unavailable")

    for said in ("    bearer_env: PAGE_TOKEN\n", "    username: ann\n    password_file: password\n"):
        with stranger(gossip, authority.server()) as server:
            file = written(authority, server.url, TRUSTED + said)
            with pytest.raises(CannotTell) as failed:
                diagnose(file)
            told += [failed.value.message, failed.value.hint, machine.dump(probing.probe(DiagnoseRequest(config=file)))]
    with stranger(served_to("Authorization", f"Bearer {SECRET}"), authority.server()) as server:
        found = diagnose(written(authority, server.url, TRUSTED + "    bearer_env: PAGE_TOKEN\n"))
    wiring.save_bundle(tmp_path / "bundle.json.gz", found.collected)
    told += [gzip.decompress((tmp_path / "bundle.json.gz").read_bytes()).decode(), machine.diagnosis(found.diagnosis)]
    told.append(repr(found.configuration))
    for text in told:
        assert SECRET not in text
        assert basic("ann").split()[-1] not in text


def test_one_page_cannot_be_read_by_two(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = MetricsPage("http://a/metrics", Credentials(bearer_env="PAGE_TOKEN"))
    assert len(places_of([ours, ours])) == 1
    for theirs in (MetricsPage("http://a"), MetricsPage("http://a", tenant=Tenant("X-Team", value_env="PAGE_TEAM"))):
        with pytest.raises(SourceError, match="named twice"):
            places_of([ours, theirs])


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("{bearer_env: T}", "sources.metrics[0].url is missing"),
        ("{url: 'http://a', bearer: 12345678}", "a secret does not belong into this file: bearer"),
        ("{url: 'http://a', token: hunter2}", "a secret does not belong into this file: token"),
        ("{url: 'http://a', key_file: k}", "sources.metrics[0].key_file needs a cert_file"),
        ("{url: 'http://a', tenant: {header: H}}", "sources.metrics[0].tenant needs either value_env or value_file"),
        ("{url: 'http://a', baerer_env: T}", "unknown key 'sources.metrics[0].baerer_env'"),
        ("12", "sources.metrics[0] must be text or a mapping of names to values, not 12"),
        ("[a]", "sources.metrics[0] must be text or a mapping of names to values, not a list or mapping"),
    ],
)
def test_each_mistake_in_the_file_has_its_place(tmp_path: Path, item: str, expected: str) -> None:
    path = tmp_path / "latencydoctor.yaml"
    path.write_text(f"sources:\n  metrics:\n  - {item}\n")
    with pytest.raises(LatencyDoctorError) as caught:
        load(path)
    assert expected in str(caught.value)
    assert "latencydoctor.yaml:3:" in str(caught.value)
    assert "12345678" not in str(caught.value)
    assert "hunter2" not in str(caught.value)
