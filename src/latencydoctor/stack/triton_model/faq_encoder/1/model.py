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
from latencydoctor.stack.encoder.serving import Answers, FaqServing, Metric, Place
from latencydoctor.stack.versions import ENCODER_FILE, ENCODINGS_FILE, precision_of


class TritonPythonModel:
    """One instance of the encoder."""

    def initialize(self, args: dict[str, str]) -> None:
        """Loads the model; called once by Triton, which shows the message of a TritonModelException."""
        config = json.loads(args["model_config"])
        largest = config["max_batch_size"]
        self._families: list[Any] = []
        self._labels = {"model": args["model_name"]}
        version = Path(args["model_repository"]) / args["model_version"]
        own = version / ENCODER_FILE
        place = Place(
            model=own if own.is_file() else Path(os.environ["LATENCYDOCTOR_MODEL_FILE"]),
            encodings=version / ENCODINGS_FILE if own.is_file() else Path(os.environ["LATENCYDOCTOR_ENCODINGS"]),
            device_lock=Path(os.environ["LATENCYDOCTOR_DEVICE_LOCK"]),
            device_clock=Path(os.environ["LATENCYDOCTOR_DEVICE_CLOCK"]),
        )
        sizes = (*(size for size in (1, 2, 4, 8, 16, 32, 64) if size < largest), largest)
        try:
            self._serve = FaqServing(
                config["parameters"]["accelerator"]["string_value"],
                sizes,
                place,
                self._make_metric,
                precision_of(args["model_version"]),
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
        inputs = [_input(request, "input_ids") for request in requests]
        mask = np.concatenate([_input(request, "attention_mask") for request in requests])
        ends = np.cumsum([len(ids) for ids in inputs])[:-1]

        def respond(found: Answers) -> list[Any]:
            answers = np.split(found[0][:, None].astype(np.int32), ends)
            scores = np.split(found[1][:, None].astype(np.float32), ends)
            return [
                pb_utils.InferenceResponse([pb_utils.Tensor("answer_index", answer), pb_utils.Tensor("score", score)])
                for answer, score in zip(answers, scores, strict=True)
            ]

        try:
            return self._serve(np.concatenate(inputs), mask, respond)
        except DeviceMemoryError as error:
            failed = pb_utils.TritonError(str(error))
            return [pb_utils.InferenceResponse(error=failed) for _ in requests]


def _input(request: Any, name: str) -> Ints:
    values: Ints = pb_utils.get_input_tensor_by_name(request, name).as_numpy()
    return values
