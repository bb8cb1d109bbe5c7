"""What the proxy says: ingress-nginx or Envoy."""

from __future__ import annotations

import numpy as np

from benchmarks.faults.pages.scene import Scene
from benchmarks.faults.pages.tally import Spread, Tally
from benchmarks.faults.simulator.front import BREAKER, CONNECTED, RETRY, TRY_TIMED_OUT

NGINX_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_SECONDS = (1, 2.5, 5, 10, 30, 60, 300, 600, 1800, 3600)
ENVOY_MS = (0.5, 1, 5, 10, 25, 50, 100, 250, 500, *(int(1000 * bound) for bound in _SECONDS))


def write(scene: Scene) -> None:
    """Add the page of the proxy that this cluster has, if any."""
    if "nginx" in scene.exporters:
        _nginx(scene)
    if "envoy" in scene.exporters:
        _envoy(scene)


def _nginx(scene: Scene) -> None:
    target = scene.target("ingress-nginx", "10.4.0.3:10254")
    place = {"ingress": "serving", "service": "serving", "host": "serving.example", "path": "/", "method": "POST"}
    requests, tries = scene.rows(scene.plant.log.requests), scene.rows(scene.plant.log.tries)
    for status in np.unique(requests["status"]):
        mine = requests["status"] == status
        labels = {**place, "status": str(int(status))}
        target.count("nginx_ingress_controller_requests", Tally(requests["time"][mine]), **labels)
        took = Spread(requests["time"][mine], requests["e2e_ms"][mine] / 1000, NGINX_S)
        target.histogram("nginx_ingress_controller_request_duration_seconds", took, **labels)
    for status in np.unique(tries["status"]):
        mine = tries["status"] == status
        waited = Spread(tries["time"][mine], tries["upstream_ms"][mine] / 1000, NGINX_S)
        labels = {**place, "status": str(int(status))}
        target.histogram("nginx_ingress_controller_response_duration_seconds", waited, **labels)
    # An open connection counts as connected in no time.
    connect = Spread(tries["time"], np.maximum(tries["connect_ms"], 0) / 1000, NGINX_S)
    target.histogram("nginx_ingress_controller_connect_duration_seconds", connect, **place)


def _envoy(scene: Scene) -> None:
    target = scene.target("envoy", "10.4.0.3:15090")
    cluster, listener = {"envoy_cluster_name": "serving"}, {"envoy_http_conn_manager_prefix": "ingress"}
    requests, tries = scene.rows(scene.plant.log.requests), scene.rows(scene.plant.log.tries)
    proxy = scene.rows(scene.plant.log.proxy)

    def count(name: str, kind: int) -> None:
        target.count(name, Tally(proxy["time"][proxy["kind"] == kind]), **cluster)

    waited = Spread(tries["time"], tries["upstream_ms"], ENVOY_MS)
    target.histogram("envoy_cluster_upstream_rq_time", waited, **cluster)
    fresh = tries["connect_ms"] >= 0
    connect = Spread(tries["time"][fresh], tries["connect_ms"][fresh], ENVOY_MS)
    target.histogram("envoy_cluster_upstream_cx_connect_ms", connect, **cluster)
    target.count("envoy_cluster_upstream_rq_total", Tally(tries["time"]), **cluster)
    took = Spread(requests["time"], requests["e2e_ms"], ENVOY_MS)
    target.histogram("envoy_http_downstream_rq_time", took, **listener)
    target.count("envoy_http_downstream_rq_total", Tally(requests["time"]), **listener)
    for digit in (2, 4, 5):
        code = {"envoy_response_code_class": str(digit)}
        upstream = tries["time"][tries["status"] // 100 == digit]
        target.count("envoy_cluster_upstream_rq_xx", Tally(upstream), **cluster, **code)
        down = requests["time"][requests["status"] // 100 == digit]
        target.count("envoy_http_downstream_rq_xx", Tally(down), **listener, **code)
    count("envoy_cluster_upstream_rq_retry", RETRY)
    count("envoy_cluster_upstream_rq_timeout", TRY_TIMED_OUT)
    count("envoy_cluster_upstream_rq_pending_overflow", BREAKER)
    count("envoy_cluster_upstream_cx_total", CONNECTED)
    target.gauge("envoy_cluster_upstream_rq_active", scene.samples("upstream_open").at(target.times), **cluster)
    target.gauge("envoy_cluster_upstream_rq_pending_active", 0.0, **cluster)
