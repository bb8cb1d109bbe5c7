"""The versions of the model in Triton's repository: one for each precision, side by side, and what a version holds."""

from __future__ import annotations

from pathlib import Path

VERSIONS = {"fp32": "1", "int8": "2"}
"""The version of the model that has a precision."""

MODEL_SOURCE = Path(__file__).with_name("triton_model") / "faq_encoder" / "1"
"""The folder that holds the model file; every version has the same one."""

SHELL_FILE = "model.py"
ENCODER_FILE = "encoder.onnx"
"""The encoder of a version that brings its own; without it the version runs the FP32 encoder."""
ENCODINGS_FILE = "encodings.npz"
"""Beside an encoder of its own: the index, and the known questions as that encoder sees them."""


def precision_of(version: str) -> str:
    """The precision that a version has; that of the first where the number says nothing."""
    return next((precision for precision, number in VERSIONS.items() if number == version), "fp32")
