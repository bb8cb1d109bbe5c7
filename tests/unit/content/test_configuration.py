"""`latencydoctor.yaml`: where it is found, what it says, and every mistake at its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from latencydoctor.content.configuration import find, load
from latencydoctor.errors import ContentErrors, KnownError
from latencydoctor.model.configuration import Configuration, Credentials, Slo, Tenant, TorchServeSource, TritonTarget

FULL = """\
sources:
  prometheus:
    url: https://prom.example/prefix
    username: ops
    password_env: PROM_PASSWORD
    ca_file: ca.pem
    cert_file: /etc/tls/me.pem
    key_file: me.key
    tenant: {header: X-Scope-OrgID, value_env: TEAM}
  triton: {grpc: "triton:8001"}
  torchserve: {management: "https://torch:8081", bearer_file: key_file.json, ca_file: /etc/ca.pem}
  logs: [logs/*.log, /var/log/triton.log]
  nvml: false
selector: namespace="prod"
model: ranker
slo: {p99_ms: 800, error_ratio: 0.01, baseline_ratio: 3}
thresholds: {queue_time_high_ms: 80}
targets: {bundled: {state: state}}
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "latencydoctor.yaml"
    path.write_text(text)
    return path


def test_everything_it_can_say(tmp_path: Path) -> None:
    found = load(write(tmp_path, FULL))
    assert found.prometheus is not None
    assert found.prometheus.url == "https://prom.example/prefix"
    assert found.prometheus.credentials == Credentials(username="ops", password_env="PROM_PASSWORD")
    assert found.prometheus.ca_file == str(tmp_path / "ca.pem")
    assert (found.prometheus.cert_file, found.prometheus.key_file) == ("/etc/tls/me.pem", str(tmp_path / "me.key"))
    assert found.prometheus.tenant == Tenant("X-Scope-OrgID", value_env="TEAM")
    assert found.triton_grpc == "triton:8001"
    assert found.torchserve == TorchServeSource(
        "https://torch:8081", Credentials(bearer_file=str(tmp_path / "key_file.json")), "/etc/ca.pem"
    )
    assert found.logs == (str(tmp_path / "logs/*.log"), "/var/log/triton.log")
    assert (found.nvml, found.selector, found.model) == (False, 'namespace="prod"', "ranker")
    assert found.slo == Slo(800, 0.01, 3)
    assert found.thresholds == (("queue_time_high_ms", 80.0),)
    assert found.bundled_state == str(tmp_path / "state")


def test_a_triton_to_change(tmp_path: Path) -> None:
    found = load(write(tmp_path, "targets: {triton: {repository: models, grpc: 't:8001', model: m, wait_s: 600}}\n"))
    assert found.triton_target == TritonTarget(str(tmp_path / "models"), "t:8001", "m", 600.0)
    plain = load(write(tmp_path, "targets: {triton: {repository: /models, grpc: 't:8001'}}\n"))
    assert plain.triton_target == TritonTarget("/models", "t:8001")


def test_what_it_does_not_say_has_its_default(tmp_path: Path) -> None:
    path = write(tmp_path, "model: ranker\n")
    assert load(path) == Configuration(path=str(path), model="ranker")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("modle: ranker\n", ":1:8: unknown key 'modle'"),
        ("slo: {p99_ms: 0}\n", "slo.p99_ms must be above 0"),
        ("slo: {error_ratio: 5}\n", "slo.error_ratio must be above 0 and at most 1"),
        ("slo: {baseline_ratio: 1}\n", "slo.baseline_ratio must be above 1"),
        ("sources:\n  triton: {grpc: triton}\n", ":2:18: sources.triton.grpc is 'triton', not host:port"),
        ("sources:\n  prometheus: {url: x, password: hunter2}\n", "a secret does not belong into this file: password"),
        ("sources:\n  prometheus: {}\n", "sources.prometheus.url is missing"),
        ("sources:\n  prometheus: {url: x, key_file: k}\n", "sources.prometheus.key_file needs a cert_file"),
        ("sources:\n  prometheus: {url: x, tenant: {header: H}}\n", "tenant needs either value_env or value_file"),
        (
            "sources:\n  prometheus: {url: x, tenant: {header: H, value_env: A, value_file: b}}\n",
            "tenant needs either value_env or value_file",
        ),
        ("sources:\n  prometheus: {url: x, tenant: {value_env: A}}\n", "sources.prometheus.tenant.header is missing"),
        ("sources:\n  torchserve: {bearer_env: A}\n", "sources.torchserve.management is missing"),
        ("sources:\n  torchserve: {management: x, token: hunter2}\n", "a secret does not belong into this file: token"),
        (
            "sources:\n  torchserve: {management: x, key_file: key_file.json}\n",
            "sources.torchserve.key_file needs a cert_file",
        ),
        ("targets:\n  triton: {repository: m, grpc: triton}\n", "targets.triton.grpc is 'triton', not host:port"),
        ("targets:\n  triton: {grpc: 'triton:8001'}\n", "targets.triton.repository is missing"),
        (
            "targets:\n  triton: {repository: m, grpc: 't:1', wait_s: 0}\n",
            "targets.triton.wait_s must be from 1 to 3600",
        ),
        ("- a list\n", "mapping"),
    ],
)
def test_each_mistake_has_its_place(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(ContentErrors) as caught:
        load(write(tmp_path, text))
    assert expected in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ContentErrors) as caught:
        load(write(tmp_path, "modle: ranker\nslo: {p99_ms: -1, error_ratio: 7}\n"))
    assert len(caught.value.errors) == 3


def test_the_flag_beats_the_environment_which_beats_the_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, home, other = tmp_path / "work", tmp_path / "home", tmp_path / "other"
    for folder in (work, home / ".config" / "latencydoctor", other):
        folder.mkdir(parents=True)
    monkeypatch.chdir(work)
    in_home = write(home / ".config" / "latencydoctor", "model: a\n")
    environment = {"HOME": str(home)}
    assert find(None, environment) == in_home
    write(work, "model: b\n")
    assert find(None, environment) == Path("latencydoctor.yaml")
    named = write(other, "model: c\n")
    assert find(None, environment | {"LATENCYDOCTOR_CONFIG": str(named)}) == named
    assert find(named, {}) == named
    assert find(None, {"HOME": str(other)}) == Path("latencydoctor.yaml")


def test_a_named_file_that_is_not_there_is_an_error_and_no_file_at_all_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find(None, {"HOME": str(tmp_path)}) is None
    with pytest.raises(KnownError, match="no configuration file") as caught:
        find(tmp_path / "nowhere.yaml", {})
    assert "--config" in caught.value.hint
    with pytest.raises(KnownError) as caught:
        find(None, {"LATENCYDOCTOR_CONFIG": "nowhere.yaml"})
    assert "$LATENCYDOCTOR_CONFIG" in caught.value.hint


TORCHSERVE = """
targets:
  torchserve:
    management: http://ts.example:8081
    bearer_file: key_file.json
    model: tiny
    archives: {1.0: tiny-1.0.mar, "1.1": tiny-1.1.mar}
"""


def test_a_torchserve_as_a_target(tmp_path: Path) -> None:
    path = tmp_path / "latencydoctor.yaml"
    path.write_text(TORCHSERVE)
    found = load(path).torchserve_target
    assert found is not None
    assert found.server.url == "http://ts.example:8081"
    assert found.server.credentials.bearer_file == str(tmp_path / "key_file.json")
    assert (found.model, found.archives) == ("tiny", (("1.0", "tiny-1.0.mar"), ("1.1", "tiny-1.1.mar")))


def test_a_torchserve_that_is_read_anyway_need_not_be_described_twice(tmp_path: Path) -> None:
    path = tmp_path / "latencydoctor.yaml"
    path.write_text(
        "sources: {torchserve: {management: 'http://ts:8081', bearer_file: k}}\ntargets: {torchserve: {model: tiny}}\n"
    )
    found = load(path)
    assert found.torchserve_target is not None
    assert found.torchserve_target.server == found.torchserve


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("targets: {torchserve: {model: tiny}}", "targets.torchserve.management is missing"),
        ("targets: {torchserve: {management: 'http://h:8081'}}", "targets.torchserve.model is missing"),
        ("targets: {torchserve: {management: 'http://h:8081', model: x, token: y}}", "a secret does not belong"),
        (
            "targets: {torchserve: {management: 'http://h:8081', model: x, archives: {new: a.mar}}}",
            "'new' in targets.torchserve.archives is no version",
        ),
    ],
)
def test_mistakes_in_a_torchserve_are_told(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "latencydoctor.yaml"
    path.write_text(text)
    with pytest.raises(ContentErrors) as caught:
        load(path)
    assert expected in str(caught.value)
