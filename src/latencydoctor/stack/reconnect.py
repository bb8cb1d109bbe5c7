"""How soon a gRPC channel finds a Triton again that was away; the gateway and the controller share it."""

from __future__ import annotations

SOON = (
    # The library's own backoff reaches two minutes; a Triton that was killed is back after one second.
    ("grpc.initial_reconnect_backoff_ms", 100),
    # Also what one attempt to connect may take, which on a busy machine is more than it looks.
    ("grpc.min_reconnect_backoff_ms", 1000),
    ("grpc.max_reconnect_backoff_ms", 500),
    ("grpc.enable_http_proxy", 0),
)
"""Channel options. Loopback needs no proxy, whatever the environment says."""
