"""A log of many programs at once, of any size and with any share of lines that a rule knows. Seeded."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

Make = Callable[[random.Random], str]
_POOL = 20_000
_BATCH = 20_000


def _clock(r: random.Random) -> str:
    return f"07:{r.randrange(60):02}:{r.randrange(60):02}"


def _triton(r: random.Random) -> str:
    return (
        f"I1130 {_clock(r)}.{r.randrange(10**6):06} 1 infer_handler.cc:{r.randrange(999)}] New request handler for "
        f"ModelInferHandler, step {r.randrange(9)}, id req-{r.getrandbits(32):08x} begun, {r.randrange(64)} in flight"
    )


def _vllm(r: random.Random) -> str:
    return (
        f"INFO 11-30 {_clock(r)} [loggers.py:123] Engine 000: Avg prompt throughput: {r.randrange(9999)}.3 tokens/s, "
        f"Avg generation throughput: {r.randrange(10, 999)}.1 tokens/s, Running: {r.randrange(1, 64)} reqs, Waiting: 0 "
        f"reqs, GPU KV cache usage: {r.randrange(80)}.4%, Prefix cache hit rate: 31.2%"
    )


def _uvicorn(r: random.Random) -> str:
    client = f"10.0.{r.randrange(255)}.{r.randrange(255)}:{r.randrange(65535)}"
    return f'INFO:     {client} - "POST /v1/completions HTTP/1.1" 200 OK'


def _torchserve(r: random.Random) -> str:
    return (
        f"2026-11-30T{_clock(r)},{r.randrange(999):03} [INFO ] W-9000-resnet_1.0-stdout MODEL_LOG - handled in "
        f"{r.randrange(99)} ms, a batch of {r.randrange(1, 9)}"
    )


def _docker_sglang(r: random.Random) -> str:
    return (
        f'{{"log":"[2026-11-30 {_clock(r)} TP0] Decode batch. #running-req: {r.randrange(64)}, #token: '
        f"{r.randrange(99999)}, token usage: 0.{r.randrange(10, 80)}, gen throughput (token/s): "
        f'{r.randrange(99, 999)}.2, #queue-req: 0\\n","stream":"stdout","time":"2026-11-30T{_clock(r)}.123456789Z"}}'
    )


def _cri_nginx(r: random.Random) -> str:
    return (
        f"2026-11-30T{_clock(r)}.123456789Z stdout F 10.1.{r.randrange(255)}.7 - - [30/Nov/2026:{_clock(r)} +0000] "
        f'"POST /v2/models/m/infer HTTP/1.1" 200 {r.randrange(9999)} "-" "python" {r.randrange(9999)} 0.0'
        f"{r.randrange(10, 99)} [default-triton] [] 10.2.0.9:8000 {r.randrange(9999)} 0.01 200 {r.getrandbits(64):016x}"
    )


def _gateway(r: random.Random) -> str:
    return (
        f'{{"time": "2026-11-30T{_clock(r)}.123Z", "level": "info", "logger": "access", "message": "served", '
        f'"ms": {r.randrange(300)}, "tokens": {r.randrange(999)}, "request_id": "{r.getrandbits(64):016x}"}}'
    )


def _vllm_warning(r: random.Random) -> str:
    return (
        f"WARNING 11-30 {_clock(r)} [config.py:{r.randrange(999)}] Default sampling parameters have been overridden by "
        f"the model's own; {r.randrange(9)} of them differ, see the documentation of generation_config"
    )


BENIGN: tuple[Make, ...] = (
    *(_triton, _vllm, _uvicorn, _torchserve),
    *(_docker_sglang, _cri_nginx, _gateway, _vllm_warning),
)


def _oom(r: random.Random) -> str:
    return (
        f"ERROR 11-30 {_clock(r)} [core.py:{r.randrange(999)}] torch.OutOfMemoryError: CUDA out of memory. Tried to "
        f"allocate {r.randrange(2, 9)}.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which {r.randrange(999)}.00 "
        "MiB is free."
    )


def _reject(r: random.Random) -> str:
    return f"E1130 {_clock(r)}.{r.randrange(10**6):06} 1 dynamic_batch.cc:{r.randrange(999)}] Request timeout expired"


def _timed_out(r: random.Random) -> str:
    return (
        f"2026-11-30T{_clock(r)}.123456789Z stderr F 2026/11/30 {_clock(r)} [error] 7#7: *{r.randrange(9999)} upstream "
        "timed out (110: Connection timed out) while reading response header from upstream, client: 10.1.0.7, "
        'server: _, request: "POST /v2/models/m/infer HTTP/1.1", upstream: "http://10.2.0.9:8000/v2", host: "g"'
    )


MATCHING: tuple[Make, ...] = (_oom, _reject, _timed_out)


def write(path: Path, size_bytes: int, share: float, seed: int = 7) -> None:
    """A file of that size of which every 1/`share`th line is one that a rule knows."""
    r = random.Random(seed)
    benign = [r.choice(BENIGN)(r) for _ in range(_POOL)]
    matching = [r.choice(MATCHING)(r) for _ in range(_POOL // 10)]
    with path.open("w", encoding="utf-8") as file:
        written = 0
        while written < size_bytes:
            lines = r.choices(benign, k=_BATCH)
            for place in r.sample(range(_BATCH), round(_BATCH * share)):
                lines[place] = r.choice(matching)
            text = "\n".join(lines) + "\n"
            file.write(text[: size_bytes - written])
            written += len(text)
