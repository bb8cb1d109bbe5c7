"""Years, zones, boots, ages: what stamps leave out, learned from what stands beside them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from latencydoctor.evidence.logs.dating import Dating
from latencydoctor.evidence.logs.lines import LineRecord, clean, read_line

HOUR_S = 3600.0
NOW_S = 1_796_100_000.0
"""2026-12-01 04:40 UTC."""


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def read(dating: Dating, line: str) -> LineRecord:
    return read_line(clean(line.encode()), dating)


def times(dating: Dating, *lines: str) -> list[float | None]:
    return [read(dating, line).time_s for line in lines]


def test_year_is_the_latest_that_is_not_in_the_future() -> None:
    dating = Dating(at("2027-01-01T00:10:00"))
    lines = (
        "E1231 23:59:59.500000 41 a.cc:1] x",
        "E0101 00:05:00.000000 41 a.cc:1] x",
        "INFO 12-31 23:59:59 [a.py:1] x",
    )
    expected = [at("2026-12-31T23:59:59.5"), at("2027-01-01T00:05:00"), at("2026-12-31T23:59:59")]
    assert times(dating, *lines) == expected


def test_clock_may_run_a_day_ahead_even_over_the_turn_of_the_year() -> None:
    dating = Dating(at("2026-12-31T23:50:00"))
    assert times(dating, "E0101 01:00:00.000000 41 a.cc:1] x") == [at("2027-01-01T01:00:00")]


@pytest.mark.parametrize(
    "line",
    [
        '{"ts": "0001-01-01T00:00:00Z", "level": "warning", "msg": "x"}',
        'time="0001-01-01T00:00:00Z" level=warning msg="x"',
        "1970-01-01T00:00:12Z ERROR app: x",
        "1970-01-01 00:00:12,000 ERROR app: x",
        "0001-01-01T00:00:00+14:00 stderr F x",
        "9999-12-31T23:59:59-12:00 ERROR app: x",
        "999999y     Warning   Failed    pod/x   x",
    ],
)
def test_the_zero_of_a_clock_is_no_moment_and_dates_no_other_line(line: str) -> None:
    dating = Dating(NOW_S)
    triton = "E1130 09:00:01.000000 17 server.cc:1] x"
    assert times(dating, line, triton) == [None, at("2026-11-30T09:00:01")]


def test_an_absurd_length_of_time_moves_no_beginning() -> None:
    record = read(Dating(NOW_S), "18m (x5 over 999999y)     Warning   Failed    pod/x   x")
    assert record.time_s == NOW_S - 18 * 60
    assert record.began_s is None


def test_year_comes_from_the_wrapper_whatever_the_file_s_time() -> None:
    dating = Dating(NOW_S)
    lines = (
        "2021-12-31T23:59:59.900000001Z stderr F E1231 23:59:59.800000 41 a.cc:1] x",
        "2022-01-01T00:00:00.100000001Z stderr F E1231 23:59:59.900000 41 a.cc:1] x",
        "2022-01-01T00:00:00.300000001Z stderr F E0101 00:00:00.200000 41 a.cc:1] x",
    )
    expected = [at("2021-12-31T23:59:59.8"), at("2021-12-31T23:59:59.9"), at("2022-01-01T00:00:00.2")]
    assert times(dating, *lines) == pytest.approx(expected)


def test_year_comes_from_a_stamp_nearby() -> None:
    dating = Dating(NOW_S)
    lines = ("2021-06-30T07:20:26.123456Z  INFO text_generation_launcher: x", "E0630 07:20:27.000000 41 a.cc:1] x")
    assert times(dating, *lines)[1] == at("2021-06-30T07:20:27")


def test_leap_day_finds_its_year() -> None:
    dating = Dating(at("2026-06-01T00:00:00"))
    assert times(dating, "I0229 00:00:00.000000 41 a.cc:1] x") == [at("2024-02-29T00:00:00")]


def test_month_after_the_right_one_is_recognised() -> None:
    dating = Dating(at("2026-12-31T12:00:00"))
    lines = (
        "E1330 07:20:26.000000 41 a.cc:1] x",
        "E1229 07:20:26.000000 41 a.cc:1] x",
        "E0115 07:20:26.000000 41 a.cc:1] x",
    )
    expected = [at("2026-12-30T07:20:26"), at("2026-11-29T07:20:26"), at("2026-01-15T07:20:26")]
    assert times(dating, *lines) == expected
    # A first month can only be printed by a build that is right.
    assert times(dating, "E1130 07:20:26.000000 41 a.cc:1] x") == [at("2026-11-30T07:20:26")]


def test_month_after_the_right_one_shows_beside_a_wrapper() -> None:
    dating = Dating(NOW_S)
    wrapped = "2026-10-30T07:20:26.250000001Z E1130 07:20:26.123456 41 a.cc:1] x"
    assert times(dating, wrapped) == [pytest.approx(at("2026-10-30T07:20:26.123456"), abs=1e-5)]
    assert times(dating, "2026-10-30T07:20:26.250000001Z E1030 07:20:26.123456 41 a.cc:1] x") == [
        pytest.approx(at("2026-10-30T07:20:26.123456"), abs=1e-5)
    ]


@pytest.mark.parametrize("line", ["E0045 07:20:26.000000 41 a.cc:1] x", "E1130 25:20:26.000000 41 a.cc:1] x"])
def test_what_is_no_time_is_none(line: str) -> None:
    record = read(Dating(NOW_S), line)
    assert (record.time_s, record.level, record.text) == (None, "ERROR", "x")


@pytest.mark.parametrize(
    ("zone_h", "clock"), [(-7, "00:55:21"), (5.5, "13:25:21"), (5.75, "13:40:21"), (0, "07:55:21"), (-9.5, "22:25:21")]
)
def test_zone_of_a_local_clock_is_learned_beside_a_wrapper(zone_h: float, clock: str) -> None:
    dating = Dating(NOW_S)
    day = "04-05" if zone_h == -9.5 else "04-06"
    (moment,) = times(dating, f"2025-04-06T07:55:21.108632509Z INFO {day} {clock} [a.py:1] x")
    assert moment == pytest.approx(at("2025-04-06T07:55:21.108632"), abs=1e-5)
    assert dating.offset_s("vllm") == zone_h * HOUR_S


def test_learned_zone_holds_for_lines_without_a_wrapper_and_for_late_ones() -> None:
    dating = Dating(NOW_S)
    lines = (
        "2026-11-30T07:55:21.108632509Z INFO 11-30 00:55:21 [a.py:1] x",
        "INFO 11-30 00:56:00 [a.py:1] x",
        "2026-11-30T08:10:00.108632509Z INFO 11-30 00:57:00 [a.py:1] x",
    )
    assert times(dating, *lines)[1:] == [at("2026-11-30T07:56:00"), at("2026-11-30T07:57:00")]


def test_zone_follows_a_change_of_summer_time() -> None:
    dating = Dating(at("2026-11-02T00:00:00"))
    lines = (
        "2026-11-01T08:59:59.100000001Z INFO 11-01 01:59:59 [a.py:1] x",
        "2026-11-01T09:00:01.100000001Z INFO 11-01 01:00:01 [a.py:1] x",
    )
    assert times(dating, *lines) == pytest.approx([at("2026-11-01T08:59:59.1"), at("2026-11-01T09:00:01.1")])


def test_delay_is_no_zone() -> None:
    dating = Dating(NOW_S)
    line = "2026-11-30T07:35:26.250000001Z INFO 11-30 07:20:26 [a.py:1] x"
    assert times(dating, line) == [at("2026-11-30T07:20:26")]
    assert dating.offset_s("vllm") is None


def test_utc_programs_need_no_zone_and_keep_their_own_time() -> None:
    dating = Dating(NOW_S, timezone(timedelta(hours=-7)))
    lines = (
        "E1130 07:20:26.123456 41 a.cc:1] x",
        "2026-11-30T07:20:26Z E 41 a.cc:1] x",
        "INFO 11-30 00:20:26 [a.py:1] x",
    )
    expected = [at("2026-11-30T07:20:26.123456"), at("2026-11-30T07:20:26"), at("2026-11-30T07:20:26")]
    assert times(dating, *lines) == pytest.approx(expected)


def test_configured_zone_knows_summer_time() -> None:
    dating = Dating(at("2026-08-01T00:00:00"), ZoneInfo("Europe/Berlin"))
    lines = ("INFO 07-30 09:20:26 [a.py:1] x", "INFO 01-30 08:20:26 [a.py:1] x", "Jan 30 08:20:26 host app[1]: x")
    expected = [at("2026-07-30T07:20:26"), at("2026-01-30T07:20:26"), at("2026-01-30T07:20:26")]
    assert times(dating, *lines) == expected


def test_many_hours_do_not_fill_the_memory() -> None:
    dating = Dating(NOW_S, ZoneInfo("Europe/Berlin"))
    for day in range(700):
        moment = datetime.fromtimestamp(1.6e9 + day * 86_400, UTC)
        read(dating, f"[{moment:%Y-%m-%d %H:%M:%S}] x")
        read(dating, f"2026-11-30T07:20:26Z E 1 a.cc:1] x {day}")
    assert len(dating._zone_offsets) <= 513


def test_zone_of_a_journal_is_learned_from_a_stamp_inside() -> None:
    dating = Dating(NOW_S)
    lines = (
        "Nov 30 08:20:26 host triton[41]: E1130 07:20:26.123456 41 a.cc:1] x",
        "Nov 30 08:20:27 host kernel: [100.500000] NVRM: Xid (PCI:0000:3b:00): 79, x",
    )
    assert times(dating, *lines) == pytest.approx([at("2026-11-30T07:20:26.123456"), at("2026-11-30T07:20:27")])


def test_zone_of_a_jvm_is_learned_from_its_metrics() -> None:
    dating = Dating(NOW_S)
    metric = "QueueTime.ms:0.5|#Level:Host|#hostname:h,timestamp:1796023200"
    lines = (
        f"2026-11-30T00:20:26,123 [INFO ] W-9000-m_1.0 TS_METRICS - {metric}",
        "2026-11-30T00:20:27,500 [ERROR] W-9000-m_1.0 org.x.Y - boom",
    )
    assert times(dating, *lines) == pytest.approx([at("2026-11-30T07:20:26.123"), at("2026-11-30T07:20:27.5")])


def test_old_metric_teaches_nothing() -> None:
    dating = Dating(NOW_S)
    metric = "QueueTime.ms:0.5|#Level:Host|#hostname:h,timestamp:1796022726"
    line = f"2026-11-30T00:20:26,123 [INFO ] W-9000-m_1.0 TS_METRICS - {metric}"
    assert times(dating, line) == pytest.approx([at("2026-11-30T00:20:26.123")])


def test_moment_of_the_boot_is_learned_from_an_absolute_stamp_beside() -> None:
    dating = Dating(NOW_S)
    assert times(dating, "[100.500000] x") == [None]
    lines = ("2026-11-30T07:20:26.500+00:00 host kernel: [100.500000] x", "[160.500000] x")
    assert times(dating, *lines) == pytest.approx([at("2026-11-30T07:20:26.5"), at("2026-11-30T07:21:26.5")])


def test_ages_count_from_the_file_s_time() -> None:
    dating = Dating(NOW_S)
    record = read(dating, "  Warning  BackOff    2m30s (x3 over 18m)  kubelet, n-1  Back-off restarting")
    assert (record.time_s, record.began_s, record.count) == (NOW_S - 150, NOW_S - 1080, 3)
    record = read(dating, "2026-11-30T07:20:26.500000001Z 30s (x2 over 1m)   Warning   BackOff   pod/x-1   y")
    assert (record.time_s, record.began_s) == (at("2026-11-30T07:19:56.5"), at("2026-11-30T07:19:26.5"))
    record = read(dating, "<unknown>   Normal   Scheduled   pod/x-1   assigned")
    assert (record.time_s, record.level, record.source) == (None, "INFO", "x-1")


def test_clock_may_step_back() -> None:
    dating = Dating(NOW_S)
    lines = (
        "2026-11-30T07:20:26Z E 1 a.cc:1] x",
        "2026-11-30T07:10:26Z E 1 a.cc:1] x",
        "E1130 07:00:00.000000 1 a.cc:1] x",
    )
    assert times(dating, *lines) == [at(f"2026-11-30T07:{clock}") for clock in ("20:26", "10:26", "00:00")]


@pytest.mark.parametrize("year", ["0001", "9999"])
@pytest.mark.parametrize("zone", ["Z", "+99:59", "-99:59"])
def test_ends_of_time_are_survived(year: str, zone: str) -> None:
    dating = Dating(NOW_S, ZoneInfo("Europe/Berlin"))
    for line in (f"{year}-01-01T00:00:00.123456789{zone} INFO 01-01 00:00:00 [a.py:1] x", f"[{year}-12-31 23:59:59] x"):
        assert read(dating, line).text == "x"


def test_reference_may_be_anything() -> None:
    for reference_s in (0.0, -1e12, 1e12, float("inf")):
        assert read(Dating(reference_s), "E1130 07:20:26.123456 41 a.cc:1] x").level == "ERROR"
