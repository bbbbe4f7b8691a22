"""The peer's figures, our goals, and how a measurement is printed beside them."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    what: str
    unit: str
    peer: float | None  # None: it was not measured
    goal: float | None  # None: growth.py has it, as a multiple of a bare request
    more_is_better: bool = False

    def line(self, measured: float) -> str:
        beside = f"{self.what:<52} {measured:>9.4g} {self.unit:<6} {self._beside_peer(measured):<35}"
        return beside.rstrip() if self.goal is None else f"{beside}  {self._verdict(self.goal, measured)}"

    def _verdict(self, goal: float, measured: float) -> str:
        reached = measured >= goal if self.more_is_better else measured <= goal
        sign = ">=" if self.more_is_better else "<"
        return f"goal {sign} {goal:g}: {'reached' if reached else 'NOT reached'}"

    def _beside_peer(self, measured: float) -> str:
        if self.peer is None:
            return ""
        ratio = measured / self.peer if self.more_is_better else self.peer / measured
        return f"peer {self.peer:>7g}  {ratio:>7.1f} times better"


START = Figure("start until the first 200 (median of 5)", "s", 3.2, 2.0)
RSS = Figure("RSS idle, all processes", "MiB", 768, 150)
GET_ONE = Figure("GET one instance, 32 clients", "req/s", 201, None, more_is_better=True)
GET_LIST = Figure("GET list of 1000 instances, all in one answer", "req/s", 33.5, None, more_is_better=True)
CREATE = Figure("POST create, 32 clients", "req/s", 3.9, None, more_is_better=True)
INSTANTIATE = Figure("instantiate, request until COMPLETED (median)", "s", 0.55, None)
OPERATIONS = Figure("operations a second, one worker", "op/s", 1.75, 20, more_is_better=True)
FIFTY = Figure("50 instantiates at once, median", "s", 18.9, 3.0)
THOUSAND = Figure("1000 instances of 7 machines, all at once", "s", 1000 / 1.75, 1000 / 20)
FIRST_PAGE = Figure("first page of 50,000 op-occs", "s", 14.0, 0.2)
WORKER_AT_300 = Figure("+1 worker at 300 nodes against 3, slow hosts, time", "times", None, 1.1)
CALLS_AT_300 = Figure("+1 worker at 300 nodes against 3, remote calls", "times", None, 1.1)
HUNDRED_WORKERS = Figure("+100 workers against +1, slow hosts, time", "times", None, 5.0)
CLUSTERS = Figure("1000 clusters of 3 nodes, all at once", "s", None, 300.0)
SILENT_SUBSCRIBER = Figure("50 at once: a subscriber that never answers, or none", "times", None, 1.1)
BY_HAND = Figure("a real cluster, 3 nodes: Slipway against by hand", "times", None, 1.1)
OPENSTACK = Figure("5 servers on OpenStack: Slipway against Heat by hand", "times", None, 1.1)
OPENSTACK_MORE = Figure("5 servers on OpenStack: Slipway beyond Heat by hand", "s", None, 1.0)
KUBE_APPLY = Figure("200 objects: Slipway against kubectl apply", "times", None, 1.0)
KUBE_WATCH = Figure("watching 1000 pods, memory beyond an idle client", "MiB", None, 20)
CLUSTER_API = Figure("10 workload clusters: Slipway against Cluster API alone", "times", None, 1.1)
ONBOARDING = Figure("onboarding the sample cluster package, wall", "s", 2.0, 0.1)
ONBOARDING_CPU = Figure("onboarding the sample cluster package, CPU", "s", 2.0, 0.1)


def machine() -> str:
    one, five, fifteen = os.getloadavg()
    return f"{os.cpu_count()} cores, load {one:.2f} {five:.2f} {fifteen:.2f}"
