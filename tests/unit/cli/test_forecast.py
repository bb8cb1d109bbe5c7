"""`latencydoctor forecast` on the command line: its questions, its refusals, and its forms."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from latencydoctor.cli.main import app
from latencydoctor.errors import CannotTell, LatencyDoctorError, UsageError
from latencydoctor.model.evidence import Collected, Fact, Proof, Selection, Series
from latencydoctor.sources.bundle import write

GOOD = (
    "--set=inference.batching.max_batch_size=32",
    "--set=inference.batching.preferred_batch_size=16",
    "--set=inference.batching.timeout_micros=100000",
)
TYPED = ("--service-time", "20ms+1ms", *GOOD)


def forecast(*arguments: str) -> Result:
    found = CliRunner().invoke(app, ["forecast", *arguments])
    assert found.exception is None or isinstance(found.exception, LatencyDoctorError | SystemExit), found.exception
    return found


def test_typed_times_need_no_source() -> None:
    found = forecast(*TYPED, "--rate", "310", "--rate", "700")
    assert found.exit_code == 0
    assert "310 /s" in found.stdout
    assert "arrivals exceed what can be served: 700 requests/s and 615" in found.stdout
    assert "an execution takes as given" in found.stdout


def test_replicas_for_sessions() -> None:
    found = forecast(
        *TYPED, "--sessions=120000", "--requests-per-session-per-minute=0.5", "--times=5", "--slo=1s", "--format=json"
    )
    assert found.exit_code == 0
    sizing = json.loads(found.stdout)["sizing"][0]
    assert (sizing["rate_rps"], sizing["slo_ms"], sizing["replicas"]) == (5000.0, 1000.0, 10)
    assert sizing["estimate"]["load_ratio"] == pytest.approx(0.8125)
    assert sizing["estimate"]["p99_ms"]["high"] < 1000


def test_the_report_goes_to_a_file(tmp_path: Path) -> None:
    place = tmp_path / "forecast.txt"
    assert forecast(*TYPED, "--rate=310", "--vip-share=0.2", "-o", str(place)).exit_code == 0
    assert "p99 of VIP" in place.read_text(encoding="utf-8")


def bundle(path: Path, *, facts: bool) -> Path:
    """A healthy Triton at 250/s whose executions are known by size."""
    proof = Proof("triton", "ModelStatistics(m)")
    times = tuple(1000.0 + 20 * number for number in range(16))
    values = {"request_rate_rps": 250.0, "e2e_p99_ms": 93.0}
    told = {
        "config_dynamic_batching": 1.0,
        "config_preferred_batch_size": 0.0,
        "config_max_batch_size": 8.0,
        "config_queue_delay_ms": 0.0,
        "config_instance_count": 1.0,
        **{f"batch_{size}_executions": 40.0 for size in (2, 4, 8)},
        **{f"batch_{size}_time_ms": 20.0 + size for size in (2, 4, 8)},
    }
    write(
        path,
        Collected(
            now_s=times[-1],
            window_s=20.0,
            scrape_interval_s=5.0,
            selection=Selection("m"),
            dialects=("triton",),
            series=tuple(Series(name, "", times, (value,) * len(times), proof) for name, value in values.items()),
            facts=tuple(Fact(name, "", value, proof) for name, value in told.items()) if facts else (),
            log_events=(),
            queries=(),
            gaps=(),
        ),
    )
    return path


def test_a_bundle_is_forecast_from(tmp_path: Path) -> None:
    place = bundle(tmp_path / "b.json.gz", facts=True)
    found = forecast("--bundle", str(place), *GOOD, "--rate", "400", "--format", "json")
    assert found.exit_code == 0
    document = json.loads(found.stdout)
    now, after = document["rows"]
    assert now["settings"] == "as it is: at most 8, none preferred, waits 0 ms"
    assert now["estimate"]["load_ratio"] == pytest.approx(250 / 285.7, rel=0.01)
    assert after["estimate"]["rate_rps"] == 400.0
    assert not math.isnan(after["estimate"]["p99_ms"]["value"])
    assert document["measured_p99_ms"] == 93.0
    assert found.stdout == forecast("--bundle", str(place), *GOOD, "--rate", "400", "--format", "json").stdout


def test_a_bundle_with_too_little_cannot_tell(tmp_path: Path) -> None:
    found = forecast("--bundle", str(bundle(tmp_path / "b.json.gz", facts=False)))
    assert isinstance(found.exception, CannotTell)
    assert "config_max_batch_size" in str(found.exception)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--service-time", "20ms"], "not FIXED\\+EACH"),
        (["--service-time", "fast+1ms"], "not FIXED\\+EACH"),
        (["--service-time", "20+1"], "not FIXED\\+EACH"),
        ([*TYPED, "--set", "x"], "not KEY=VALUE"),
        ([*TYPED, "--set", "x=1"], "knows no setting"),
        ([*TYPED, "--sessions", "5"], "go together"),
        ([*TYPED, "--requests-per-session-per-minute", "5"], "go together"),
        ([*TYPED, "--sessions=5", "--requests-per-session-per-minute=1", "--rate=1"], "both say"),
        ([*TYPED, "--rate", "-1"], "--rate is -1"),
        ([*TYPED, "--rate", "nan"], "--rate is nan"),
        ([*TYPED, "--rate=9", "--times", "0"], "--times is 0"),
        ([*TYPED, "--rate=9", "--max-load", "1"], "--max-load is 1"),
        ([*TYPED, "--rate=9", "--vip-share", "2"], "--vip-share is 2"),
        ([*TYPED, "--rate=9", "--replicas", "0"], "--replicas is 0"),
        ([*TYPED, "--rate=9", "--slo", "soon"], "--slo is 'soon'"),
    ],
)
def test_what_cannot_be_meant_is_refused(arguments: list[str], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        raise forecast(*arguments).exception or AssertionError("accepted")


def test_a_rate_that_nobody_gave_cannot_be_told() -> None:
    found = forecast(*TYPED)
    assert isinstance(found.exception, CannotTell)
    assert "Give it with --rate" in found.exception.hint


def test_without_a_source_it_says_which_ones_help(tmp_path: Path) -> None:
    """Logs alone are enough for a diagnosis, but no forecast can be made from them."""
    file = tmp_path / "latencydoctor.yaml"
    file.write_text("sources:\n  logs: [/var/log/triton/]\n")
    refused = forecast("--rate=310", "--config", str(file)).exception
    assert isinstance(refused, CannotTell)
    for way in ("--prometheus URL", "--metrics-url URL", "--service-time 20ms+1ms"):
        assert way in refused.hint
    assert "log" not in refused.hint
