"""One Triton over gRPC, as far as changing a model asks of it: what it runs, and a load."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from queue import Empty, SimpleQueue

import tritonclient.grpc as triton
from tritonclient.grpc import model_config_pb2 as pb
from tritonclient.utils import InferenceServerException

from latencydoctor.errors import KnownError
from latencydoctor.model.effects import Effect, Effects, unwatched
from latencydoctor.targets.triton import DIRECTLY

TIMEOUT_S = 5.0
POLL_S = 0.05
_GONE = ("StatusCode.UNAVAILABLE", "StatusCode.DEADLINE_EXCEEDED")


class Loaded(Enum):
    """What came of asking for a load."""

    YES = "loaded"
    REFUSED = "refused"
    FORBIDDEN = "the server loads nothing on demand"
    SILENT = "no answer"


class TritonServer:
    """The server at host:port."""

    def __init__(self, address: str, effects: Effects = unwatched) -> None:
        self.address = address
        self._effects = effects

    def config(self, model: str) -> pb.ModelConfig:
        """What the server runs for `model`; KnownError when it does not answer or lacks the model."""
        try:
            with self._client() as client, self._effects(Effect.ASK_TRITON):
                return client.get_model_config(model, client_timeout=TIMEOUT_S).config
        except InferenceServerException as error:
            raise KnownError(
                f"Triton at {self.address} does not give the configuration of {model}: {_reason(error)}",
                hint="Is that its gRPC address (port 8001 by default), and is the model loaded?",
            ) from error

    def load(self, model: str, timeout_s: float, cancelled: Callable[[], bool]) -> tuple[Loaded, str]:
        """Ask the server to look at the model's folder and to load what it finds; the old one serves meanwhile.

        Returns what came of it and the server's reason. A load takes as long as the model is large, so an interrupt is
        heeded while it lasts; the server itself goes on with it.
        """
        answer: SimpleQueue[tuple[Loaded, str]] = SimpleQueue()
        with self._effects(Effect.LOAD_MODEL):
            threading.Thread(target=self._ask, args=(model, timeout_s, answer), name="load", daemon=True).start()
            while True:
                try:
                    return answer.get(timeout=POLL_S)
                except Empty:
                    if cancelled():
                        raise KnownError(f"interrupted while {model} was being loaded") from None

    def _ask(self, model: str, timeout_s: float, answer: SimpleQueue[tuple[Loaded, str]]) -> None:
        found = (Loaded.SILENT, "the call broke off")
        try:
            with self._client() as client:
                client.load_model(model, client_timeout=timeout_s)
            found = (Loaded.YES, "")
        except InferenceServerException as error:
            found = (_kind(error), _reason(error))
        finally:
            answer.put(found)

    @contextmanager
    def _client(self) -> Iterator[triton.InferenceServerClient]:
        client = triton.InferenceServerClient(self.address, channel_args=list(DIRECTLY))
        try:
            yield client
        finally:
            client.close()


def _kind(error: InferenceServerException) -> Loaded:
    if "is not allowed" in str(error.message()):
        return Loaded.FORBIDDEN
    return Loaded.SILENT if error.status() in _GONE else Loaded.REFUSED


def _reason(error: InferenceServerException) -> str:
    return " ".join(str(error.message()).split())[:500]
