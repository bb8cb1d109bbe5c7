"""Any Triton as a target: one model of its repository, its `config.pbtxt`, and what the server says it runs.

Reads only. Implements the port `Target`: the settings are the file itself, and a key is a field of it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from latencydoctor.errors import ContentError, KnownError, Refused
from latencydoctor.model.configuration import TritonTarget
from latencydoctor.model.effects import Effects, unwatched
from latencydoctor.model.remedy import TargetObject, TargetState
from latencydoctor.remedy.settings_text import settings_digest
from latencydoctor.targets import triton_message as message
from latencydoctor.targets.folder import GuardedFolder, Names
from latencydoctor.targets.model_versions import versions
from latencydoctor.targets.triton_server import TritonServer

CONFIG = "config.pbtxt"

ABSENT = "# There is no config.pbtxt: the server completes the configuration by itself.\n"
"""Stands for a file that is not there, so that a plan's diff shows it and a rollback removes the file again."""

_SECRET = re.compile(
    r"(?i)(passw(or)?d|secret|api[_-]?key|credentials?|(?<!eos_)(?<!bos_)(?<!pad_)(?<!unk_)(?<!sep_)(?<!cls_)token)$"
)
"""What a parameter is called whose value nobody should keep; not the `eos_token` of a tokenizer."""


LARGER = "The model itself must take batches of that size: where it does not, the load fails and is undone."
LEVELLED = (
    "Requests must ask for the first level themselves (their parameter priority, 1): those that name none are on "
    "level 2. What is turned away gets Triton's own UNAVAILABLE: no front end is known here that would translate it."
)
COSTS = ((message.MAXIMUM, LARGER), (message.LEVELS, LEVELLED))
"""What setting a key brings with it on a server of which nothing else is known."""


class TritonRepository:
    """One model of the repository that a Triton serves."""

    def __init__(self, place: TritonTarget, effects: Effects = unwatched) -> None:
        self.model = place.model
        self.wait_s = place.wait_s
        self.file = f"{place.model}/{CONFIG}"
        self.server = TritonServer(place.grpc, effects)
        names = Names(
            self.file,
            # Not in the model's folder: there Triton takes every file for a part of the model, and loads it anew.
            f".{place.model}.latencydoctor.lock",
            "model repository",
            "Name the folder that Triton was started with (--model-repository), as this machine sees it.",
            mode=0o644,
        )
        self.folder = GuardedFolder(Path(place.repository), names, effects)

    @property
    def name(self) -> str:
        """The target's identity, as --target takes it."""
        return f"triton:{self.folder.path}@{self.server.address}/{self.model}"

    @property
    def model_folder(self) -> Path:
        """Where the model lies."""
        return self.folder.path / self.model

    def settings_text(self) -> str:
        """The configuration file as it is; ABSENT where there is none."""
        text = self.folder.find(self.file)
        if text == ABSENT:
            raise KnownError(f"{self.folder.path / self.file} says that it is not there", hint="Remove it.")
        return ABSENT if text is None else text

    def read(self) -> TargetState:
        """File, digests and the configuration in effect; KnownError when the server does not answer."""
        text = self.settings_text()
        asked = message.parsed(text, self.file)
        _refuse_secret(asked.parameters, self.file)
        live = self.server.config(self.model)
        settable, limits = message.reach(live, self.model)
        digest = hashlib.sha256(live.SerializeToString(deterministic=True)).hexdigest()
        return TargetState(
            target=self.name,
            objects=(
                TargetObject(self.file, 0, settings_digest(text)),
                TargetObject(f"triton model {self.model}", 0, digest),
                *(TargetObject(f"{self.model}/{one}", 0, found) for one, found in versions(self.model_folder)),
            ),
            settings=message.stated(asked),
            settings_text=text,
            effective=message.in_effect(live),
            compiled=message.printed(live if text == ABSENT else asked),
            not_in_effect=message.differences(asked, live),
            settable=settable,
            limits=limits,
            costs=COSTS,
        )

    def edited(self, settings_text: str, values: Sequence[tuple[str, str]]) -> str:
        """The file with these keys' fields set, every other byte as it was; made from the live configuration where
        there is no file."""
        live = self.server.config(self.model)
        text = message.printed(live) if settings_text == ABSENT else settings_text
        return message.edited(text, values, live, self.file)

    def preview(self, settings_text: str) -> str:
        """The configuration as Triton's own message prints it; ContentError for one that Triton would refuse."""
        if settings_text == ABSENT:
            return message.printed(self.server.config(self.model))
        config = message.parsed(settings_text, self.file)
        # Also those that the server made up where there was no file: once it is written nothing could be read.
        _refuse_secret(config.parameters, self.file)
        largest = max(config.dynamic_batching.preferred_batch_size, default=0)
        if config.max_batch_size and largest > config.max_batch_size:
            raise ContentError(
                f"Triton refuses a preferred batch of {largest} where the maximum is {config.max_batch_size}",
                hint="Choose a preferred size within the maximum.",
            )
        return message.printed(config)


def _refuse_secret(parameters: Iterable[str], name: str) -> None:
    """Refused when a parameter's name says that its value is a secret: plan and journal would keep it."""
    for key in parameters:
        if _SECRET.search(key):
            raise Refused(
                f"{name} has a parameter {key!r} that looks like a secret, and a plan and its journal would keep it",
                hint="Name a file or an environment variable there instead of the secret, then plan again.",
            )
