"""A patient of real files and no server: the settings file is real, and so are its lock and the code that writes it.

In place of controller and Triton stands one file, `effective.yaml`: asking the controller for its state makes it load
the settings, as the real one would have done meanwhile.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

from latencydoctor.errors import ContentError
from latencydoctor.model.remedy import TargetObject, TargetState
from latencydoctor.remedy.settings_text import SETTINGS_OBJECT, generation_of, settings_digest
from latencydoctor.targets.bundled import BundledTarget
from latencydoctor.targets.controller_page import ControllerState
from latencydoctor.targets.executor import BundledChanger
from latencydoctor.targets.kept_generations import read_kept
from latencydoctor.targets.settings_file import flatten
from latencydoctor.targets.state_folder import SETTINGS

BROKEN = """\
# What the shop runs on; the night shift changes this file by hand.
generation: 7
inference:
  model: faq-encoder
  batching:
    enabled: true
    preferred_batch_size: 0   # none preferred
    max_batch_size: 8
    timeout_micros: 0
accelerator: sim:small
"""

EFFECTIVE = "effective.yaml"
SERVED = ("enabled", "preferred_batch_size", "max_batch_size", "timeout_micros")


class FakePatient(BundledTarget):
    """A `Target`, and the controller that its changer listens to.

    `refuses` makes the controller refuse a settings text; `stuck` keeps it from noticing any.
    """

    def __init__(self, state: Path, settings: str = BROKEN) -> None:
        state.mkdir(mode=0o700, exist_ok=True)
        super().__init__(state)
        self.refuses: Callable[[str], bool] = lambda _: False
        self.stuck = False
        if not (state / SETTINGS).exists():
            told = {"triton_grpc": "", "controller_metrics": "", "admin_socket": ""}
            (state / "endpoints.json").write_text(json.dumps(told))
            (state / SETTINGS).write_text(settings)
            (state / EFFECTIVE).write_text(settings)

    def controller(self, url: str) -> ControllerState:
        """The controller's word; it loads what it finds, if it takes it."""
        running, wanted = self.folder.read(EFFECTIVE), self.settings_text()
        if not self.stuck and running != wanted and not self.refuses(wanted):
            self.folder.replace(EFFECTIVE, wanted)
            running = wanted
        return ControllerState(generation_of(running), generation_of(wanted), running != wanted and not self.stuck)

    def changer(self, timeout_s: float = 0.3) -> BundledChanger:
        """The real executor on this patient."""
        return BundledChanger(self, timeout_s, 0.15, self.controller, lambda _: "")

    def read(self) -> TargetState:
        """As the real target, the server's part from `effective.yaml`."""
        text, running = self.settings_text(), self.folder.read(EFFECTIVE)
        asked, runs = self.preview(text), self.preview(running)
        return TargetState(
            target=self.name,
            objects=(
                TargetObject(SETTINGS_OBJECT, generation_of(text), settings_digest(text)),
                TargetObject("triton model faq-encoder", generation_of(text), _sha256(runs)),
            ),
            settings=flatten(text, SETTINGS),
            settings_text=text,
            effective=tuple(
                (key, value) for key, value in flatten(running, EFFECTIVE) if key.rpartition(".")[2] in SERVED
            ),
            compiled=asked,
            not_in_effect=() if asked == runs else ("the server runs other settings",),
            kept=read_kept(self.folder),
        )

    def preview(self, settings_text: str) -> str:
        """A compiled text of the same kind; sizes above 128 are refused, as the stack does."""
        values = dict(flatten(settings_text, SETTINGS))
        served = [f"{name}: {values.get(f'inference.batching.{name}', '')}" for name in SERVED]
        if int(values.get("inference.batching.max_batch_size", "1")) > 128:
            raise ContentError("the stack refuses these settings: max_batch_size")
        return "\n".join(served) + "\n"


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
