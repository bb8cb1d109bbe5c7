"""A TensorRT engine out of explicit Q/DQ, by TensorRT's own builder; needs no GPU where TensorRT for RTX is installed.

Runs in a process of its own, `python -m latencydoctor.stack.quantise.engine`, because TensorRT is usually installed in
another environment than the stack: this module needs nothing but it and the standard library.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import re
import sys
import time
from pathlib import Path
from typing import Any

WORKSPACE_BYTES = 1 << 30
"""Memory that a tactic may take while the engine is built and while it runs (the mission's: 1 GiB)."""

RUNTIMES = ("tensorrt", "tensorrt_rtx")
"""Packages with TensorRT's Python API, preferred first."""

BATCHES = (1, 16, 128)
"""Smallest, usual and largest batch that the engine is made for: the stack's largest `max_batch_size` is 128."""

_CAPABILITY = re.compile(r"([1-9]\d?)\.(\d)")


class NoEngineError(Exception):
    """There is no engine, and why."""


def runtime() -> Any:
    """The TensorRT that is installed here, None where there is none."""
    for name in RUNTIMES:
        try:
            return importlib.import_module(name)
        except (ImportError, OSError):  # OSError: its CUDA runtime is missing
            continue
    return None


def build_engine(model: Path, target: Path, capability: str) -> dict[str, object]:
    """Builds `model` (ONNX with Q/DQ) into `target`; what was built, by name. NoEngineError when it cannot be.

    `capability` is the compute capability of the GPU that shall run it, such as 8.9; "" for the GPU of this machine.
    """
    found = runtime()
    if found is None:
        raise NoEngineError(f"none of {', '.join(RUNTIMES)} can be imported by {sys.executable}")
    start = time.monotonic()
    builder = found.Builder(found.Logger(found.Logger.ERROR))
    network = _parsed(found, builder, model)
    config = _config(found, builder, network, capability)
    engine = builder.build_serialized_network(network, config)
    if engine is None:
        raise NoEngineError("TensorRT's builder gave no engine; its messages stand above")
    content = bytes(memoryview(engine))
    temporary = target.with_name(f".{target.name}.tmp")
    temporary.write_bytes(content)
    temporary.replace(target)
    return {
        "runtime": f"{found.__name__} {found.__version__}",
        "capability": capability,
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "workspace_bytes": WORKSPACE_BYTES,
        "int8_layers": _quantised(network, found),
        "took_s": round(time.monotonic() - start, 1),
    }


def _parsed(found: Any, builder: Any, model: Path) -> Any:
    # Newer builders know no other network than a strongly typed one with an explicit batch.
    flags = getattr(found, "NetworkDefinitionCreationFlag", None)
    typed = getattr(flags, "STRONGLY_TYPED", None)
    network = builder.create_network(1 << int(typed) if typed is not None else 0)
    parser = found.OnnxParser(network, builder.logger)
    if not parser.parse_from_file(str(model)):
        told = "; ".join(str(parser.get_error(number).desc()) for number in range(parser.num_errors))
        raise NoEngineError(f"{model.name} cannot be parsed: {told}")
    return network


def _config(found: Any, builder: Any, network: Any, capability: str) -> Any:
    config = builder.create_builder_config()
    config.set_memory_pool_limit(found.MemoryPoolType.WORKSPACE, WORKSPACE_BYTES)
    profile = builder.create_optimization_profile()
    for number in range(network.num_inputs):
        entry = network.get_input(number)
        profile.set_shape(entry.name, *((batch, *tuple(entry.shape)[1:]) for batch in BATCHES))
    config.add_optimization_profile(profile)
    if capability:
        _aim(found, config, capability)
    return config


def _aim(found: Any, config: Any, capability: str) -> None:
    told = _CAPABILITY.fullmatch(capability)
    known = getattr(found, "ComputeCapability", None)
    wanted = getattr(known, f"SM{told[1]}{told[2]}", None) if told else None
    if wanted is None or not hasattr(config, "set_compute_capability"):
        raise NoEngineError(f"{found.__name__} {found.__version__} builds nothing for compute capability {capability}")
    config.num_compute_capabilities = 1
    config.set_compute_capability(wanted, 0)


def _quantised(network: Any, found: Any) -> int:
    """How many layers of the network quantise: none would mean that the engine is no INT8 at all."""
    return sum(network.get_layer(number).type == found.LayerType.QUANTIZE for number in range(network.num_layers))


def main() -> None:
    """Builds one engine and prints what was built as JSON; a line on stderr and exit 1 where there is none."""
    arguments = argparse.ArgumentParser(prog="latencydoctor.stack.quantise.engine")
    arguments.add_argument("model", type=Path)
    arguments.add_argument("target", type=Path)
    arguments.add_argument("--capability", default="")
    given = arguments.parse_args()
    try:
        built = build_engine(given.model, given.target, given.capability)
    except NoEngineError as error:
        sys.exit(str(error))
    sys.stdout.write(json.dumps(built) + "\n")


if __name__ == "__main__":
    main()
