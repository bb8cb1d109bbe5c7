"""What lies around a server: GPUs, cache servers, proxies, Kubernetes, several of each in a real Prometheus.

No real exporter of these runs here (a GPU, a cluster, an ingress would be needed), so the dialects are not verified;
their series are made from the names, labels and units of the reference. What is tested is that the right ones are
counted, once, and never another service's.
"""

from __future__ import annotations

import json
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator

import pytest

from latencydoctor.evidence.promql import evaluate
from latencydoctor.evidence.queries import render
from latencydoctor.model.configuration import PrometheusSource
from latencydoctor.model.evidence import Selection
from latencydoctor.sources.prometheus import PrometheusMetrics
from tests.contract.backfill import Page, running_prometheus
from tests.contract.recordings import (
    DIALECTS,
    SIGNALS,
    Sample,
    Scrape,
    dialect,
    expressions,
    page_of,
    read,
    recorded,
    seconds,
)

START_S = float(int(time.time()) - 1200)
SCRAPES, EVERY_S = 60, 10.0
WINDOW_S = 40.0
BLANK = 9223372036854775794.0

PODS = {"triton-a": ("prod", "m1", "GPU-1"), "triton-b": ("prod", "m1", "GPU-2"), "triton-c": ("prod", "m2", "GPU-3"),
        "triton-s": ("staging", "m1", "GPU-4")}  # fmt: skip
BUSY = {"GPU-1": 0.5, "GPU-2": 0.7, "GPU-3": 0.1, "GPU-4": 0.9}
EXPORTERS = {"n1:9400": ("GPU-1", "GPU-3"), "n1:9401": ("GPU-1", "GPU-3"), "n2:9400": ("GPU-2", "GPU-4")}


class Course:
    """Series that stand still or grow evenly, from one scrape to the next."""

    def __init__(self) -> None:
        self.page = Page()

    def gauge(self, name: str, value: float, **labels: str) -> None:
        for index in range(SCRAPES):
            self.page.observe(START_S + index * EVERY_S, name, value, **labels)

    def step(self, name: str, before: float, after: float, **labels: str) -> None:
        """A gauge that changed once, a window before the last scrape."""
        for index in range(SCRAPES):
            value = after if index >= SCRAPES - 5 else before
            self.page.observe(START_S + index * EVERY_S, name, value, **labels)

    def brief(self, name: str, value: float, meanwhile: float, **labels: str) -> None:
        """A gauge that was something else for two scrapes, half a window before the last."""
        for index in range(SCRAPES):
            held = meanwhile if index in (SCRAPES - 5, SCRAPES - 4) else value
            self.page.observe(START_S + index * EVERY_S, name, held, **labels)

    def long_ago(self, name: str, value: float, **labels: str) -> None:
        """Half an hour before the last scrape."""
        self.page.observe(START_S + (SCRAPES - 1) * EVERY_S - 1810, name, value, **labels)

    def counter(self, name: str, per_s: float, **labels: str) -> None:
        for index in range(SCRAPES):
            self.page.observe(START_S + index * EVERY_S, name, 1000 + per_s * index * EVERY_S, **labels)


def servers(course: Course) -> None:
    for pod, (namespace, model, gpu) in PODS.items():
        place = {"namespace": namespace, "pod": pod, "instance": f"{pod}:8002", "model": model}
        for version in ("1", "2"):
            course.counter("nv_inference_request_success", 5, **place, version=version)
            course.counter("nv_inference_exec_count", 5, **place, version=version)
            course.long_ago("nv_inference_exec_count", 10, **place, version=version, gpu_uuid=gpu)
            course.counter("nv_inference_exec_count", 5, **place, version=version, gpu_uuid=gpu)


def accelerators(course: Course) -> None:
    for instance, gpus in EXPORTERS.items():
        for gpu in gpus:
            place = {"instance": instance, "UUID": gpu, "gpu": "0", "modelName": "NVIDIA H100"}
            course.gauge("DCGM_FI_PROF_GR_ENGINE_ACTIVE", BUSY[gpu], **place)
            course.gauge("DCGM_FI_DEV_FB_USED", 1024, **place)
            course.gauge("DCGM_FI_DEV_FB_FREE", 3072, **place)
            course.gauge("DCGM_FI_DEV_FB_RESERVED", 0, **place)
            course.gauge("DCGM_FI_DEV_SM_CLOCK", 990 if gpu == "GPU-2" else 1980, **place)
            course.gauge("DCGM_FI_DEV_MAX_SM_CLOCK", 1980, **place)
            # A quarter of the time GPU-2 is too hot, GPU-4 always.
            hot = {"GPU-2": 0.25, "GPU-4": 1.0}.get(gpu, 0.0)
            course.counter("DCGM_FI_DEV_THERMAL_VIOLATION", hot * 1e9, **place)
            course.counter("DCGM_FI_DEV_POWER_VIOLATION", 0.5e9, **place)
            course.gauge("DCGM_FI_DEV_POWER_USAGE", 350, **place)
            course.gauge("DCGM_FI_DEV_POWER_MGMT_LIMIT", 700, **place)
            before, now = {"GPU-2": (31, 48), "GPU-4": (79, 79)}.get(gpu, (0, 0))
            course.step("DCGM_FI_DEV_XID_ERRORS", before, now, **place)
            course.gauge("DCGM_FI_PROF_SM_ACTIVE", BLANK if gpu == "GPU-1" else 0.3, **place)
            course.step("DCGM_FI_DEV_ROW_REMAP_FAILURE", 0, 1 if gpu == "GPU-4" else 0, **place)
            course.step("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", 7, 9 if gpu == "GPU-2" else 7, **place)
            course.gauge("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", 1 if gpu == "GPU-1" else 0, **place)
            course.counter("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", 2 if gpu == "GPU-2" else 0, **place)
            course.long_ago("DCGM_FI_DEV_FB_USED", 1024, **place, job="gpus")
        course.gauge("up", 0 if instance == "n2:9400" else 1, instance=instance, job="gpus")
    course.gauge("up", 0, instance="elsewhere:9400", job="gpus")


def cluster(course: Course) -> None:
    everyone = {**PODS, "web": ("prod", "", "")}
    for copy in ("ksm-1:8080", "ksm-2:8080"):
        for pod, (namespace, _, _) in everyone.items():
            place = {"namespace": namespace, "pod": pod, "container": "main", "instance": copy}
            restarts = {"triton-a": 0.05, "web": 0.5}.get(pod, 0.0)
            course.counter("kube_pod_container_status_restarts_total", restarts, **place)
            if pod in ("triton-b", "web"):
                name = "kube_pod_container_status_last_terminated_reason"
                course.gauge(name, 1, **place, reason="OOMKilled")
            course.gauge("kube_pod_container_resource_limits", 4e9, **place, resource="memory", unit="byte")
            ready = {"namespace": namespace, "pod": pod, "instance": copy, "condition": "true"}
            course.brief(
                "kube_pod_status_ready", float(pod != "triton-b"), float(pod in ("triton-a", "triton-c")), **ready
            )
        # The server's own set waits for a node, another's and one of another namespace too.
        for namespace, pod in (("prod", "triton-d"), ("prod", "web-x"), ("elsewhere", "triton-e")):
            course.gauge("kube_pod_status_unschedulable", 1, namespace=namespace, pod=pod, instance=copy)
        for namespace in ("prod", "staging"):
            place = {"namespace": namespace, "horizontalpodautoscaler": "triton", "instance": copy}
            course.gauge("kube_horizontalpodautoscaler_status_desired_replicas", 4, **place)
            course.gauge("kube_horizontalpodautoscaler_spec_max_replicas", 4 if namespace == "prod" else 9, **place)
    for pod, (namespace, _, _) in everyone.items():
        place = {"namespace": namespace, "pod": pod, "container": "main", "instance": "kubelet:10250"}
        course.counter("container_cpu_cfs_periods_total", 10, **place)
        held_back = {"triton-a": 4.0, "web": 10.0, "triton-s": 9.0}.get(pod, 0.0)
        course.counter("container_cpu_cfs_throttled_periods_total", held_back, **place)
        course.gauge("container_memory_working_set_bytes", 4e9 if pod == "web" else 3e9, **place)
        # The pod's own series, without a container: not twice as much.
        course.gauge("container_memory_working_set_bytes", 8e9, **{**place, "container": ""})


def proxies(course: Course) -> None:
    for service, factor in (("answers", 1.0), ("shop", 50.0)):
        place = {"exported_namespace": "prod", "exported_service": service, "ingress": service, "instance": "in:10254"}
        for status, rate in (("200", 18.0), ("404", 1.0), ("503", 1.0)):
            course.counter("nginx_ingress_controller_requests", rate * factor, **place, status=status)
        for stage, each_s in (("request", 0.3), ("response", 0.2), ("connect", 0.001)):
            name = f"nginx_ingress_controller_{stage}_duration_seconds"
            course.counter(f"{name}_sum", 20 * factor * each_s, **place)
            course.counter(f"{name}_count", 20 * factor, **place)
            for bound, share in (("0.1", 0.0), ("0.5", 0.98), ("1", 1.0), ("+Inf", 1.0)):
                course.counter(f"{name}_bucket", 20 * factor * share, **place, le=bound)
    for name, factor in (("answers", 1.0), ("shop", 50.0)):
        behind = {"envoy_cluster_name": name, "instance": "envoy:9901", "app": name}
        course.counter("envoy_cluster_upstream_rq_total", 22 * factor, **behind)
        course.counter("envoy_cluster_upstream_rq_retry", 2 * factor, **behind)
        course.counter("envoy_cluster_upstream_rq_timeout", 1 * factor, **behind)
        course.counter("envoy_cluster_upstream_rq_pending_overflow", 0.5 * factor, **behind)
        course.gauge("envoy_cluster_upstream_rq_pending_active", 3 * factor, **behind)
        course.counter("envoy_cluster_upstream_rq_xx", 2.2 * factor, **behind, envoy_response_code_class="5")
        before = {"envoy_http_conn_manager_prefix": name, "instance": "envoy:9901", "app": name}
        course.counter("envoy_http_downstream_rq_xx", 2 * factor, **before, envoy_response_code_class="5")
        times = (
            ("envoy_cluster_upstream_rq_time", 22, 100, behind),
            ("envoy_http_downstream_rq_time", 20, 240, before),
            ("envoy_cluster_upstream_cx_connect_ms", 1, 2, behind),
        )
        for metric, rate, each_ms, place in times:
            course.counter(f"{metric}_sum", rate * factor * each_ms, **place)
            course.counter(f"{metric}_count", rate * factor, **place)
            for bound, share in (("250", 0.98), ("500", 1.0), ("+Inf", 1.0)):
                course.counter(f"{metric}_bucket", rate * factor * share, **place, le=bound)


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A company's Prometheus with all of it; its URL."""
    course = Course()
    for part in (servers, accelerators, cluster, proxies):
        part(course)
    with running_prometheus(tmp_path_factory.mktemp("around") / "it", course.page) as url:
        yield url


def asked(url: str, name: str, signal: str, selection: Selection) -> float | None:
    """What the dialect's first expression gives that gives something."""
    at_s = START_S + (SCRAPES - 1) * EVERY_S
    for item in expressions(name, signal):
        form = urllib.parse.urlencode({"query": render(item, selection, WINDOW_S, "model"), "time": at_s})
        with urllib.request.urlopen(f"{url}/api/v1/query", data=form.encode(), timeout=10) as answer:
            found = json.load(answer)["data"]["result"]
        assert len(found) < 2, item.expr
        if found:
            return float(found[0]["value"][1])
    return None


PROD = Selection("m1", 'namespace="prod"')
STAGING = Selection("m1", 'namespace="staging"')


@pytest.mark.parametrize(
    ("signal", "prod", "staging"),
    [
        ("accelerator_busy_ratio", 0.6, 0.9),
        ("accelerator_memory_used_bytes", 2 * 2**30, 2**30),
        ("accelerator_memory_total_bytes", 8 * 2**30, 4 * 2**30),
        ("accelerator_clock_ratio", 0.5, 1.0),
        ("accelerator_throttled_ratio", 0.25, 1.0),
        ("accelerator_power_capped_ratio", 0.5, 0.5),
        ("accelerator_power_ratio", 0.5, 0.5),
        ("accelerator_xid_code", 48, 79),
        # One came lately, the other stays from long ago.
        ("accelerator_new_xid", 48, 0),
        ("accelerator_ecc_errors", 2, 1),
        ("accelerator_idle_clock_ratio", 1, 0),
        ("accelerator_pcie_replay_eps", 2, 0),
        # One of the two exporters is gone; the third was never theirs.
        ("accelerator_exporter_up", 0, 0),
        # One of the two does not measure it: the blank is no value.
        ("sm_activity_ratio", 0.3, 0.3),
    ],
)
def test_the_gpus_are_those_the_model_runs_on_each_once(
    everything: str, signal: str, prod: float, staging: float
) -> None:
    assert asked(everything, "dcgm", signal, PROD) == pytest.approx(prod)
    assert asked(everything, "dcgm", signal, STAGING) == pytest.approx(staging)


def test_without_a_server_that_names_its_gpus_only_one_exporter_is_taken(everything: str) -> None:
    for item in {item.signal for item in dialect("dcgm").signals}:
        assert asked(everything, "dcgm", item, Selection("nobody")) is None, item
    chosen = Selection("nobody", 'instance="n2:9400"')
    assert asked(everything, "dcgm", "accelerator_busy_ratio", chosen) == pytest.approx(0.8)
    assert asked(everything, "dcgm", "accelerator_exporter_up", chosen) == 0
    assert asked(everything, "dcgm", "accelerator_exporter_up", Selection("nobody", 'instance="n1:9400"')) == 1


@pytest.mark.parametrize(
    ("signal", "prod", "staging"),
    [
        # Two windows of 40 s at 0.05 a second, told twice, and nothing of the restless `web`.
        ("container_restarts", 4.0, 0.0),
        ("container_oom_kills", 1.0, 0.0),
        ("container_memory_used_ratio", 0.75, 0.75),
        ("cpu_throttled_ratio", 0.4, 0.9),
        ("replica_count", 1.0, 1.0),
        # Away and back again, told twice.
        ("readiness_changes", 0.0, 2.0),
        ("pods_unschedulable", 1.0, 0.0),
        ("autoscaler_at_limit", 1.0, 0.0),
    ],
)
def test_kubernetes_tells_of_the_server_s_own_pods(everything: str, signal: str, prod: float, staging: float) -> None:
    assert asked(everything, "kubernetes", signal, PROD) == pytest.approx(prod)
    assert asked(everything, "kubernetes", signal, STAGING) == pytest.approx(staging)


def test_several_autoscalers_are_not_merged(everything: str) -> None:
    assert asked(everything, "kubernetes", "autoscaler_at_limit", Selection("m1")) is None
    needs = next(name.needs for name in SIGNALS if name.id == "autoscaler_at_limit")
    assert "selector" in needs


@pytest.mark.parametrize(
    ("signal", "expected"),
    [
        ("request_rate_rps", 20),
        ("error_ratio", 0.05),
        ("error_server_rps", 1),
        ("error_client_rps", 1),
        ("e2e_mean_ms", 300),
        ("e2e_p99_ms", 750),
        ("e2e_p50_ms", 100 + 400 * 0.5 / 0.98),
        ("upstream_time_ms", 200),
        ("upstream_time_p99_ms", 750),
        ("connect_time_ms", 1),
    ],
)
def test_an_ingress_is_read_for_one_service(everything: str, signal: str, expected: float) -> None:
    one = Selection("", 'exported_service="answers"')
    assert asked(everything, "nginx_ingress", signal, one) == pytest.approx(expected)
    assert asked(everything, "nginx_ingress", signal, Selection("")) is None


@pytest.mark.parametrize(
    ("signal", "label", "expected"),
    [
        ("request_rate_rps", "envoy_http_conn_manager_prefix", 20),
        ("request_rate_rps", "envoy_cluster_name", 22),
        ("error_ratio", "envoy_http_conn_manager_prefix", 0.1),
        ("error_ratio", "envoy_cluster_name", 0.1),
        ("e2e_mean_ms", "envoy_http_conn_manager_prefix", 240),
        ("e2e_p99_ms", "envoy_http_conn_manager_prefix", 375),
        ("e2e_p50_ms", "envoy_http_conn_manager_prefix", 250 * 0.5 / 0.98),
        ("upstream_time_ms", "envoy_cluster_name", 100),
        ("upstream_time_p99_ms", "envoy_cluster_name", 375),
        ("connect_time_ms", "envoy_cluster_name", 2),
        ("retry_ratio", "envoy_cluster_name", 2 / 22),
        ("error_timeout_rps", "envoy_cluster_name", 1),
        ("error_rejected_rps", "envoy_cluster_name", 0.5),
        ("upstream_overflow_eps", "envoy_cluster_name", 0.5),
        ("requests_waiting", "envoy_cluster_name", 3),
    ],
)
def test_envoy_is_read_for_one_cluster_or_listener(everything: str, signal: str, label: str, expected: float) -> None:
    assert asked(everything, "envoy", signal, Selection("", f'{label}="answers"')) == pytest.approx(expected)
    assert asked(everything, "envoy", signal, Selection("")) is None


def test_the_services_behind_a_proxy_are_no_candidates(everything: str) -> None:
    at_s = START_S + (SCRAPES - 1) * EVERY_S
    metrics = PrometheusMetrics(PrometheusSource(everything))
    found = metrics.discover([*DIALECTS], Selection(""), at_s).candidates
    assert [(item.model, item.selector) for item in found] == [
        ("m1", 'namespace="prod"'),
        ("m1", 'namespace="staging"'),
        ("m2", 'namespace="prod"'),
    ]
    # Where a proxy is all there is, they are.
    proxies = [item for item in DIALECTS if item.id == "envoy"]
    behind = metrics.discover(proxies, Selection(""), at_s).candidates
    assert [item.selector for item in behind] == ['app="answers"', 'app="shop"']


def gpus(name: str, *values: float) -> list[Scrape]:
    """Two scrapes of one exporter with a gauge of so many GPUs."""
    page: list[Sample] = [(name, {"UUID": f"GPU-{index}"}, value) for index, value in enumerate(values)]
    return [(START_S, "n1:9400", page_of(page)), (START_S + 30, "n1:9400", page_of(page))]


@pytest.mark.parametrize(
    ("metric", "values", "expected"),
    [
        ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", (0.25, 0.75), 0.5),
        ("DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", (0.25, 0.75), 0.5),
        ("DCGM_FI_DEV_GPU_UTIL", (25.0, 75.0), 0.5),
        # 4.6: the same per cent under the new name.
        ("DCGM_FI_DEV_GPU_UTIL_RATIO", (25.0, 75.0), 0.5),
        ("DCGM_FI_DEV_GPU_UTIL_RATIO", (25.0, 0.0), 0.125),
        # 4.7: a ratio.
        ("DCGM_FI_DEV_GPU_UTIL_RATIO", (0.25, 0.75), 0.5),
        ("DCGM_FI_DEV_GPU_UTIL_RATIO", (0.5, 1.0), 0.75),
        ("DCGM_FI_DEV_GPU_UTIL", (BLANK, 75.0), 0.75),
        ("DCGM_FI_DEV_GPU_UTIL", (BLANK, BLANK), None),
    ],
)
def test_utilisation_is_a_ratio_under_every_name(
    metric: str, values: tuple[float, ...], expected: float | None
) -> None:
    value = read(gpus(metric, *values), "dcgm", "accelerator_busy_ratio", Selection(""))
    assert value == (pytest.approx(expected) if expected is not None else None)


@pytest.mark.parametrize("metric", ["DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"])
@pytest.mark.parametrize(
    ("bits", "heat", "power", "board"),
    [
        (0x0, 0, 0, 0), (0x1, 0, 0, 0), (0x4, 0, 1, 0), (0x8, 0, 0, 1), (0x20, 1, 0, 0), (0x40, 1, 0, 0),
        (0x60, 1, 0, 0), (0x80, 0, 0, 1), (0x88, 0, 0, 1), (0x24, 1, 1, 0), (0x1FF, 1, 1, 1),
    ],
)  # fmt: skip
def test_clock_event_bits(metric: str, bits: int, heat: int, power: int, board: int) -> None:
    assert read(gpus(metric, float(bits)), "dcgm", "accelerator_idle_clock_ratio", Selection("")) == bits % 2
    scrapes = gpus(metric, float(bits))
    assert read(scrapes, "dcgm", "accelerator_throttled_ratio", Selection("")) == heat
    assert read(scrapes, "dcgm", "accelerator_power_capped_ratio", Selection("")) == power
    assert read(scrapes, "dcgm", "accelerator_hw_slowdown_ratio", Selection("")) == board


@pytest.mark.parametrize("name", ["DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_XID_ERROR"])
def test_an_xid_is_new_for_two_windows_though_its_code_is_a_label(name: str) -> None:
    def course(*codes: int) -> list[Scrape]:
        pages = [page_of([(name, {"UUID": "GPU-0", "err_code": str(code)}, float(code))]) for code in codes]
        return [(START_S + 10 * index, "n1:9400", page) for index, page in enumerate(pages)]

    def new(*codes: int) -> float | None:
        at_s = START_S + 10 * (len(codes) - 1)
        for item in expressions("dcgm", "accelerator_new_xid"):
            found = evaluate(course(*codes), render(item, Selection(""), 10.0, ""), at_s)
            if found:
                return found[0].value
        return None

    assert new(0, 0, 0, 0) == 0
    assert new(0, 0, 0, 79) == 79
    assert new(0, 0, 79, 79) == 79
    assert new(0, 79, 79, 79) == 0
    assert new(79, 79, 79, 31) == 31
    # What was before is not known.
    assert new(79, 79) is None


@pytest.mark.parametrize(
    ("signal", "old", "new"),
    [
        ("sm_activity_ratio", "DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_SM_UTIL_RATIO"),
        ("tensor_activity_ratio", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_PROF_TENSOR_UTIL_RATIO"),
        ("dram_activity_ratio", "DCGM_FI_PROF_DRAM_ACTIVE", "DCGM_FI_PROF_DRAM_UTIL_RATIO"),
        ("accelerator_xid_code", "DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_XID_ERROR"),
    ],
)
def test_old_and_new_names_say_the_same(signal: str, old: str, new: str) -> None:
    values = [read(gpus(name, 0.25), "dcgm", signal, Selection("")) for name in (old, new)]
    assert values == [0.25, 0.25]


@pytest.mark.parametrize("name", ["coredns", "dcgm", "envoy", "kubernetes", "nginx_ingress"])
def test_none_of_them_claims_to_be_verified(name: str) -> None:
    assert dialect(name).verified == ""


def resolvers(*clusters: str) -> list[Scrape]:
    """Two scrapes of two CoreDNS a cluster: of ten names, one takes a second and one fails; most do not exist."""
    found = []
    for time_s, grown in ((START_S, 1.0), (START_S + 30, 2.0)):
        for cluster in clusters:
            for copy in ("a", "b"):
                base = {"cluster": cluster, "namespace": "kube-system"}
                items: list[Sample] = [
                    ("coredns_dns_responses_total", {**base, "rcode": rcode, "plugin": "forward"}, each * grown)
                    for rcode, each in (("NOERROR", 300), ("NXDOMAIN", 600), ("SERVFAIL", 100))
                ]
                items += [
                    ("coredns_dns_request_duration_seconds_bucket", {**base, "le": bound}, each * grown)
                    for bound, each in (("0.001", 900), ("0.512", 900), ("1.024", 1000), ("+Inf", 1000))
                ]
                found.append((time_s, f"{cluster}-{copy}:9153", page_of(items)))
    return found


def test_a_cluster_s_resolver_is_read_and_never_merged_with_another_s() -> None:
    one, two = resolvers("eu"), resolvers("eu", "us")
    assert read(one, "coredns", "dns_failure_ratio", Selection("")) == pytest.approx(0.1)
    assert read(one, "coredns", "dns_time_p99_ms", Selection("")) == pytest.approx(512 + 512 * 0.9)
    # A selector that does not fit the resolver: the only one there is serves whom we ask about.
    assert read(one, "coredns", "dns_failure_ratio", Selection("", 'namespace="prod"')) == pytest.approx(0.1)
    assert read(two, "coredns", "dns_failure_ratio", Selection("", 'namespace="prod"')) is None
    assert read(two, "coredns", "dns_failure_ratio", Selection("", 'cluster="us"')) == pytest.approx(0.1)


def behind(front: list[Sample], server: list[Sample]) -> list[Scrape]:
    """Two scrapes of a front end and a server of one namespace, ten seconds in which all counters grow from nothing."""
    found = []
    for time_s, factor in ((START_S, 0.0), (START_S + 10, 1.0)):
        for instance, items in (("front:1", front), ("server:1", server)):
            page = [(name, {**labels, "namespace": "prod"}, value * factor) for name, labels, value in items]
            found.append((time_s, instance, page_of(page)))
    return found


FRONTS = {
    "nginx_ingress": [("nginx_ingress_controller_requests", {"status": status}, count)
                      for status, count in (("200", 90.0), ("503", 10.0))],
    "envoy": [("envoy_http_downstream_rq_time_count", {}, 100.0),
              ("envoy_http_downstream_rq_xx", {"envoy_response_code_class": "5"}, 10.0)],
    "gateway": [("gateway_requests_total", {"status": status}, count)
                for status, count in (("200", 90.0), ("503", 10.0))],
}  # fmt: skip
BEHIND = {
    "triton": [("nv_inference_request_success", {"model": "m"}, 146.0),
               ("nv_inference_request_failure", {"model": "m", "reason": "REJECTED"}, 4.0)],
    "vllm": [("vllm:request_success_total", {"model_name": "m"}, 150.0)],
    "torchserve": [("ts_inference_requests_total", {"model_name": "m"}, 150.0)],
}  # fmt: skip


@pytest.mark.parametrize(
    ("front", "server"),
    # The bundled gateway asks Triton alone.
    [("gateway", "triton"), *((front, server) for front in ("nginx_ingress", "envoy") for server in BEHIND)],
)
def test_a_server_that_sees_more_than_comes_to_the_front_end(front: str, server: str) -> None:
    scrapes = behind(FRONTS[front], BEHIND[server])
    assert read(scrapes, front, "server_seen_ratio", Selection("", 'namespace="prod"')) == pytest.approx(1.5)
    uncounted = read(scrapes, front, "uncounted_error_rps", Selection("", 'namespace="prod"'))
    assert uncounted == (pytest.approx(0.6, rel=0.01) if server == "triton" else None)


def test_nginx_on_its_real_page() -> None:
    nginx = recorded("nginx", "nginx_exporter-0.11.0-1+b4")
    scrapes = [nginx.scrape("load-1"), nginx.scrape("load-2")]
    found = {item.signal: read(scrapes, "nginx", item.signal, Selection("")) for item in dialect("nginx").signals}
    assert None not in found.values()
    # The exporter's own scrape of the last page is one more.
    asked_rps = (nginx.clients("load-2")["requests"] + 1) / seconds(scrapes)
    assert found["request_rate_rps"] == pytest.approx(asked_rps, rel=0.01)
    assert found["concurrency"] == 0.0
    other = [(time_s, "other:9113", text) for time_s, _, text in scrapes]
    assert read([*scrapes, *other], "nginx", "request_rate_rps", Selection("")) is None
