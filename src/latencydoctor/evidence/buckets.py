"""Which buckets a percentile was read from: the query for their bounds, made of the percentile's own expression."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from latencydoctor.model.evidence import Fact, Series, Window
from latencydoctor.model.readings import RangeQuery

P99 = "e2e_p99_ms"
LABEL = "le"
BOUND = "e2e_bound"

_QUANTILE = re.compile(r"(?:(?P<factor>\d+) \* )?histogram_quantile\(0\.99, (?P<buckets>sum by \(le\) \(.*)", re.DOTALL)
_ON_CONDITION = " and on () "
"""What may follow: it decides whether there is a p99, and changes nothing of it."""

_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')


def bounds_query(found: Sequence[Series], at_s: float, window_s: float) -> RangeQuery | None:
    """What to ask for the bounds of the histogram behind p99; None where p99 is not read from one as it stands."""
    p99 = next((series for series in found if series.signal == P99), None)
    match = _QUANTILE.match(p99.proof.query) if p99 is not None else None
    buckets = _first_sum(match["buckets"]) if match is not None else ""
    if match is None or not buckets:
        return None
    # A dialect's factor makes ms of the histogram's own unit.
    unit = "s" if match["factor"] == "1000" else "ms"
    return RangeQuery(BOUND, unit, buckets, Window(at_s, at_s), window_s, by=LABEL)


def bounds_in_ms(facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """The bounds as every stage calls them, `e2e_bound_<n>_ms`, smallest first."""
    own = sorted((fact for fact in facts if fact.signal == BOUND), key=lambda fact: fact.value)
    return tuple(
        replace(
            fact,
            signal=f"{BOUND}_{number}_ms",
            unit="ms",
            value=round(fact.value * (1000 if fact.unit == "s" else 1), 6),
        )
        for number, fact in enumerate(own, start=1)
    )


def _first_sum(text: str) -> str:
    """The sum that the text begins with, "" where more than the quantile's end or a condition comes behind it."""
    depth = 0
    # Parentheses in quotes are text; blanks in their place keep every other letter where it is.
    bare = _QUOTED.sub(lambda quoted: " " * len(quoted[0]), text)
    for place in range(len("sum by (le) "), len(bare)):
        depth += (bare[place] == "(") - (bare[place] == ")")
        if depth == 0:
            rest = text[place + 1 :]
            return text[: place + 1] if rest == ")" or rest.startswith(f"){_ON_CONDITION}") else ""
    return ""
