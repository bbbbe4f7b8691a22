"""The metrics of this process, and their exposition in Prometheus' text format.

Counters and histograms are kept by prometheus_client; gauges are asked for at each scrape (`Collector`). Labels come
from closed sets; never an id, name or path.
"""

from __future__ import annotations

import asyncio
import logging
import platform
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    Info,
    Metric,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from sqlalchemy.exc import SQLAlchemyError

from slipway import __version__

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
COLLECTOR_TIMEOUT = 5.0  # seconds for each; Prometheus gives up after 10
REQUEST_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
STEP_BUCKETS = (0.01, 0.05, 0.25, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)

# Asked for gauges at every scrape, within a time limit.
Collector = Callable[[], Awaitable[Iterable[Metric]]]

log = logging.getLogger(__name__)
disable_created_metrics()  # type: ignore[no-untyped-call] # a second series for each counter and histogram


class Metrics:
    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.transitions = Counter(
            "slipway_operation_transitions",
            "Operations that entered a state, in this process.",
            ("operation", "state"),
            registry=self._registry,
        )
        self.step_seconds = Histogram(
            "slipway_step_seconds",
            "How long steps took from their start to their end, all attempts together.",
            ("action", "outcome"),
            buckets=STEP_BUCKETS,
            registry=self._registry,
        )
        self.retries = Counter(
            "slipway_step_retries",
            "Attempts at a step that failed and were followed by another.",
            ("action",),
            registry=self._registry,
        )
        self.requests = Counter(
            "slipway_http_requests",
            "HTTP requests. Route (none): refused before there was one; status none: the caller left.",
            ("route", "method", "status"),
            registry=self._registry,
        )
        self.request_seconds = Histogram(
            "slipway_http_request_seconds",
            "How long HTTP requests took.",
            ("route", "method"),
            buckets=REQUEST_BUCKETS,
            registry=self._registry,
        )
        build = Info("slipway_build", "What runs here.", registry=self._registry)
        build.info({"version": __version__, "python": platform.python_version()})
        ProcessCollector(registry=self._registry)

    async def scrape(self, collectors: Mapping[str, Collector]) -> bytes:
        """All metrics as text. A collector that fails costs its own gauges only, and is named."""
        collected = await asyncio.gather(*(_collect(name, collector) for name, collector in collectors.items()))
        up: dict[tuple[str, ...], float] = {
            (name,): found is not None for name, found in zip(collectors, collected, strict=True)
        }
        gauges = [one for found in collected for one in found or ()]
        gauges.append(
            gauge("slipway_collector_up", "Whether a source of gauges answered this scrape.", up, ["collector"])
        )
        return generate_latest(self._registry) + generate_latest(_Gauges(gauges))


def gauge(
    name: str, documentation: str, values: Mapping[tuple[str, ...], float], labels: Sequence[str] = ()
) -> GaugeMetricFamily:
    """A number as it is at the moment of the scrape, for each combination of labels."""
    family = GaugeMetricFamily(name, documentation, labels=labels)
    for combination, value in values.items():
        family.add_metric(combination, value)
    return family


async def _collect(name: str, collector: Collector) -> list[Metric] | None:
    try:
        async with asyncio.timeout(COLLECTOR_TIMEOUT):
            return list(await collector())
    except (SQLAlchemyError, TimeoutError) as error:
        log.warning("the metrics of %s cannot be read: %s", name, type(error).__name__)
        return None


@dataclass(frozen=True)
class _Gauges:
    """The gauges of one scrape, as the library asks for them."""

    gauges: Iterable[Metric]

    def collect(self) -> Iterable[Metric]:
        return self.gauges
