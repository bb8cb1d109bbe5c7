"""Settings to Triton's own configuration: `config.pbtxt` for the model folder, JSON for a load over gRPC.

Both come from one protobuf message of Triton's client, so that they cannot differ. No path, port or time is in it: the
same settings give the same text on every machine.
"""

from __future__ import annotations

from google.protobuf import json_format, text_format
from tritonclient.grpc import model_config_pb2 as pb

from latencydoctor.stack.encoder.shape import MAX_TOKENS
from latencydoctor.stack.settings import InferenceSettings, Settings
from latencydoctor.stack.versions import VERSIONS

HEADER = "# Compiled from settings.yaml; edits here are overwritten by the next change of the settings.\n"


def model_config(settings: Settings) -> pb.ModelConfig:
    """The configuration of the model for these settings."""
    inference = settings.inference
    config = pb.ModelConfig(
        name=inference.model,
        backend="python",
        max_batch_size=inference.batching.max_batch_size,
        input=[
            pb.ModelInput(name=name, data_type=pb.TYPE_INT64, dims=[MAX_TOKENS])
            for name in ("input_ids", "attention_mask")
        ],
        output=[
            pb.ModelOutput(name="answer_index", data_type=pb.TYPE_INT32, dims=[1]),
            pb.ModelOutput(name="score", data_type=pb.TYPE_FP32, dims=[1]),
        ],
        instance_group=[pb.ModelInstanceGroup(count=1, kind=pb.ModelInstanceGroup.KIND_CPU)],
    )
    config.parameters["accelerator"].string_value = settings.accelerator
    config.parameters["precision"].string_value = inference.precision
    # Without a policy Triton serves the newest version there is, also one that is only being put in place.
    config.version_policy.specific.versions.extend(int(version) for version in settings.versions)
    if VERSIONS["int8"] in settings.versions:
        config.model_warmup.extend(_warmup(inference))
    if inference.batching.enabled:
        config.dynamic_batching.CopyFrom(_dynamic_batching(inference))
    return config


def _warmup(inference: InferenceSettings) -> list[pb.ModelWarmup]:
    """One execution of the smallest and of the largest batch before a version answers: its first ones are slow."""
    inputs = {
        name: pb.ModelWarmup.Input(data_type=pb.TYPE_INT64, dims=[MAX_TOKENS], zero_data=True)
        for name in ("input_ids", "attention_mask")
    }
    sizes = sorted({1, inference.batching.max_batch_size})
    return [pb.ModelWarmup(name=f"batch-of-{size}", batch_size=size, inputs=inputs) for size in sizes]


def _dynamic_batching(inference: InferenceSettings) -> pb.ModelDynamicBatching:
    batching = inference.batching
    message = pb.ModelDynamicBatching(max_queue_delay_microseconds=batching.timeout_micros)
    if batching.preferred_batch_size:
        message.preferred_batch_size.append(batching.preferred_batch_size)
    if inference.priority_levels:
        message.priority_levels = max(inference.priorities.vip, inference.priorities.standard)
        message.default_priority_level = inference.priorities.standard
    if inference.priorities.standard_timeout_ms:
        # A level without a policy of its own waits as long as it takes. A request's own timeout must not lengthen it.
        message.priority_queue_policy[inference.priorities.standard].CopyFrom(
            pb.ModelQueuePolicy(
                timeout_action=pb.ModelQueuePolicy.REJECT,
                default_timeout_microseconds=inference.priorities.standard_timeout_ms * 1000,
            )
        )
    return message


def to_pbtxt(settings: Settings) -> str:
    """The text of `config.pbtxt`."""
    return HEADER + str(text_format.MessageToString(model_config(settings)))


def to_json(settings: Settings) -> str:
    """The same configuration as the JSON text that `load_model(name, config=...)` takes."""
    return str(json_format.MessageToJson(model_config(settings), preserving_proto_field_name=True, indent=None))
