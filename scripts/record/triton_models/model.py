"""The model of every recorded Triton: it waits as long as its configuration says and answers what it was asked."""

import json
import time
from typing import Any

import triton_python_backend_utils as pb_utils

LATE_S = 0.03
"""How long a decoupled model waits between the parts of its answer."""


class TritonPythonModel:
    """One instance. A question below zero is refused, and -1 breaks the whole execution: failures of both kinds."""

    def initialize(self, args: dict[str, str]) -> None:
        """Reads the two times: for each execution, and for each item in it."""
        config = json.loads(args["model_config"])
        times = {name: float(held["string_value"]) for name, held in config["parameters"].items()}
        self._fixed_s, self._item_s = times["fixed_ms"] / 1000, times["item_ms"] / 1000
        self._decoupled = bool(config.get("model_transaction_policy", {}).get("decoupled"))

    def execute(self, requests: list[Any]) -> list[Any] | None:
        """One response for each request of a batch, or three late ones where the model is decoupled."""
        asked = [pb_utils.get_input_tensor_by_name(request, "x").as_numpy() for request in requests]
        time.sleep(self._fixed_s + self._item_s * sum(len(values) for values in asked))
        if any((values == -1).any() for values in asked):
            raise pb_utils.TritonModelException("broken")
        if not self._decoupled:
            return [_response(values) for values in asked]
        for request, values in zip(requests, asked, strict=True):
            sender = request.get_response_sender()
            for _ in range(3):
                sender.send(_response(values))
                time.sleep(LATE_S)
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        return None


def _response(values: Any) -> Any:
    if (values < 0).any():
        return pb_utils.InferenceResponse(error=pb_utils.TritonError("below zero"))
    return pb_utils.InferenceResponse([pb_utils.Tensor("y", values)])
