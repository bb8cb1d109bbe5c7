"""Whether a target is as a run has left it: by the digests of what was read back, and once more by looking again."""

from __future__ import annotations

from collections.abc import Mapping

from latencydoctor.app.ports import Target
from latencydoctor.errors import LatencyDoctorError
from latencydoctor.model.remedy import TargetObject, TargetState


def absent(target: Target, digest: str) -> str:
    """Why the settings of this digest are not in effect now, in words; a person, or a restart, may have undone them."""
    try:
        state = target.read()
    except LatencyDoctorError as error:
        return error.message
    if state.digest != digest:
        return "the settings were changed by someone else"
    return "; ".join(state.not_in_effect)


def differing(state: TargetState, expected: tuple[TargetObject, ...], digest: str) -> str:
    """Which digests are not those expected, in words; empty when all are."""
    found: Mapping[str, str] = {item.name: item.digest for item in state.objects}
    wrong = [item.name for item in expected if found.get(item.name) != item.digest]
    if state.digest != digest and state.settings_object not in wrong:
        wrong.append(state.settings_object)
    return f"the digest of {' and of '.join(wrong)} is another" if wrong else ""
