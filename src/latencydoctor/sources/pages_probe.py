"""One look at a metrics page, for `config check`."""

from __future__ import annotations

from collections.abc import Sequence

from latencydoctor.errors import CannotTell, SourceError
from latencydoctor.evidence.promql import PageError, Recording
from latencydoctor.evidence.queries import Present, detected
from latencydoctor.model.configuration import MetricsPage
from latencydoctor.model.rule import Dialect
from latencydoctor.sources.failing import next_step, said
from latencydoctor.sources.pages_http import PageReader, failure_of, places_of, server_of
from latencydoctor.sources.side_by_side import run_side_by_side
from latencydoctor.sources.transport import Deadline, FailureKind, TransportError


def probe_page(page: MetricsPage, dialects: Sequence[Dialect], within_s: float) -> str:
    """What a page holds, in words; `SourceError` when its address is wrong, `CannotTell` when it does not answer."""
    (place,) = places_of([page])
    within = Deadline.after(within_s)
    late: str | TransportError | PageError = TransportError(FailureKind.DEADLINE, f"no page within {within_s:g} s")
    # In a thread: a head that drips in byte by byte never runs into the client's own time-out.
    (answer,) = run_side_by_side(lambda reader: reader.read(within), [PageReader(place, 1)], within, late)
    if isinstance(answer, TransportError):
        if (wrong := failure_of(place, answer)) is not None:
            raise wrong from answer
        server = server_of(place)
        raise CannotTell(said(server, answer), hint=next_step(server, answer)) from answer
    recording = Recording(wanted=())
    try:
        if isinstance(answer, PageError):
            raise answer
        count = recording.add_page(0.0, place.instance, answer)
    except PageError as error:
        hint = "Check the URL: it must be a metrics page in Prometheus's text format."
        raise SourceError(f"the page of {place.instance} cannot be used: {error}", hint=hint) from error
    spoken = detected(Present(recording.names, recording.names), dialects)
    return f"{count.samples} samples; dialects: {', '.join(spoken) or 'none known'}"
