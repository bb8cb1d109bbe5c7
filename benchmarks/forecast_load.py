"""The load generator of the forecast benchmark: a process of its own that does nothing but send and take the time.

Reads one JSON object from stdin (the fields of `benchmarks.forecast_stack.Load`, and `address`), writes one to stdout.
Bytes go out as they are, so that a request costs the client next to nothing.
"""

from __future__ import annotations

import asyncio
import gc
import json
import random
import sys
from array import array
from collections.abc import Awaitable, Callable
from itertools import accumulate
from time import perf_counter
from typing import Any

import grpc
import uvloop
from tritonclient.grpc import service_pb2

METHOD = "/inference.GRPCInferenceService/ModelInfer"
MODEL = "faq-encoder"
QUESTION = "how do i cancel my order?"
HEAD_START_S = 0.2

Call = Callable[[bytes, float], Awaitable[bytes]]


def body(priority: int) -> bytes:
    """One question as Triton takes it; 0 names no priority."""
    from latencydoctor.stack.encoder.tokenize import MAX_TOKENS, TextTokenizer

    tokens = TextTokenizer()(QUESTION)
    request = service_pb2.ModelInferRequest(model_name=MODEL)
    for name, values in (("input_ids", tokens.ids), ("attention_mask", tokens.mask)):
        request.inputs.add(name=name, datatype="INT64", shape=(1, MAX_TOKENS))
        request.raw_input_contents.append(array("q", values).tobytes())
    if priority:
        request.parameters["priority"].uint64_param = priority
    return bytes(request.SerializeToString())


def intended(order: dict[str, Any], dice: random.Random) -> list[float]:
    """Seconds from the start at which requests are due."""
    group = float(order["group"])
    times: list[float] = []
    gaps = accumulate(dice.expovariate(order["rate_rps"] / group) for _ in range(order["requests"]))
    for at_s in gaps:
        # Geometric with this mean, at least one.
        size = 1
        while group > 1 and dice.random() > 1 / group:
            size += 1
        times += [at_s] * size
        if len(times) >= order["requests"]:
            break
    return times[: order["requests"]]


async def send(order: dict[str, Any]) -> dict[str, Any]:
    """Sends every request at its time and waits for all answers."""
    dice = random.Random(order["seed"])
    due_s = intended(order, dice)
    vip = [dice.random() < order["vip_ratio"] for _ in due_s]
    bodies = {True: body(1), False: body(2 if order["vip_ratio"] else 0)}
    took_ms: list[float | None] = [None] * len(due_s)
    late_ms: list[float] = []
    async with grpc.aio.insecure_channel(order["address"], options=(("grpc.enable_http_proxy", 0),)) as channel:
        infer = channel.unary_unary(METHOD)
        await asyncio.gather(*(infer(bodies[False], timeout=20) for _ in range(4)))
        begin_s = perf_counter() + HEAD_START_S

        async def one(number: int) -> None:
            try:
                await infer(bodies[vip[number]], timeout=order["timeout_s"])
            except grpc.aio.AioRpcError:
                return
            took_ms[number] = (perf_counter() - begin_s - due_s[number]) * 1000

        pending = set()
        for number, at_s in enumerate(due_s):
            left_s = at_s - (perf_counter() - begin_s)
            if left_s > 0:
                await asyncio.sleep(left_s)
            late_ms.append((perf_counter() - begin_s - at_s) * 1000)
            task = asyncio.create_task(one(number))
            pending.add(task)
            task.add_done_callback(pending.discard)
        while pending:
            await asyncio.wait(pending)
    late_ms.sort()
    return {
        "intended_ms": [at_s * 1000 for at_s in due_s],
        "took_ms": took_ms,
        "vip": vip,
        "late_p99_ms": late_ms[int(len(late_ms) * 0.99)],
    }


if __name__ == "__main__":
    gc.disable()
    uvloop.install()
    json.dump(asyncio.run(send(json.load(sys.stdin))), sys.stdout)
