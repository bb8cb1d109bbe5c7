"""A canary's windows in a Markdown report."""

from __future__ import annotations

from latencydoctor.model.canary import CanaryTrial
from latencydoctor.report.canary import TITLES, row, word
from latencydoctor.report.foreign import markdown
from latencydoctor.report.markdown_table import table
from latencydoctor.report.units import amount


def canary(trial: CanaryTrial) -> list[str]:
    """What tried the change, the judge's word, and each window beside its peers."""
    who = f"A {trial.kind.value} with {amount(trial.share_ratio, 'ratio')} of the sessions tried the change first."
    head = ["## Canary", "", who, "", f"**{word(trial)}**: {markdown(trial.reason)}", ""]
    return head + table(
        (f"{TITLES[0]} (UTC)", *TITLES[1:], "note"), ((*row(check), markdown(check.note)) for check in trial.checks)
    )
