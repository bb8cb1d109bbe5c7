from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

from latencydoctor.stack.endpoints import Ports, endpoints_for, load

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


def test_a_second_replica_has_addresses_where_there_is_one() -> None:
    ports = replace(PORTS, replica_http=9008, replica_grpc=9009, replica_metrics=9010)
    found = endpoints_for(Path("/run"), ports, "cpu", alertmanager=True, replicas=2)
    assert found.ports() == ports
    assert found.tritons_grpc == ("127.0.0.1:9005", "127.0.0.1:9009")
    assert endpoints_for(Path("/run"), ports, "cpu", alertmanager=True).tritons_grpc == ("127.0.0.1:9005",)


def test_a_file_from_before_there_were_replicas_is_read(tmp_path: Path) -> None:
    found = endpoints_for(Path("/run"), PORTS, "cpu", alertmanager=True)
    old = {name: value for name, value in asdict(found).items() if not name.startswith("replica_")}
    (tmp_path / "endpoints.json").write_text(json.dumps(old))
    assert load(tmp_path / "endpoints.json") == found
