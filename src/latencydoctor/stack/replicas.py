"""Which of the stack's Tritons take traffic, and which are scraped: two small files that others follow.

The controller writes them, replicas counting from 1. The gateway shares its questions among those that serve, and
Prometheus scrapes the targets; both look again while they run.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from latencydoctor.stack.endpoints import Endpoints
from latencydoctor.stack.files import write_atomically
from latencydoctor.stack.layout import Layout

FIRST_ALONE = (1,)
"""Who serves where no file says so: a gateway that was started by itself."""


def save_serving(path: Path, replicas: Sequence[int]) -> None:
    """Says that these take traffic and no others. OSError passes."""
    write_atomically(path, json.dumps({"serving": list(replicas)}) + "\n")


def load_serving(path: Path) -> tuple[int, ...]:
    """The replicas that take traffic; the first alone when there is no file, or one that says nothing sensible."""
    try:
        return serving_in(path.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return FIRST_ALONE


def serving_in(text: str) -> tuple[int, ...]:
    """The same from the text of the file."""
    try:
        found = json.loads(text)["serving"]
    except (ValueError, KeyError, TypeError):
        return FIRST_ALONE
    if not isinstance(found, list) or not all(type(one) is int and one > 0 for one in found):
        return FIRST_ALONE
    return tuple(sorted(set(found))) or FIRST_ALONE


def save_targets(path: Path, endpoints: Endpoints, replicas: Sequence[int]) -> None:
    """Says to Prometheus that the metrics pages of these are to be scraped. OSError passes."""
    pages = [endpoints.tritons[replica - 1].metrics for replica in replicas]
    write_atomically(path, json.dumps([{"targets": [authority(page) for page in pages]}]) + "\n")


def start_with(layout: Layout, endpoints: Endpoints, replicas: int) -> None:
    """What `up` begins with: the first so many of the Tritons. OSError passes."""
    numbers = range(1, replicas + 1)
    save_serving(layout.serving, numbers)
    save_targets(layout.triton_targets, endpoints, numbers)


def authority(url: str) -> str:
    """`host:port` of a URL."""
    return url.split("://", 1)[-1].split("/", 1)[0]
