"""Many operators who apply one plan in the same moment, each a process of its own.

    python -m tests.fakes.operator STATE PLAN COUNT

Prints a JSON list: for each "kept", or why it was refused.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from latencydoctor.app import treat
from latencydoctor.app.treat import Tools
from latencydoctor.errors import Refused
from latencydoctor.journal import JournalFolder
from latencydoctor.remedy.plan_file import plan_from_json
from tests.fakes.clock import FakeClock
from tests.fakes.patient import FakePatient
from tests.fakes.verifier import GOOD, FakeVerifier


def operate(state: Path, plan_file: Path, start_s: float) -> str:
    """One operator's attempt at the agreed moment."""
    patient = FakePatient(state)
    history = JournalFolder(state / "journal", time.time)
    tools = Tools(patient, patient.changer(5.0), history, FakeVerifier(GOOD), FakeClock(), lambda _: None)
    plan = plan_from_json(plan_file.read_text())
    time.sleep(max(0.0, start_s - time.time()))
    try:
        return treat.apply(plan, tools).state.value
    except Refused as refused:
        return refused.message.removeprefix(f"{state / 'settings.yaml'} is ")


def main(state: Path, plan_file: Path, count: int) -> list[str]:
    """All operators side by side."""
    start_s = time.time() + 0.3
    readers = []
    for _ in range(count):
        reader, writer = os.pipe()
        if os.fork() == 0:
            os.write(writer, operate(state, plan_file, start_s).encode())
            os._exit(0)
        os.close(writer)
        readers.append(reader)
    words = [os.read(reader, 4096).decode() for reader in readers]
    for _ in range(count):
        os.wait()
    return words


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))))
