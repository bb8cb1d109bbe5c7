"""The collected series side by side, one row a moment: for spreadsheets, notebooks and whoever draws the graph."""

from __future__ import annotations

from datetime import UTC, datetime

import pandas as pd

from latencydoctor.model.evidence import Collected


def to_csv(collected: Collected) -> str:
    """CSV text: `time` (RFC 3339, UTC), then one column a signal, its unit in the name; absent points are empty."""
    columns = {
        f"{series.signal} [{series.unit or '1'}]": pd.Series(series.values, index=pd.Index(series.times_s), dtype=float)
        for series in sorted(collected.series, key=lambda one: one.signal)
    }
    frame = pd.DataFrame(columns).sort_index()
    frame.insert(0, "time", [_instant(time_s) for time_s in frame.index])
    return frame.to_csv(index=False, float_format="%.9g", lineterminator="\n")


def _instant(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
