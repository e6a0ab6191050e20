"""Collector: reads the queue at each scrape and fills the catalogue. A queue that is away is ``priqueue_up 0``."""

from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Any, cast

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from priqueue.coordinator import Inspector
from priqueue.coordinator.histograms import BOUNDS_MS, Histogram
from priqueue.coordinator.stats import Stats
from priqueue.exceptions import PriqueueError
from priqueue.metrics import catalogue

_FAMILIES = {"counter": CounterMetricFamily, "gauge": GaugeMetricFamily, "histogram": HistogramMetricFamily}
_ENDS = (*(str(bound_ms / 1000) for bound_ms in BOUNDS_MS), "+Inf")


class QueueCollector(Collector):
    """The metrics of one queue."""

    def __init__(self, inspector: Callable[[], Inspector]) -> None:
        """``inspector`` returns the reader to use; it may raise PriqueueError as its methods do."""
        self._inspector = inspector

    def describe(self) -> list[Metric]:
        """Return nothing: a registry that asked would read the queue before anybody scrapes."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Read the queue once and give each metric."""
        up = GaugeMetricFamily(catalogue.UP, "1 when the queue answered this scrape.")
        try:
            inspector = self._inspector()
            stats = inspector.stats()
        except PriqueueError:
            up.add_metric([], 0)
            yield up
            return
        up.add_metric([], 1)
        yield up
        for metric in catalogue.METRICS:
            yield _family(metric, stats, inspector)


def _family(metric: catalogue.Metric, stats: Stats, inspector: Inspector) -> Metric:
    family: Any = _FAMILIES[metric.kind](metric.name, metric.help, labels=["queue", *filter(None, [metric.label])])
    for label, value in metric.read(stats, inspector.settings).items():
        labels = [inspector.settings.namespace, *([label] if metric.label else [])]
        if isinstance(value, Histogram):
            below = zip(_ENDS, accumulate(value.numbers), strict=True)
            family.add_metric(labels, buckets=[*below], sum_value=value.sum_ms / 1000)
        elif value is not None:
            family.add_metric(labels, value)
    return cast(Metric, family)
