"""One line of every format that the reference names, with what it says; and every wrapper as a function around a line.

Times are all the same moment, 2026-11-30 07:20:26 UTC, with as many digits as the format has.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

REFERENCE_S = 1_796_100_000.0
SECOND_S = 1_796_023_226.0
"""2026-11-30T07:20:26Z."""
MILLI_S = SECOND_S + 0.123
MICRO_S = SECOND_S + 0.123456
WRAPPED_S = SECOND_S + 0.25


class Example(NamedTuple):
    """A line and its reading; `fields` names the further attributes that count."""

    line: str
    program: str
    time_s: float | None
    level: str
    text: str
    further: Mapping[str, object] = MappingProxyType({})


_ACCESS = '10.0.0.1:40592 - "POST /v1/completions HTTP/1.1" 503 Service Unavailable'
_ALERT = {
    "receiver": "hook",
    "status": "firing",
    "alerts": [
        {
            "status": "resolved",
            "labels": {"alertname": "Old", "severity": "critical"},
            "annotations": {},
            "startsAt": "2026-11-30T07:00:00Z",
            "endsAt": "2026-11-30T07:10:00Z",
        },
        {
            "status": "firing",
            "labels": {"alertname": "HighLatency", "severity": "warning"},
            "annotations": {"summary": "p99 above 2 s"},
            "startsAt": "2026-11-30T07:20:26.123Z",
            "endsAt": "0001-01-01T00:00:00Z",
        },
    ],
    "groupLabels": {},
    "commonLabels": {},
    "externalURL": "http://x",
    "version": "4",
    "groupKey": "{}",
}

EXAMPLES: dict[str, Example] = {
    "triton": Example(
        "E1130 07:20:26.123456 41 model_lifecycle.cc:654] failed to load 'm' version 1: Internal: boom",
        "triton",
        MICRO_S,
        "ERROR",
        "failed to load 'm' version 1: Internal: boom",
        {"file_line": "model_lifecycle.cc:654"},
    ),
    "triton verbose": Example("I1130 07:20:26.123456 41 a.cc:1] x", "triton", MICRO_S, "INFO", "x"),
    "triton warning": Example("W1130 07:20:26.123456 41 a.cc:1] x", "triton", MICRO_S, "WARNING", "x"),
    "triton escaped": Example(
        'E1130 07:20:26.123456 41 a.cc:1] "say \\"no\\"\\nand\\tmore"',
        "triton",
        MICRO_S,
        "ERROR",
        'say "no"\nand\tmore',
    ),
    "triton iso": Example(
        '2026-11-30T07:20:26Z E 41 a_b.cc:12] "quoted"',
        "triton",
        SECOND_S,
        "ERROR",
        "quoted",
        {"file_line": "a_b.cc:12"},
    ),
    "klog": Example("E1130 07:20:26.123456       1 main.go:12] boom", "kubernetes", MICRO_S, "ERROR", "boom"),
    "onnxruntime": Example(
        "2026-11-30 07:20:26.123456789 [E:onnxruntime:, sequential_executor.cc:494 ExecuteKernel] Non-zero status",
        "onnxruntime",
        SECOND_S + 0.123456789,
        "ERROR",
        "Non-zero status",
        {"file_line": "sequential_executor.cc:494"},
    ),
    "onnxruntime verbose": Example(
        "2026-11-30 07:20:26.123456789 [V:onnxruntime:log, a.cc:1 f] x",
        "onnxruntime",
        SECOND_S + 0.123456789,
        "DEBUG",
        "x",
    ),
    "tensorflow": Example(
        "2026-11-30 07:20:26.123456: F tensorflow/core/x.cc:12] boom",
        "tensorflow",
        MICRO_S,
        "CRITICAL",
        "boom",
        {"file_line": "tensorflow/core/x.cc:12"},
    ),
    "tensorrt": Example(
        "[11/30/2026-07:20:26] [TRT] [E] 1: [defaultAllocator.cpp::allocate::20] Error Code 1: Cuda Runtime (oom)",
        "tensorrt",
        SECOND_S,
        "ERROR",
        "Error Code 1: Cuda Runtime (oom)",
        {"file_line": "defaultAllocator.cpp:20"},
    ),
    "tensorrt swapped": Example("[11/30/2026-07:20:26] [W] [TRT] x", "tensorrt", SECOND_S, "WARNING", "x"),
    "tensorrt without time": Example("[TRT] [F] x", "tensorrt", None, "CRITICAL", "x"),
    "tensorrt python": Example("[TensorRT] ERROR: x", "tensorrt", None, "ERROR", "x"),
    "tensorrt body": Example(
        "2: [a.cpp::f::127] Error Code 2: OutOfMemory (x)", "tensorrt", None, "ERROR", "Error Code 2: OutOfMemory (x)"
    ),
    "trt-llm": Example("[TensorRT-LLM][WARNING] x", "tensorrt_llm", None, "WARNING", "x"),
    "torchserve": Example(
        "2026-11-30T07:20:26,123 [ERROR] W-9000-m_1.0 org.pytorch.serve.wlm.WorkerThread - Backend worker died",
        "torchserve",
        MILLI_S,
        "ERROR",
        "Backend worker died",
        {"process": "W-9000-m_1.0"},
    ),
    "torchserve log4j 1": Example(
        "2026-11-30 07:20:26,123 [WARN ] epollEventLoopGroup-3-1 org.pytorch.serve.X - x",
        "torchserve",
        MILLI_S,
        "WARNING",
        "x",
    ),
    "torchserve relayed error": Example(
        "2026-11-30T07:20:26,123 [INFO ] W-9000-m_1.0-stdout MODEL_LOG - ValueError: boom",
        "torchserve",
        MILLI_S,
        "ERROR",
        "ValueError: boom",
        {"continued": True, "process": "W-9000-m_1.0"},
    ),
    "torchserve relayed chatter": Example(
        "2026-11-30T07:20:26,123 [WARN ] W-9000-m_1.0-stderr MODEL_LOG - 10 of 20 done",
        "torchserve",
        MILLI_S,
        "",
        "10 of 20 done",
    ),
    "torchserve relayed level": Example(
        "2026-11-30T07:20:26,123 [WARN ] W-9000-m_1.0-stderr MODEL_LOG - INFO:root:fine",
        "torchserve",
        MILLI_S,
        "INFO",
        "fine",
    ),
    "torchserve access": Example(
        "2026-11-30T07:20:26,123 [INFO ] W-9000-m_1.0 ACCESS_LOG - "
        '/10.0.0.1:4 "POST /predictions/m HTTP/1.1" 507 10025',
        "torchserve",
        MILLI_S,
        "INFO",
        '/10.0.0.1:4 "POST /predictions/m HTTP/1.1" 507 10025',
        {"status": 507, "fields": (("request_ms", 10025.0),)},
    ),
    "torchserve access file": Example(
        '2026-11-30 07:20:26,123 - /10.0.0.1:4 "gRPC /x HTTP/2.0" 503 12',
        "torchserve",
        MILLI_S,
        "INFO",
        '/10.0.0.1:4 "gRPC /x HTTP/2.0" 503 12',
        {"status": 503, "fields": (("request_ms", 12.0),)},
    ),
    "torchserve metric": Example(
        "2026-11-30T07:20:26,123 [INFO ] W-9000-m_1.0 TS_METRICS - QueueTime.Milliseconds:600.5|#Level:Host|"
        "#hostname:h,requestID:a,b,timestamp:1796023226",
        "torchserve",
        MILLI_S,
        "INFO",
        "QueueTime.Milliseconds:600.5|#Level:Host|#hostname:h,requestID:a,b,timestamp:1796023226",
        {"fields": (("queue_ms", 600.5),)},
    ),
    "torchserve metric file": Example(
        "2026-11-30 07:20:26,123 - Requests5XX.Count:0|#Level:Host|#hostname:h,timestamp:1796023026",
        "torchserve",
        MILLI_S,
        "INFO",
        "Requests5XX.Count:0|#Level:Host|#hostname:h,timestamp:1796023026",
        {"fields": (("Requests5XX", 0.0),)},
    ),
    "torchserve job": Example(
        "2026-11-30T07:20:26,123 [INFO ] W-9000-m_1.0 org.x.Job - Waiting time ns: 600000000, Backend time ns: 5000000",
        "torchserve",
        MILLI_S,
        "INFO",
        "Waiting time ns: 600000000, Backend time ns: 5000000",
        {"fields": (("backend_ms", 5.0), ("queue_ms", 600.0))},
    ),
    "vllm": Example(
        "ERROR 11-30 07:20:26 [v1/engine/core.py:712] EngineCore failed to start.",
        "vllm",
        SECOND_S,
        "ERROR",
        "EngineCore failed to start.",
        {"file_line": "v1/engine/core.py:712"},
    ),
    "vllm old": Example(
        "CRITICAL 11-30 07:20:26 launcher.py:99] x", "vllm", SECOND_S, "CRITICAL", "x", {"file_line": "launcher.py:99"}
    ),
    "vllm process": Example(
        "(Worker_TP3 pid=9) WARNING 11-30 07:20:26 [a.py:1] x",
        "vllm",
        SECOND_S,
        "WARNING",
        "x",
        {"process": "Worker_TP3 pid=9", "rank": "3"},
    ),
    "vllm stage": Example("[Stage-0] INFO 11-30 07:20:26 [a.py:1] x", "vllm", SECOND_S, "INFO", "x", {"rank": "0"}),
    "sglang": Example("[2026-11-30 07:20:26] boom", "sglang", SECOND_S, "", "boom"),
    "sglang ranks": Example("[2026-11-30 07:20:26 DP4 TP5] boom", "sglang", SECOND_S, "", "boom", {"rank": "4.5"}),
    "sglang access": Example(
        f"[2026-11-30 07:20:26] INFO:     {_ACCESS}", "sglang", SECOND_S, "INFO", _ACCESS, {"status": 503}
    ),
    "tgi launcher": Example(
        "2026-11-30T07:20:26.123456Z ERROR shard-manager: text_generation_launcher: Shard failed rank=0",
        "tgi",
        MICRO_S,
        "ERROR",
        "Shard failed rank=0",
    ),
    "tgi router": Example(
        "2026-11-30T07:20:26.123456Z  WARN text_generation_router::server: router/src/server.rs:293: x",
        "tgi",
        MICRO_S,
        "WARNING",
        "x",
        {"file_line": "router/src/server.rs:293"},
    ),
    "tgi request": Example(
        "2026-11-30T07:20:26.123456Z  INFO generate{parameters=GenerateParameters { best_of: None } "
        'total_time="1.2s" validation_time="100µs" queue_time="600ms" inference_time="500ns"}: '
        "text_generation_router::server: router/src/server.rs:293: Success",
        "tgi",
        MICRO_S,
        "INFO",
        'Success total_time="1.2s" validation_time="100µs" queue_time="600ms" inference_time="500ns"',
        {"fields": (("inference_ms", 0.0005), ("queue_ms", 600.0), ("total_ms", 1200.0), ("validation_ms", 0.1))},
    ),
    "tgi json launcher": Example(
        '{"timestamp":"2026-11-30T07:20:26.123456Z","level":"ERROR","fields":{"message":"Shard failed","rank":0},'
        '"target":"text_generation_launcher"}',
        "tgi",
        MICRO_S,
        "ERROR",
        "Shard failed",
        {"structured": True},
    ),
    "tgi json router": Example(
        '{"timestamp":"2026-11-30T07:20:26.123456Z","level":"INFO","message":"Success","target":'
        '"text_generation_router::server","filename":"router/src/server.rs","line_number":293,'
        '"span":{"queue_time":"600ms","name":"generate"}}',
        "tgi",
        MICRO_S,
        "INFO",
        'Success queue_time="600ms"',
        {"fields": (("line_number", 293.0), ("queue_ms", 600.0)), "file_line": "router/src/server.rs:293"},
    ),
    "ray serve": Example(
        "ERROR 2026-11-30 07:20:26,123 app_Model r1 0f-aa -- CALL /x 500 12.3ms",
        "ray",
        MILLI_S,
        "ERROR",
        "CALL /x 500 12.3ms",
        {"status": 500, "fields": (("request_ms", 12.3),), "process": "app_Model r1"},
    ),
    "ray serve 2023": Example(
        "INFO 2026-11-30 07:20:26,123 controller 98 deployment_state.py:1308 - Deploying",
        "ray",
        MILLI_S,
        "INFO",
        "Deploying",
        {"file_line": "deployment_state.py:1308"},
    ),
    "ray serve json": Example(
        '{"levelname":"ERROR","asctime":"2026-11-30 07:20:26,123","deployment":"d","replica":"r","message":"boom",'
        '"exc_text":"Traceback\\nValueError: x"}',
        "ray",
        MILLI_S,
        "ERROR",
        "boom\nTraceback\nValueError: x",
        {"process": "d r"},
    ),
    "ray python": Example(
        "2026-11-30 07:20:26,123\tWARNING worker.py:1724 -- x",
        "ray",
        MILLI_S,
        "WARNING",
        "x",
        {"file_line": "worker.py:1724"},
    ),
    "ray core": Example(
        "[2026-11-30 07:20:26,123 C 100 200] (raylet) node_manager.cc:12: x",
        "ray",
        MILLI_S,
        "CRITICAL",
        "x",
        {"file_line": "node_manager.cc:12", "process": "raylet"},
    ),
    "uvicorn": Example(f"INFO:     {_ACCESS}", "uvicorn", None, "INFO", _ACCESS, {"status": 503}),
    "uvicorn error": Example(
        "ERROR:    Exception in ASGI application", "uvicorn", None, "ERROR", "Exception in ASGI application"
    ),
    "kserve": Example(
        "2026-11-30 07:20:26.123 41 kserve ERROR [predict():12] boom",
        "kserve",
        MILLI_S,
        "ERROR",
        "boom",
        {"file_line": "predict():12"},
    ),
    "kserve timing": Example(
        "2026-11-30 07:20:26.123 kserve.trace predict: 0.5 , ['http_status:500', 'http_method:POST', 'time:wall']",
        "kserve",
        MILLI_S,
        "",
        "kserve.trace predict: 0.5 , ['http_status:500', 'http_method:POST', 'time:wall']",
        {"status": 500, "fields": (("request_ms", 500.0),)},
    ),
    "gunicorn": Example(
        "[2026-11-30 08:20:26 +0100] [41] [CRITICAL] WORKER TIMEOUT (pid:44)",
        "gunicorn",
        SECOND_S,
        "CRITICAL",
        "WORKER TIMEOUT (pid:44)",
    ),
    "knative": Example(
        '{"severity":"ERROR","timestamp":"2026-11-30T07:20:26.123Z","logger":"activator","caller":"a.go:1",'
        '"message":"error proxying","error":"context deadline exceeded"}',
        "knative",
        MILLI_S,
        "ERROR",
        "error proxying: context deadline exceeded",
        {"file_line": "a.go:1"},
    ),
    "knative old": Example(
        '{"level":"error","ts":"2026-11-30T07:20:26.123Z","logger":"q","caller":"a.go:1","msg":"boom","error":null}',
        "knative",
        MILLI_S,
        "ERROR",
        "boom",
    ),
    "nginx error": Example(
        '2026/11/30 07:20:26 [crit] 29#29: *1 upstream timed out, client: 10.0.0.1, request: "POST / HTTP/1.1"',
        "nginx",
        SECOND_S,
        "CRITICAL",
        'upstream timed out, client: 10.0.0.1, request: "POST / HTTP/1.1"',
    ),
    "nginx ingress": Example(
        '10.0.0.1 - - [30/Nov/2026:08:20:26 +0100] "POST /v2 HTTP/1.1" 504 167 "-" "ua" 812 60.001 [ns-svc-80] [] '
        "10.1.2.3:8000, 10.1.2.4:8000 0, 5 30.000, 30.000 504, 504 abc",
        "nginx",
        SECOND_S,
        "",
        '"POST /v2 HTTP/1.1" 504 167 "-" "ua" 812 60.001 [ns-svc-80] [] '
        "10.1.2.3:8000, 10.1.2.4:8000 0, 5 30.000, 30.000 504, 504 abc",
        {"status": 504, "fields": (("request_ms", 60001.0), ("upstream_ms", 60000.0))},
    ),
    "envoy": Example(
        '[2026-11-30T07:20:26.123Z] "POST /v2 HTTP/1.1" 504 UT upstream_response_timeout - "-" 100 24 60001 - "-"',
        "envoy",
        MILLI_S,
        "",
        '"POST /v2 HTTP/1.1" 504 UT upstream_response_timeout - "-" 100 24 60001 - "-"',
        {"status": 504, "fields": (("request_ms", 60001.0),)},
    ),
    "envoy short": Example(
        "503 UF,URX upstream_reset_before_response_started{remote_connection_failure}",
        "envoy",
        None,
        "",
        "503 UF,URX upstream_reset_before_response_started{remote_connection_failure}",
        {"status": 503},
    ),
    "go": Example("2026/11/30 07:20:26 http: proxy error: x", "", SECOND_S, "", "http: proxy error: x"),
    "go with micros": Example("2026/11/30 07:20:26.123456 ERROR boom", "", MICRO_S, "ERROR", "boom"),
    "redis": Example("41:M 30 Nov 2026 07:20:26.123 # x", "redis", MILLI_S, "WARNING", "x"),
    "redis without year": Example("41:S 30 Nov 07:20:26.123 - x", "redis", MILLI_S, "DEBUG", "x"),
    "redis 2": Example("[41] 30 Nov 07:20:26 * x", "redis", SECOND_S, "INFO", "x"),
    "valkey logfmt": Example(
        'pid=1 role=master timestamp="2026-11-30T07:20:26.123Z" level=warning message="x"',
        "redis",
        MILLI_S,
        "WARNING",
        "x",
    ),
    "dmesg": Example(
        "[12345.678901] NVRM: Xid (PCI:0000:3b:00): 79, x", "kernel", None, "", "NVRM: Xid (PCI:0000:3b:00): 79, x"
    ),
    "dmesg -T": Example(
        "[Mon Nov 30 07:20:26 2026] Out of memory: Killed process 1 (x)",
        "kernel",
        SECOND_S,
        "",
        "Out of memory: Killed process 1 (x)",
    ),
    "systemd": Example(
        "triton.service: Failed with result 'oom-kill'.",
        "systemd",
        None,
        "",
        "triton.service: Failed with result 'oom-kill'.",
    ),
    "c10d": Example(
        "[rank3]:[E1130 07:20:26.123456789 ProcessGroupNCCL.cpp:607] [PG 0 Rank 3] boom",
        "pytorch",
        SECOND_S + 0.123456789,
        "ERROR",
        "[PG 0 Rank 3] boom",
        {"rank": "3", "file_line": "ProcessGroupNCCL.cpp:607"},
    ),
    "c10d old": Example(
        "[E ProcessGroupNCCL.cpp:475] [Rank 3] boom", "pytorch", None, "ERROR", "[Rank 3] boom", {"rank": "3"}
    ),
    "nccl": Example("h:12:34 [0] NCCL WARN boom", "nccl", None, "WARNING", "NCCL WARN boom", {"rank": "h:12:0"}),
    "alertmanager webhook": Example(
        json.dumps(_ALERT), "alertmanager", MILLI_S, "WARNING", "HighLatency: p99 above 2 s", {"structured": True}
    ),
    "prometheus": Example(
        'time=2026-11-30T07:20:26.123Z level=ERROR source=main.go:1 msg="say \\"no\\"" err="bad"',
        "prometheus",
        MILLI_S,
        "ERROR",
        'say "no": bad',
        {"file_line": "main.go:1"},
    ),
    "stack": Example(
        '{"time":"2026-11-30T07:20:26.123Z","level":"WARN","event":"e","message":"m","count":3,"on":true,"error":null}',
        "stack",
        MILLI_S,
        "WARNING",
        "m",
        {"event": "e", "count": 3, "fields": (("count", 3.0),)},
    ),
    "python": Example("2026-11-30 07:20:26,123 - my.module - ERROR - boom", "", MILLI_S, "ERROR", "boom"),
    "python basic": Example("ERROR:my.module:boom", "", None, "ERROR", "boom"),
    "stamped": Example("2026-11-30 07:20:26,123 ERROR boom", "", MILLI_S, "ERROR", "boom"),
    "headless": Example("it went wrong", "", None, "", "it went wrong", {"continued": True}),
    "frame": Example('  File "a.py", line 3, in f', "", None, "", '  File "a.py", line 3, in f', {"continued": True}),
    "traceback": Example(
        "Traceback (most recent call last):",
        "",
        None,
        "ERROR",
        "Traceback (most recent call last):",
        {"continued": True},
    ),
    "exception": Example(
        "torch.cuda.OutOfMemoryError: CUDA", "", None, "ERROR", "torch.cuda.OutOfMemoryError: CUDA", {"continued": True}
    ),
}
"""By name; every format of the reference, and lines without any."""


def _docker(line: str) -> str:
    return json.dumps({"log": line + "\n", "stream": "stderr", "time": "2026-11-30T07:20:26.250000001Z"})


def _journal(line: str, message: object) -> str:
    return json.dumps(
        {
            "__REALTIME_TIMESTAMP": "1796023226250000",
            "_TRANSPORT": "stdout",
            "PRIORITY": "6",
            "_SYSTEMD_UNIT": "serve.service",
            "MESSAGE": message,
        }
    )


WRAPPERS: dict[str, Callable[[str], str]] = {
    "docker": _docker,
    "cri": lambda line: f"2026-11-30T07:20:26.250000001Z stderr F {line}",
    "cri without flag": lambda line: f"2026-11-30T08:20:26.250000001+01:00 stdout {line}",
    "kubectl timestamps": lambda line: f"2026-11-30T07:20:26.250000001Z {line}",
    "cloud": lambda line: f"INFO 2026-11-30T07:20:26.250000001Z [resource.labels.containerName: c] {line}",
    "cloudwatch": lambda line: "  | 2026-11-30T09:20:26.250+02:00 | " + line.replace("|", "\\|"),
    "journal json": lambda line: _journal(line, line),
    "journal bytes": lambda line: _journal(line, list(line.encode())),
    "rfc 5424": lambda line: f"<14>1 2026-11-30T07:20:26.250Z host serve 41 - - {line}",
    "kubectl prefix": lambda line: f"[pod/p-1/c] 2026-11-30T07:20:26.250000001Z {line}",
    "kubectl in compose in journal": lambda line: _journal(
        line, f"kubectl-1  | [pod/p-1/c] 2026-11-30T07:20:26.250000001Z {line}"
    ),
    "six deep": lambda line: (
        "> " + _docker(_docker(f"a-1 | [pod/p-1/c] 2026-11-30T07:20:26.250000001Z (Worker pid=3) {line}"))
    ),
    "html": lambda line: html.escape(_docker(line)),
}
"""Wrappers with a time, which is WRAPPED_S."""

UNTIMED: dict[str, Callable[[str], str]] = {
    "compose": lambda line: f"serve-1      | {line}",
    "prefix": lambda line: f"[pod/p-1/c] {line}",
    "stern": lambda line: f"serve-7d9c5b6f48-x2x4z server {line}",
    "ray": lambda line: f"(Actor pid=12, ip=10.0.0.3) {line}",
    "coloured": lambda line: f"\x1b[36m(Actor pid=12)\x1b[0m \x1b[31m{line}\x1b[0m",
    "printed colours": lambda line: f"^[[36m(Actor pid=12)^[[0m {line}",
    "quoted": lambda line: f"> {line}",
    "carriage return": lambda line: f"{line}\r",
}
"""Wrappers without a time."""
