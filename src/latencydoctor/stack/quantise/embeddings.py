"""Tables of embeddings in INT8 with one scale a row, out of operators that every runtime has."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

from latencydoctor.stack.encoder.onnx_model import Floats

Codes = npt.NDArray[np.int8]

LEAST_ELEMENTS = 10_000
"""Smaller tables are left alone: a few kilobytes less are not worth four operators more."""

LARGEST_CODE = 127
"""Codes are symmetric about zero, so that a row of zeros stays one."""


def quantise_embeddings(model: Path) -> None:
    """Replaces each look-up in a large FP32 table by look-ups of codes and of scales, and their product; in place."""
    loaded = onnx.load(model)
    graph = loaded.graph
    tables = {one.name: one for one in graph.initializer}
    nodes = []
    for node in graph.node:
        table = tables.get(node.input[0]) if node.op_type == "Gather" else None
        if table is None or table.data_type != onnx.TensorProto.FLOAT or np.prod(table.dims) < LEAST_ELEMENTS:
            nodes.append(node)
            continue
        graph.initializer.remove(table)
        names = [f"{table.name}_codes", f"{table.name}_scales"]
        codes, scales = quantised_rows(numpy_helper.to_array(table))
        graph.initializer.append(numpy_helper.from_array(codes, names[0]))
        graph.initializer.append(numpy_helper.from_array(scales, names[1]))
        nodes += _look_up(names, node.input[1], node.output[0])
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.save(loaded, model)


def quantised_rows(table: Floats) -> tuple[Codes, Floats]:
    """Codes [n, width] in INT8 and scales [n, 1]: each row of the table is its codes times its scale."""
    scales = np.abs(table).max(axis=1, keepdims=True) / LARGEST_CODE
    scales[scales == 0] = 1
    return np.rint(table / scales).astype(np.int8), scales.astype(np.float32)


def _look_up(names: list[str], rows: str, output: str) -> list[onnx.NodeProto]:
    codes, scales, numbers = f"{output}_codes", f"{output}_scales", f"{output}_numbers"
    return [
        helper.make_node("Gather", [names[0], rows], [codes], name=codes, axis=0),
        helper.make_node("Gather", [names[1], rows], [scales], name=scales, axis=0),
        helper.make_node("Cast", [codes], [numbers], name=numbers, to=onnx.TensorProto.FLOAT),
        helper.make_node("Mul", [numbers, scales], [output], name=f"{output}_product"),
    ]
