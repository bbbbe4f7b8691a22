"""Counts and durations of this process, in plain dictionaries: kept on the event loop, read by /metrics.

The Prometheus library is asked only when somebody scrapes (exposition.py): its import takes longer than the start of
Slipway may grow, and a dictionary is cheaper than its locks. Labels come from closed sets; never an id, name or path.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass

Labels = tuple[str, ...]

REQUEST_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
STEP_BOUNDS = (0.01, 0.05, 0.25, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)


class Count:
    """How often, since the process started."""

    def __init__(self, name: str, about: str, labels: Labels) -> None:
        self.name, self.about, self.labels = name, about, labels
        self.values: dict[Labels, int] = {}

    def add(self, *labels: str) -> None:
        self.values[labels] = self.values.get(labels, 0) + 1


class Durations:
    """How many took how long: a histogram. Each bound includes itself; one more place is for whatever took longer."""

    def __init__(self, name: str, about: str, labels: Labels, bounds: tuple[float, ...]) -> None:
        self.name, self.about, self.labels, self.bounds = name, about, labels, bounds
        self.places: dict[Labels, list[int]] = {}
        self.sums: dict[Labels, float] = {}

    def add(self, seconds: float, *labels: str) -> None:
        places = self.places.get(labels)
        if places is None:
            places = self.places[labels] = [0] * (len(self.bounds) + 1)
            self.sums[labels] = 0.0
        places[bisect_left(self.bounds, seconds)] += 1
        self.sums[labels] += seconds


@dataclass(frozen=True)
class Gauge:
    """A number as it is at the moment of the scrape."""

    name: str
    about: str
    values: Mapping[Labels, float]
    labels: Labels = ()


# Asked at every scrape, each within a time limit.
Collector = Callable[[], Awaitable[Iterable[Gauge]]]


class Numbers:
    def __init__(self) -> None:
        self.transitions = Count(
            "slipway_operation_transitions",
            "Operations that entered a state, in this process.",
            ("operation", "state"),
        )
        self.steps = Durations(
            "slipway_step_seconds",
            "How long steps took from their start to their end, all attempts together.",
            ("action", "outcome"),
            STEP_BOUNDS,
        )
        self.retries = Count(
            "slipway_step_retries",
            "Attempts at a step that failed and were followed by another.",
            ("action",),
        )
        self.requests = Count(
            "slipway_http_requests",
            "HTTP requests. Route (none): refused before there was one; status none: the caller left.",
            ("route", "method", "status"),
        )
        self.request_seconds = Durations(
            "slipway_http_request_seconds",
            "How long HTTP requests took.",
            ("route", "method"),
            REQUEST_BOUNDS,
        )
