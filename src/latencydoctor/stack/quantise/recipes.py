"""The ways to rebuild the encoder in INT8; each makes one ONNX file out of the FP32 one.

All start from the same prepared model: the input's length fixed, the unused outputs gone, constants folded. That alone
changes no answer; it takes the arithmetic on shapes out of the graph, which quantising would otherwise carry along.

Two thirds of the file are word embeddings. They get one scale a word (`embeddings.py`): with one scale for the whole
table, as the library does it, every candidate lost more than 1 % of top-1.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
from onnxruntime import quantization as ort

from latencydoctor.stack.encoder.onnx_model import SENTENCE_OUTPUT, Ints
from latencydoctor.stack.encoder.shape import MAX_TOKENS
from latencydoctor.stack.quantise.embeddings import quantise_embeddings

CALIBRATION_BATCH = 16

_OPTIONS = {"MatMulConstBOnly": True, "DefaultTensorType": onnx.TensorProto.FLOAT}
"""Attention multiplies activations with each other; only weights are quantised."""

_SENSITIVE = ("layer.0/", "/output/dense/")
"""Parts of the names of multiplications that lose most with one range for all their inputs: those of the first layer,
and those behind an activation function, where a few inputs are far larger than all others."""

_SENSITIVE_TO_SYMMETRY = ("/output/dense/", "/intermediate/")
"""The same where zero must be the middle of every range: what remains are queries, keys and values of attention."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """One way: its name for people, and what makes the file from the FP32 model and the calibration's tokens."""

    name: str
    build: Callable[[Path, Path, Ints, Ints], None]


def prepare(model: Path, target: Path) -> None:
    """The model for inputs of MAX_TOKENS with the sentence embedding as its one output, constants folded."""
    graph = onnx.load(model)
    for entry in graph.graph.input:
        length = entry.type.tensor_type.shape.dim[1]
        length.ClearField("dim_param")
        length.dim_value = MAX_TOKENS
    kept = [output for output in graph.graph.output if output.name == SENTENCE_OUTPUT]
    del graph.graph.output[:]
    graph.graph.output.extend(kept)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(target)
    onnxruntime.InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])


def dynamic(model: Path, target: Path, _ids: Ints, _mask: Ints) -> None:
    """Weights in INT8 by column, activations quantised as they come: nothing to calibrate."""
    prepare(model, target)
    quantise_embeddings(target)
    with _quietly():
        ort.quantize_dynamic(
            target,
            target,
            op_types_to_quantize=["MatMul"],
            weight_type=ort.QuantType.QInt8,
            per_channel=True,
            extra_options=dict(_OPTIONS),
        )


def static_qdq(model: Path, target: Path, ids: Ints, mask: Ints) -> None:
    """Q/DQ for CPUs: the ranges of activations are calibrated ahead."""
    prepare(model, target)
    quantise_embeddings(target)
    _calibrate(target, ids, mask, (), ort.QuantType.QUInt8, {})


def static_qdq_sparing(model: Path, target: Path, ids: Ints, mask: Ints) -> None:
    """The same, what is sensitive left in FP32: larger, and closer to the model before."""
    prepare(model, target)
    quantise_embeddings(target)
    _calibrate(target, ids, mask, _SENSITIVE, ort.QuantType.QUInt8, {})


def explicit_qdq(model: Path, target: Path, ids: Ints, mask: Ints) -> None:
    """Explicit Q/DQ as TensorRT takes it: signed and symmetric, no zero points, only multiplications, the sensitive
    ones left as they are; embeddings stay what they are, which a device has room for."""
    prepare(model, target)
    symmetric = {"ActivationSymmetric": True, "WeightSymmetric": True}
    _calibrate(target, ids, mask, _SENSITIVE_TO_SYMMETRY, ort.QuantType.QInt8, symmetric)


def _calibrate(
    model: Path, ids: Ints, mask: Ints, spared: Sequence[str], activation: object, options: dict[str, Any]
) -> None:
    """Quantises the model in its place."""
    graph = onnx.load(model).graph
    names = [node.name for node in graph.node if node.op_type == "MatMul"]
    with _quietly():
        ort.quantize_static(
            model,
            model,
            _Questions(ids, mask),
            quant_format=ort.QuantFormat.QDQ,
            op_types_to_quantize=["MatMul"],
            nodes_to_exclude=[name for name in names if any(part in name for part in spared)],
            per_channel=True,
            activation_type=activation,
            weight_type=ort.QuantType.QInt8,
            calibrate_method=ort.CalibrationMethod.MinMax,
            extra_options={**_OPTIONS, **options},
        )


class _Questions(ort.CalibrationDataReader):  # type: ignore[misc]  # untyped
    """The calibration's questions in whole batches."""

    def __init__(self, ids: Ints, mask: Ints) -> None:
        whole = len(ids) // CALIBRATION_BATCH * CALIBRATION_BATCH
        self._batches: Iterator[dict[str, Ints]] = iter(
            {
                "input_ids": ids[start : start + CALIBRATION_BATCH],
                "attention_mask": mask[start : start + CALIBRATION_BATCH],
            }
            for start in range(0, whole, CALIBRATION_BATCH)
        )

    def get_next(self) -> dict[str, Ints] | None:
        """The next batch, None at the end."""
        return next(self._batches, None)


@contextmanager
def _quietly() -> Iterator[None]:
    """The library advises on the root logger to prepare the model first, which has been done."""
    root = logging.getLogger()
    before = root.level
    root.setLevel(logging.ERROR)
    try:
        yield
    finally:
        root.setLevel(before)


FOR_CPU = (
    Recipe("dynamic", dynamic),
    Recipe("static Q/DQ", static_qdq),
    Recipe("static Q/DQ, sensitive parts in FP32", static_qdq_sparing),
)
"""What the CPU provider is offered; the fastest that passes is kept."""

FOR_TENSORRT = Recipe("explicit Q/DQ", explicit_qdq)
"""What TensorRT's builder is given."""
