"""What the controller knows, shared between its loop and its metrics page."""

from __future__ import annotations

import json
import threading
from dataclasses import asdict, dataclass, replace

METRICS = (
    ("stack_settings_generation", "Generation of the settings in effect", "generation"),
    ("stack_settings_seen_generation", "Generation of the newest settings that could be read", "seen_generation"),
    ("stack_settings_reload_seconds", "Time the last load of the model took", "reload_s"),
    ("stack_settings_reloads_total", "Loads the controller asked Triton for", "reloads"),
)


@dataclass(frozen=True, slots=True)
class Progress:
    """Which settings are in effect and what is wrong with the newest ones ("" when nothing is)."""

    generation: int = 0
    seen_generation: int = 0
    error: str = ""
    reload_s: float = 0.0
    reloads: int = 0


class SharedProgress:
    """The current `Progress`; the loop replaces it, the metrics page reads it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._current = Progress()

    @property
    def current(self) -> Progress:
        with self._lock:
            return self._current

    def update(self, **changes: str | float) -> None:
        """Replaces fields of the progress."""
        with self._lock:
            self._current = replace(self._current, **changes)  # type: ignore[arg-type] # names are checked by replace


def metrics_page(progress: Progress) -> str:
    """The progress in Prometheus's text format."""
    lines = []
    for name, text, attribute in METRICS:
        kind = "counter" if name.endswith("_total") else "gauge"
        lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}", f"{name} {getattr(progress, attribute)}"]
    name = "stack_settings_last_error"
    lines += [f"# HELP {name} 1 while the newest settings could not be brought into effect", f"# TYPE {name} gauge"]
    lines += [f"{name} {int(bool(progress.error))}", ""]
    return "\n".join(lines)


def state_page(progress: Progress) -> str:
    """The progress as JSON, for `stack status`."""
    return json.dumps(asdict(progress))


def parse_state(text: str) -> Progress:
    """Reads what `state_page` wrote; ValueError for anything else."""
    found = json.loads(text)
    try:
        return Progress(
            generation=int(found["generation"]),
            seen_generation=int(found["seen_generation"]),
            error=str(found["error"]),
            reload_s=float(found["reload_s"]),
            reloads=int(found["reloads"]),
        )
    except (KeyError, TypeError) as error:
        raise ValueError("no state of a controller") from error
