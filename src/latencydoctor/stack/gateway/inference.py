"""Calls Triton over gRPC for one question, and says in the gateway's words what went wrong when it does.

Uses Triton's protobuf service directly: the request is two buffers of bytes, and the client library's conversion
through numpy costs 40 to 100 us more a call, about a tenth of what the gateway adds to a request.
"""

from __future__ import annotations

import math
import re
import struct
from array import array
from dataclasses import dataclass
from typing import Protocol

import grpc
from tritonclient.grpc import service_pb2, service_pb2_grpc

from latencydoctor.errors import LatencyDoctorError
from latencydoctor.stack import reconnect
from latencydoctor.stack.encoder.tokenize import MAX_TOKENS, Tokens

_QUEUE_TIMEOUT = re.compile(r"request timeout expired", re.IGNORECASE)
_QUEUE_FULL = re.compile(r"exceeds maximum queue size", re.IGNORECASE)
_BATCH_LIMIT = re.compile(r"batch-size must be <= (\d+)")
_NOT_LOADED = re.compile(r"is not (?:ready|found)|unknown model|is not loaded|has no available versions", re.IGNORECASE)
_OUT_OF_MEMORY = re.compile(r"out of memory|\boom\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the model says of one question: the place of the best answer and its score (cosine, -1..1).

    `version` is the version that answered, "" where the server does not tell.
    """

    answer_index: int
    score: float
    version: str = ""


class InferenceError(LatencyDoctorError):
    """Triton gave no answer. `event` is the log event that names the reason, `status` the HTTP status it deserves."""

    def __init__(self, event: str, status: int, message: str, *, limit: int = 0) -> None:
        super().__init__(message, hint="See triton.log in the stack's logs.")
        self.event = event
        self.status = status
        self.limit = limit


class TurnedAway(InferenceError):
    """There is more to do than can be done, and this was not begun; `reason` is one of `SHED_REASONS`."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__("request_shed", 503, message)
        self.reason = reason


def failure_of(code: grpc.StatusCode, detail: str) -> InferenceError:
    """The failure behind a gRPC status; Triton says most of it in the text."""
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return InferenceError("inference_timeout", 504, "the deadline passed in Triton")
    if _QUEUE_TIMEOUT.search(detail):
        return TurnedAway("queue_timeout", detail)
    if _QUEUE_FULL.search(detail):
        return TurnedAway("queue_full", detail)
    if _OUT_OF_MEMORY.search(detail):
        return InferenceError("gpu_oom", 503, detail)
    batch = _BATCH_LIMIT.search(detail)
    if batch:
        return InferenceError("batch_size_mismatch", 500, detail, limit=int(batch[1]))
    if _NOT_LOADED.search(detail):
        return InferenceError("model_load_error", 503, detail)
    if code is grpc.StatusCode.UNAVAILABLE:
        return InferenceError("inference_unavailable", 503, detail)
    return InferenceError("inference_failed", 500, detail)


class Model(Protocol):
    """What answers a question that is not in the cache."""

    async def infer(self, tokens: Tokens, *, version: str, priority: int, timeout_s: float) -> Outcome:
        """The best answer; InferenceError when there is none."""
        ...


async def infer_or_default(model: Model, tokens: Tokens, version: str, priority: int, timeout_s: float) -> Outcome:
    """Asks a version; while that is not loaded yet, or no more, whichever the server has. The outcome names it."""
    try:
        return await model.infer(tokens, version=version, priority=priority, timeout_s=timeout_s)
    except InferenceError as error:
        if not version or error.event != "model_load_error":
            raise
        return await model.infer(tokens, version="", priority=priority, timeout_s=timeout_s)


class TritonModel:
    """One model on one Triton."""

    def __init__(self, endpoint: str, model: str) -> None:
        self.endpoint = endpoint
        self._model = model
        self._channel = grpc.aio.insecure_channel(endpoint, options=reconnect.SOON)
        self._service = service_pb2_grpc.GRPCInferenceServiceStub(self._channel)
        self.inflight = 0
        """Questions that were sent there and have neither an answer nor an error yet."""

    async def infer(self, tokens: Tokens, *, version: str, priority: int, timeout_s: float) -> Outcome:
        """The model's answer; InferenceError when there is none. `version` "" means the model's policy decides.

        `priority` 0 sends none, 1 is served first: a model without priority levels refuses a level it does not have.
        """
        request = service_pb2.ModelInferRequest(model_name=self._model, model_version=version)
        for name, values in (("input_ids", tokens.ids), ("attention_mask", tokens.mask)):
            request.inputs.add(name=name, datatype="INT64", shape=(1, MAX_TOKENS))
            request.raw_input_contents.append(array("q", values).tobytes())
        if priority:
            request.parameters["priority"].uint64_param = priority
        self.inflight += 1
        try:
            response = await self._service.ModelInfer(request, timeout=timeout_s)
        except grpc.aio.AioRpcError as error:
            raise failure_of(error.code(), error.details() or error.code().name) from error
        finally:
            self.inflight -= 1
        return _read(response)

    async def close(self) -> None:
        """Ends the connection."""
        await self._channel.close()


def _read(response: service_pb2.ModelInferResponse) -> Outcome:
    found = {
        output.name: content for output, content in zip(response.outputs, response.raw_output_contents, strict=False)
    }
    index, score = found.get("answer_index", b""), found.get("score", b"")
    if len(index) != 4 or len(score) != 4:
        raise InferenceError("inference_failed", 500, "the model's answer lacks answer_index or score")
    (cosine,) = struct.unpack("<f", score)
    if not math.isfinite(cosine):
        raise InferenceError("inference_failed", 500, f"the model's score is {cosine}")
    return Outcome(struct.unpack("<i", index)[0], cosine, response.model_version)
