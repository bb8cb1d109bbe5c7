"""The drill's patient where it does not come up."""

from __future__ import annotations

from pathlib import Path

import pytest

from latencydoctor.app.scenarios import find
from latencydoctor.cli.patient import BundledPatient
from latencydoctor.errors import KnownError
from latencydoctor.stack import host


def test_a_patient_that_never_came_up_has_nothing_to_be_taken_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else its complaint would be shown in place of the reason."""

    def unsupported(_host: host.Host) -> None:
        raise KnownError("the bundled stack does not run on Plan 9")

    monkeypatch.setattr(host, "refuse_unsupported", unsupported)
    patient = BundledPatient(tmp_path)
    with pytest.raises(KnownError, match="Plan 9"):
        patient.up(find("batching"), lambda _: None)
    patient.down()
