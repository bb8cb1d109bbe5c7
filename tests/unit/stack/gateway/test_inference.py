import grpc
import pytest

from latencydoctor.stack.gateway.inference import failure_of


@pytest.mark.parametrize(
    ("code", "detail", "event", "status"),
    [
        (grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded", "inference_timeout", 504),
        (grpc.StatusCode.UNAVAILABLE, "failed to connect to all addresses", "inference_unavailable", 503),
        (grpc.StatusCode.UNAVAILABLE, "Request for unknown model: 'faq-encoder' is not found", "model_load_error", 503),
        (grpc.StatusCode.INTERNAL, "simulated device out of memory: a batch of 32 needs 9 bytes", "gpu_oom", 503),
        (grpc.StatusCode.UNAVAILABLE, "[request id: <id_unknown>] Request timeout expired", "request_shed", 503),
        (grpc.StatusCode.UNAVAILABLE, "Exceeds maximum queue size", "request_shed", 503),
        (grpc.StatusCode.INTERNAL, "Stub process 'faq' is not healthy.", "inference_failed", 500),
        (grpc.StatusCode.INVALID_ARGUMENT, "unexpected shape for input", "inference_failed", 500),
    ],
)
def test_what_triton_says_becomes_the_event_and_the_status(
    code: grpc.StatusCode, detail: str, event: str, status: int
) -> None:
    failure = failure_of(code, detail)
    assert (failure.event, failure.status) == (event, status)


def test_a_batch_that_is_too_large_names_the_limit() -> None:
    detail = "[request id: <id_unknown>] inference request batch-size must be <= 8 for 'faq-encoder'"
    failure = failure_of(grpc.StatusCode.INVALID_ARGUMENT, detail)
    assert (failure.event, failure.limit) == ("batch_size_mismatch", 8)
