"""Triton's configuration in effect, over gRPC, and its comparison with what was asked for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import tritonclient.grpc as triton
from google.protobuf import json_format, text_format
from google.protobuf.message import Message
from tritonclient.grpc import model_config_pb2
from tritonclient.utils import InferenceServerException

from latencydoctor.errors import KnownError

TIMEOUT_S = 5.0

DIRECTLY = (("grpc.enable_http_proxy", 0),)
"""Channel options: a proxy that the environment names is for the web."""


@dataclass(frozen=True, slots=True)
class EffectiveConfig:
    """What the server says it runs: settings by the dotted keys of the settings file, a digest, the whole as text."""

    settings: tuple[tuple[str, str], ...]
    digest: str
    pbtxt: str


def read_effective(address: str, model: str) -> EffectiveConfig:
    """What the server at host:port runs for `model`; KnownError when it does not answer or lacks the model."""
    try:
        client = triton.InferenceServerClient(address, channel_args=list(DIRECTLY))
        try:
            config = client.get_model_config(model, client_timeout=TIMEOUT_S).config
        finally:
            client.close()
    except InferenceServerException as error:
        raise KnownError(
            f"Triton at {address} does not give the configuration of {model}: {error.message()}",
            hint="Is the stack up? See `latencydoctor stack status`.",
        ) from error
    return EffectiveConfig(
        settings=_settings(config),
        digest=hashlib.sha256(config.SerializeToString(deterministic=True)).hexdigest(),
        pbtxt=text_format.MessageToString(config),
    )


def _settings(config: Message) -> tuple[tuple[str, str], ...]:
    found = json_format.MessageToDict(config, preserving_proto_field_name=True)
    batcher = found.get("dynamic_batching")
    preferred = [int(size) for size in (batcher or {}).get("preferred_batch_size", [])]
    wait = int((batcher or {}).get("max_queue_delay_microseconds", 0))
    precision = str((found.get("parameters") or {}).get("precision", {}).get("string_value", ""))
    told = (("inference.precision", precision),) if precision else ()
    return (
        *told,
        ("inference.batching.enabled", "false" if batcher is None else "true"),
        ("inference.batching.preferred_batch_size", str(min(preferred, default=0))),
        ("inference.batching.max_batch_size", str(found.get("max_batch_size", 0))),
        ("inference.batching.timeout_micros", str(wait)),
    )


def differences(compiled: str, effective: EffectiveConfig) -> tuple[str, ...]:
    """Where the server runs something else than the compiled text asks for, in words.

    Every field that the text sets must be in effect with that value; the server adds defaults of its own, which are no
    difference, except a batcher that was not asked for.
    """
    asked = _parsed(compiled)
    runs = _parsed(effective.pbtxt)
    _fill_preferred(asked)
    _fill_preferred(runs)
    found = list(_missing(asked, runs, ""))
    if runs.HasField("dynamic_batching") and not asked.HasField("dynamic_batching"):
        found.append("dynamic_batching: not asked for, but the server batches")
    return tuple(found)


def _parsed(text: str) -> model_config_pb2.ModelConfig:
    try:
        return text_format.Parse(text, model_config_pb2.ModelConfig())
    except text_format.ParseError as error:
        raise KnownError(f"the compiled configuration cannot be read: {error}", hint="Report this.") from error


def _fill_preferred(config: model_config_pb2.ModelConfig) -> None:
    # Triton reads an empty list of preferred sizes as the maximum alone, and reports it that way.
    if config.HasField("dynamic_batching") and not config.dynamic_batching.preferred_batch_size:
        config.dynamic_batching.preferred_batch_size.append(config.max_batch_size)


def _missing(asked: Message, runs: Message, path: str) -> list[str]:
    found: list[str] = []
    for field, value in asked.ListFields():
        name = f"{path}{field.name}"
        other = getattr(runs, field.name)
        if field.type == field.TYPE_MESSAGE and not hasattr(value, "__len__"):
            found += _missing(value, other, f"{name}.")
        elif field.name == "instance_group":
            found += _count_differs(value, other)
        elif value != other:
            found.append(f"{name}: {_shown(value)} asked for, {_shown(other)} in effect")
    return found


class _Group(Protocol):
    count: int


def _count_differs(asked: Iterable[_Group], runs: Iterable[_Group]) -> list[str]:
    # The server names the groups and fills in devices; how many instances run is what matters.
    counts = [sum(group.count for group in groups) for groups in (asked, runs)]
    return [] if counts[0] == counts[1] else [f"instance_group: {counts[0]} asked for, {counts[1]} in effect"]


def _shown(value: object) -> str:
    return " ".join(str(value).split()) or "nothing"
