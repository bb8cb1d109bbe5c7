"""The other causes of a diagnosis in Markdown: what else holds, what was ruled out, what is not known."""

from __future__ import annotations

from collections.abc import Iterable

from latencydoctor.model.diagnosis import Answer, Candidate, Diagnosis, Suspect
from latencydoctor.report.foreign import markdown
from latencydoctor.report.markdown_table import table
from latencydoctor.report.wording import compared, held_back, name


def suspects(result: Diagnosis) -> list[str]:
    """One section for each kind there is."""
    lines: list[str] = []
    if result.tree is not None and result.tree.agrees is Answer.NO:
        lines += [f"The tree and the cause rules disagree: {result.tree.note}.", ""]
    if result.candidates:
        near = ((f"{one.title} (`{one.id}`)", _speaking(one), held_back(one)) for one in result.candidates)
        title = "## Nearest causes" if result.cause is None else "## What it may be instead"
        lines += [title, "", *table(("cause", "speaks for it", "kept back by"), near)]
    if result.contributing:
        lines += ["## What else holds", "", *table(("cause", "standing", "numbers"), _rows(result.contributing))]
    if result.doubts:
        lines += ["## Doubts about the data", "", *table(("doubt", "standing", "numbers"), _rows(result.doubts))]
    if result.causes_ruled_out:
        rows = ((title, numbers) for title, _, numbers in _rows(result.causes_ruled_out))
        lines += ["## Causes ruled out", "", *table(("cause", "by"), rows)]
    if result.not_evaluable:
        told = ((f"`{one.id}`", ", ".join(name(gap.signal) for gap in one.needs)) for one in result.not_evaluable)
        lines += ["## Causes that could not be looked at", "", *table(("cause", "needs"), told)]
    if result.deciding is not None:
        needs = f": {markdown(result.deciding.needs)}" if result.deciding.needs else ""
        lines += [f"**{name(result.deciding.signal)}** would decide most{needs}.", ""]
    return lines


def _speaking(one: Candidate) -> str:
    return "; ".join(f"{name(found.signal)} {compared(found)}" for found in one.speaking)


def _rows(causes: Iterable[Suspect]) -> Iterable[tuple[str, str, str]]:
    for one in causes:
        numbers = "; ".join(f"{name(found.signal)} {compared(found)}" for found in one.findings)
        yield f"{one.title} (`{one.id}`)", one.standing, numbers
