"""What the controller knows, shared between its loop and its metrics page."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

METRICS = (
    ("stack_settings_generation", "Generation of the settings in effect", "generation"),
    ("stack_settings_seen_generation", "Generation of the newest settings that could be read", "seen_generation"),
    ("stack_settings_reload_seconds", "Time the last load of the model took", "reload_s"),
    ("stack_settings_reloads_total", "Loads the controller asked Triton for", "reloads"),
    ("stack_model_restarts_total", "Loads because the model's process had died", "model_restarts"),
)


@dataclass(frozen=True, slots=True)
class Progress:
    """Which settings are in effect and what is wrong with the newest ones ("" when nothing is)."""

    generation: int = 0
    seen_generation: int = 0
    error: str = ""
    reload_s: float = 0.0
    reloads: int = 0
    model_restarts: int = 0


class SharedProgress:
    """The current `Progress`: the loop replaces it whole, the metrics page reads it from its own thread."""

    def __init__(self) -> None:
        self.current = Progress()


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
            model_restarts=int(found["model_restarts"]),
        )
    except (KeyError, TypeError) as error:
        raise ValueError("no state of a controller") from error
