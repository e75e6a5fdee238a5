"""The text format of metrics, read back by Prometheus' own parser."""

from prometheus_client.parser import text_string_to_metric_families

from nfd.metrics_text import Counts, Histogram, Metric, page


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (s.name, tuple(sorted(s.labels.items()))): s.value
        for family in text_string_to_metric_families(text)
        for s in family.samples
    }


def test_gauges_and_counters_read_back() -> None:
    """Labels of any text survive, whole numbers stay whole."""
    odd = 'a "b" \\ c\nd'
    text = page(
        [
            Metric("x", "gauge", "help\nof \\x", lambda: [({"k": odd}, 1.5)]),
            Metric("y_total", "counter", "y", lambda: [({}, 1764000000)]),
        ]
    )

    assert samples(text) == {("x", (("k", odd),)): 1.5, ("y_total", ()): 1764000000}
    assert "y_total 1764000000\n" in text


def test_histogram_counts_cumulatively() -> None:
    """A value on a bound belongs to its bucket."""
    histogram = Histogram("d_seconds", "d", (0.01, 0.5, 1), {"node": "n"})
    for value in (0.01, 0.3, 2):
        histogram.observe(value)

    found = samples(page([histogram]))

    def bucket(bound: str) -> float:
        return found["d_seconds_bucket", (("le", bound), ("node", "n"))]

    assert [bucket(b) for b in ("0.01", "0.5", "1", "+Inf")] == [1, 2, 2, 3]
    assert found["d_seconds_count", (("node", "n"),)] == 3
    assert found["d_seconds_sum", (("node", "n"),)] == 2.31


def test_counts_start_at_nothing() -> None:
    counts = Counts("target", ("node",))
    counts.add("file", 2)

    assert list(counts()) == [({"target": "file"}, 2), ({"target": "node"}, 0)]
