from latencydoctor.stack.gateway.metrics import Registry


def lines(registry: Registry) -> list[str]:
    return registry.page().decode().splitlines()


def test_a_histogram_counts_cumulatively_and_the_bound_belongs_to_its_bucket() -> None:
    registry = Registry()
    series = registry.histogram("d_seconds", "Durations.", (0.1, 1), arm="stable")
    for seconds in (0.1, 0.11, 7.0):
        series.observe(seconds)
    assert lines(registry) == [
        "# HELP d_seconds Durations.",
        "# TYPE d_seconds histogram",
        'd_seconds_bucket{arm="stable",le="0.1"} 1',
        'd_seconds_bucket{arm="stable",le="1"} 2',
        'd_seconds_bucket{arm="stable",le="+Inf"} 3',
        'd_seconds_sum{arm="stable"} 7.21',
        'd_seconds_count{arm="stable"} 3',
    ]


def test_series_of_one_name_share_their_head_and_labels_are_escaped() -> None:
    registry = Registry()
    registry.counter("c_total", "Counts.", kind='a"b\\c\nd').add(2)
    registry.counter("c_total", "Counts.", kind="e")
    assert lines(registry) == [
        "# HELP c_total Counts.",
        "# TYPE c_total counter",
        r'c_total{kind="a\"b\\c\nd"} 2',
        'c_total{kind="e"} 0',
    ]


def test_a_gauge_is_read_when_the_page_is() -> None:
    registry, values = Registry(), [1.5]
    registry.gauge("g", "Gauge.", lambda: values[0])
    values[0] = 2.0
    assert lines(registry)[-1] == "g 2"


def test_series_without_labels_have_no_braces() -> None:
    registry = Registry()
    registry.counter("c_total", "Counts.")
    registry.histogram("h", "Times.", (1,)).observe(0.5)
    assert "c_total 0" in lines(registry)
    assert "h_sum 0.5" in lines(registry)
    assert 'h_bucket{le="1"} 1' in lines(registry)
