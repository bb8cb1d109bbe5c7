"""The controller's view of Triton: which configuration is in effect, and a load of another one, over gRPC.

gRPC because the HTTP load call blocks one of Triton's front-end threads for as long as the load takes.
"""

from __future__ import annotations

from tritonclient.grpc import InferenceServerClient, model_config_pb2
from tritonclient.utils import InferenceServerException

from latencydoctor.errors import KnownError
from latencydoctor.stack import reconnect

CALL_TIMEOUT_S = 5.0
LOAD_TIMEOUT_S = 60.0


class TritonUnavailableError(KnownError):
    """Triton does not answer: it starts, or was killed and is being restarted."""


class Triton:
    """One Triton server."""

    def __init__(self, address: str) -> None:
        # Triton's port stays where it is when a replica goes and comes, so one channel outlives many Tritons.
        self._client = InferenceServerClient(address, channel_args=list(reconnect.SOON))

    def effective(self, model: str) -> model_config_pb2.ModelConfig:
        """The configuration Triton says it runs; TritonUnavailableError when it cannot say."""
        try:
            return self._client.get_model_config(model, client_timeout=CALL_TIMEOUT_S).config
        except InferenceServerException as error:
            raise TritonUnavailableError(f"Triton does not answer: {_reason(error)}") from error

    def load(self, model: str, config_json: str) -> None:
        """Loads `model` with a complete configuration; the old one serves until the new one is ready.

        TritonUnavailableError when Triton does not answer, KnownError with its reason when it refuses.
        """
        try:
            self._client.load_model(model, config=config_json, client_timeout=LOAD_TIMEOUT_S)
        except InferenceServerException as error:
            if error.status() in ("StatusCode.UNAVAILABLE", "StatusCode.DEADLINE_EXCEEDED"):
                raise TritonUnavailableError(f"Triton does not answer: {_reason(error)}") from error
            raise KnownError(f"Triton refused the configuration: {_reason(error)}") from error

    def reload(self, model: str, config_json: str) -> None:
        """Unloads and loads `model`: a load alone does nothing when the configuration is the one Triton has.

        Raises as `load` does.
        """
        try:
            self._client.unload_model(model, client_timeout=CALL_TIMEOUT_S)
        except InferenceServerException as error:
            raise TritonUnavailableError(f"Triton does not answer: {_reason(error)}") from error
        self.load(model, config_json)

    def close(self) -> None:
        """Closes the connection."""
        self._client.close()


def _reason(error: InferenceServerException) -> str:
    return " ".join(str(error.message()).split())[:500]


def in_effect(effective: model_config_pb2.ModelConfig, wanted: model_config_pb2.ModelConfig) -> bool:
    """Whether Triton runs what the settings ask for: compares what the settings decide, not Triton's own defaults."""
    return _decided(effective) == _decided(wanted)


def _decided(config: model_config_pb2.ModelConfig) -> tuple[object, ...]:
    batching = config.dynamic_batching
    # Triton fills an absent preference in with the largest batch.
    preferred = tuple(batching.preferred_batch_size) or (config.max_batch_size,)
    return (
        config.max_batch_size,
        config.HasField("dynamic_batching") and preferred,
        batching.max_queue_delay_microseconds,
        batching.priority_levels,
        batching.default_priority_level,
        sorted(
            (level, policy.timeout_action, policy.default_timeout_microseconds)
            for level, policy in batching.priority_queue_policy.items()
        ),
        sum(group.count for group in config.instance_group),
        tuple(config.version_policy.specific.versions),
        sorted((name, parameter.string_value) for name, parameter in config.parameters.items()),
    )
