from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from latencydoctor.stack import endpoints
from latencydoctor.stack.endpoints import Ports, TritonPorts, endpoints_for, free_ports, load, save

PORTS = Ports(9001, 9002, 9003, 9004, 9005, 9006, 9007)


def test_ports_are_read_back_from_the_addresses() -> None:
    assert endpoints_for(Path("/run"), PORTS, "cpu", alertmanager=True).ports() == PORTS


def test_an_absent_alertmanager_has_no_address() -> None:
    found = endpoints_for(Path("/run"), PORTS, "cpu", alertmanager=False)
    assert found.alertmanager == ""
    assert found.ports().alertmanager == 0


def test_addresses_have_the_agreed_forms() -> None:
    found = endpoints_for(Path("/run"), PORTS, "sim:small", alertmanager=True)
    assert found.gateway == "http://127.0.0.1:9001"
    assert found.triton_grpc == "127.0.0.1:9005"
    assert found.triton_metrics == "http://127.0.0.1:9006/metrics"
    assert found.admin_socket == "/run/admin.sock"


def test_further_replicas_have_addresses_of_their_own(tmp_path: Path) -> None:
    ports = replace(PORTS, replicas=(TritonPorts(9008, 9009, 9010), TritonPorts(9011, 9012, 9013)))
    found = endpoints_for(Path("/run"), ports, "cpu", alertmanager=True)
    assert found.ports() == ports
    assert [one.grpc for one in found.tritons] == ["127.0.0.1:9005", "127.0.0.1:9009", "127.0.0.1:9012"]
    assert ports.named()["triton-3 metrics"] == 9013
    save(tmp_path / "endpoints.json", found)
    assert load(tmp_path / "endpoints.json") == found


def test_free_ports_are_all_different() -> None:
    found = list(free_ports(4).named().values())
    assert len(found) == 16
    assert len(set(found)) == 16


def test_a_file_from_before_replicas_were_listed_is_read(tmp_path: Path) -> None:
    found = endpoints_for(Path("/run"), PORTS, "cpu", alertmanager=True)
    old = {name: value for name, value in asdict(found).items() if name != "replicas"}
    (tmp_path / "endpoints.json").write_text(json.dumps(old))
    assert load(tmp_path / "endpoints.json") == found


def test_the_kernel_gives_the_ports_to_no_client(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    if first > endpoints.LOWEST_PORT + 100:
        assert all(endpoints.LOWEST_PORT <= port < first for port in free_ports(4).named().values())
    for said in ("1024 65535", "nonsense"):
        (tmp_path / "range").write_text(said)
        monkeypatch.setattr(endpoints, "EPHEMERAL", tmp_path / "range")
        assert len(set(free_ports(2).named().values())) == 10, "any that is free, where there are no such ports"
