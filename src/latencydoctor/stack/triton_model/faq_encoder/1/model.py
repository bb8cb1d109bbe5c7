"""The model Triton's Python backend runs; everything worth testing is in `latencydoctor.stack.encoder.serving`."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils

# Triton's stub ignores PYTHONPATH; where the package is not installed (a source tree), this is how it is found.
sys.path.append(os.environ["LATENCYDOCTOR_PACKAGE_FOLDER"])

from latencydoctor.errors import KnownError
from latencydoctor.stack.encoder.device import DeviceMemoryError
from latencydoctor.stack.encoder.onnx_model import Ints
from latencydoctor.stack.encoder.serving import FaqServing, Metric, Place


class TritonPythonModel:
    """One instance of the encoder."""

    def initialize(self, args: dict[str, str]) -> None:
        """Loads the model; called once by Triton, which shows the message of a TritonModelException."""
        config = json.loads(args["model_config"])
        largest = config["max_batch_size"]
        self._families: list[Any] = []
        self._labels = {"model": args["model_name"]}
        place = Place(
            model=Path(os.environ["LATENCYDOCTOR_MODEL_FILE"]),
            encodings=Path(os.environ["LATENCYDOCTOR_ENCODINGS"]),
            device_lock=Path(os.environ["LATENCYDOCTOR_DEVICE_LOCK"]),
        )
        sizes = (*(size for size in (1, 2, 4, 8, 16, 32, 64) if size < largest), largest)
        try:
            self._serve = FaqServing(
                config["parameters"]["accelerator"]["string_value"], sizes, place, self._make_metric
            )
        except KnownError as error:
            raise pb_utils.TritonModelException(f"{error} {error.hint}") from error

    def _make_metric(self, name: str, text: str, counter: bool, labels: dict[str, str]) -> Metric:
        kind = pb_utils.MetricFamily.COUNTER if counter else pb_utils.MetricFamily.GAUGE
        family = pb_utils.MetricFamily(name=name, description=text, kind=kind)
        self._families.append(family)
        metric: Metric = family.Metric(labels=labels | self._labels)
        return metric

    def execute(self, requests: list[Any]) -> list[Any]:
        """One response for each request of a batch."""
        ids = np.concatenate([_input(request, "input_ids") for request in requests])
        mask = np.concatenate([_input(request, "attention_mask") for request in requests])
        try:
            answers, scores = self._serve(ids, mask)
        except DeviceMemoryError as error:
            failed = pb_utils.TritonError(str(error))
            return [pb_utils.InferenceResponse(error=failed) for _ in requests]
        responses, start = [], 0
        for request in requests:
            end = start + len(_input(request, "input_ids"))
            outputs = [
                pb_utils.Tensor("answer_index", answers[start:end, None].astype(np.int32)),
                pb_utils.Tensor("score", scores[start:end, None].astype(np.float32)),
            ]
            responses.append(pb_utils.InferenceResponse(outputs))
            start = end
        return responses


def _input(request: Any, name: str) -> Ints:
    values: Ints = pb_utils.get_input_tensor_by_name(request, name).as_numpy()
    return values
