from __future__ import annotations

from pathlib import Path

from latencydoctor.stack.endpoints import Ports, endpoints_for

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
