"""A server that a model repository can be killed around a thousand times: Triton's protocol, and no model behind it.

    python -m benchmarks.crash_matrix_triton REPOSITORY MODEL

As Triton does it takes a model's folder for changed when something in it has a later time than it has seen, reads
`config.pbtxt` then, and completes what that leaves out; a load of an unchanged folder does nothing. Says "ready
HOST:PORT" on stdout, and ends when its stdin does.
"""

from __future__ import annotations

import os
import sys
import threading
from concurrent import futures
from pathlib import Path

import grpc
from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2, service_pb2, service_pb2_grpc

from benchmarks.told import explain
from latencydoctor.targets.model_versions import newest_ns

COMPLETED = 'name: "{name}" max_batch_size: 4 dynamic_batching { } instance_group { count: 1 kind: KIND_CPU }'


class OneFolder(service_pb2_grpc.GRPCInferenceServiceServicer):  # type: ignore[misc]  # tritonclient is untyped
    """Triton as far as a change of one model's folder sees it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._seen = 0
        self._config = model_config_pb2.ModelConfig()
        self._read()

    def _read(self) -> None:
        newest = max(newest_ns(self._folder), os.lstat(self._folder).st_mtime_ns)
        if newest <= self._seen:
            return
        self._seen = newest
        file = self._folder / "config.pbtxt"
        text = file.read_text(encoding="utf-8") if file.exists() else COMPLETED.replace("{name}", file.parent.name)
        config = text_format.Parse(text, model_config_pb2.ModelConfig())
        if not config.dynamic_batching.preferred_batch_size:
            config.dynamic_batching.preferred_batch_size.append(config.max_batch_size)
        self._config = config

    def ModelConfig(self, _request: object, _context: object) -> object:  # noqa: N802  # the protocol's name
        """The configuration in effect."""
        return service_pb2.ModelConfigResponse(config=self._config)

    def RepositoryModelLoad(self, _request: object, context: object) -> object:  # noqa: N802  # the protocol's name
        """Reads the folder, one call after the other."""
        with self._lock:
            try:
                self._read()
            except text_format.ParseError as error:
                context.abort(grpc.StatusCode.INTERNAL, str(error))  # type: ignore[attr-defined]  # grpc is untyped
        return service_pb2.RepositoryModelLoadResponse()


def main(folder: Path) -> None:
    """Serves until stdin ends."""
    server = grpc.server(futures.ThreadPoolExecutor(4))
    service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(OneFolder(folder), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(f"ready 127.0.0.1:{port}", flush=True)
    sys.stdin.read()
    server.stop(None)


if __name__ == "__main__":
    explain(__doc__)
    main(Path(sys.argv[1]) / sys.argv[2])
