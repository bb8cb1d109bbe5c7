from __future__ import annotations

import configparser
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from latencydoctor.errors import KnownError
from latencydoctor.stack.alertmanager import Alertmanager
from latencydoctor.stack.binaries import Binaries
from latencydoctor.stack.endpoints import Endpoints, Ports, TritonPorts, endpoints_for
from latencydoctor.stack.layout import Layout
from latencydoctor.stack.programs import Inputs, programs, refuse_unsafe_path, supervisord_config
from latencydoctor.stack.settings import InferenceSettings, Settings
from latencydoctor.stack.triton_tree import TritonTree

LAYOUT = Layout(Path("/home/me/my stack"))
PORTS = Ports(9001, 9002, 9003, 9004, 9005, 9006, 9007)


def endpoints() -> Endpoints:
    return endpoints_for(LAYOUT.run, PORTS, "sim:small", alertmanager=True)


def inputs(alerting: Alertmanager | None) -> Inputs:
    return Inputs(
        layout=LAYOUT,
        endpoints=endpoints(),
        binaries=Binaries(Path("/opt/prometheus"), None, None, Path("/opt/valkey-server")),
        alertmanager=alerting,
        tree=TritonTree(Path("/cache/triton"), (Path("/libs"), Path("/more"))),
        model=Path("/model.onnx"),
        encodings=Path("/encodings.npz"),
    )


def commands(alerting: Alertmanager | None = None) -> dict[str, tuple[str, ...]]:
    return {program.name: program.command for program in programs(inputs(alerting), Settings())}


def test_the_parts_and_their_order() -> None:
    assert list(commands()) == ["valkey", "triton", "controller", "gateway", "prometheus"]
    assert list(commands(Alertmanager(Path("/opt/am"), None)))[-1] == "alertmanager"


def test_a_second_triton_shares_nothing_with_the_first_but_its_models() -> None:
    ports = replace(PORTS, replicas=(TritonPorts(9008, 9009, 9010),))
    two = endpoints_for(LAYOUT.run, ports, "sim:small", alertmanager=False)
    found = {one.name: one for one in programs(replace(inputs(None), endpoints=two), Settings())}
    first, second = found["triton"], found["triton-2"]
    assert "--grpc-port=9009" in second.command
    differing = {name: value for name, value in second.environment if (name, value) not in first.environment}
    assert set(differing) == {"LATENCYDOCTOR_DEVICE_LOCK", "LATENCYDOCTOR_DEVICE_CLOCK"}
    shared = set(first.command) & set(second.command)
    assert f"--model-repository={LAYOUT.models}" in shared
    assert not any(LAYOUT.shm_prefix in part for part in shared)


def test_a_replica_that_is_not_asked_for_waits_to_be_started() -> None:
    ports = replace(PORTS, replicas=(TritonPorts(9008, 9009, 9010), TritonPorts(9011, 9012, 9013)))
    known = replace(inputs(None), endpoints=endpoints_for(LAYOUT.run, ports, "sim:small", alertmanager=False))
    listed = programs(known, Settings(inference=InferenceSettings(replicas=2)))
    assert [one.name for one in listed if one.waits] == ["triton-3"]
    text = supervisord_config(LAYOUT, known.endpoints, listed)
    found = configparser.RawConfigParser(inline_comment_prefixes=(";", "#"))
    found.read_string(text)
    starts = {name: found[f"program:{name}"]["autostart"] for name in ("triton", "triton-2", "triton-3")}
    assert starts == {"triton": "true", "triton-2": "true", "triton-3": "false"}


def test_every_address_is_loopback() -> None:
    triton = commands()["triton"]
    for option in ("--http-address", "--grpc-address", "--metrics-address"):
        assert f"{option}=127.0.0.1" in triton
    assert "--web.listen-address=127.0.0.1:9002" in commands()["prometheus"]
    alerting = commands(Alertmanager(Path("/opt/am"), None))["alertmanager"]
    assert "--web.listen-address=127.0.0.1:9003" in alerting
    assert "--cluster.listen-address=" in alerting
    valkey = commands()["valkey"]
    assert valkey[valkey.index("--port") + 1] == "0"


def test_shared_memory_carries_the_stacks_own_prefix() -> None:
    triton = commands()["triton"]
    assert f"--backend-config=python,shm-region-prefix-name={LAYOUT.shm_prefix_of(1)}" in triton
    assert LAYOUT.shm_prefix != Layout(Path("/home/me/other")).shm_prefix


def test_the_supervisors_configuration_reads_back() -> None:
    listed = programs(inputs(Alertmanager(Path("/opt/am"), None)), Settings())
    found = configparser.RawConfigParser(inline_comment_prefixes=(";", "#"))
    found.read_string(supervisord_config(LAYOUT, endpoints(), listed))
    for program in listed:
        section = found[f"program:{program.name}"]
        assert tuple(shlex.split(section["command"])) == program.command
        assert section["autorestart"] == "true"
        assert section["stdout_logfile"] == str(LAYOUT.log(program.name))
    assert 'LD_LIBRARY_PATH="/libs:/more"' in found["program:triton"]["environment"]
    assert found["program:alertmanager"]["directory"] == str(LAYOUT.alertmanager)
    assert found["unix_http_server"]["chmod"] == "0600"
    assert "inet_http_server" not in found


@pytest.mark.parametrize("path", ["/a;b", "/a#b", "/a%b", '/a"b', "/a'b", "/a\nb", "/a\x1bb"])
def test_a_path_the_supervisor_cannot_carry_is_refused(path: str) -> None:
    with pytest.raises(KnownError, match="the state folder's path has"):
        refuse_unsafe_path(Path(path))


def test_a_plain_path_is_fine() -> None:
    refuse_unsafe_path(Path("/home/me/.local/state/a-b_c.1"))
