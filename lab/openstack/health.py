"""Wait, for a bounded time, until every service of the lab works.

health.py SECONDS
"""

import glob
import os
import sys
import time

import openstack

deadline = time.monotonic() + float(sys.argv[1])


def dead():
    """A process of the lab that has ended, or None."""
    for path in glob.glob(os.path.join(os.environ["RUN"], "*.pid")):
        name = os.path.basename(path)[: -len(".pid")]
        with open(path) as f:
            pid = f.read().split()[0]
        if not name.endswith("-own") and not os.path.exists(f"/proc/{pid}"):
            return name
    return None


def up(services, wanted):
    found = {s.binary for s in services if s.state == "up"}
    return None if wanted <= found else f"{sorted(wanted - found)} not up"


def apis(cloud):
    for name, call in (
        ("keystone", lambda: next(cloud.identity.projects())),
        ("glance", lambda: list(cloud.image.images(limit=1))),
        ("placement", lambda: list(cloud.placement.resource_providers())),
        ("neutron", lambda: list(cloud.network.networks())),
        ("heat", lambda: list(cloud.orchestration.stacks())),
    ):
        try:
            call()
        except Exception as e:
            return f"{name}: {e}"
    return None


def engines(cloud):
    found = cloud.orchestration.get("/services").json()["services"]
    return None if any(s["status"] == "up" for s in found) else "no heat-engine"


def hosts(cloud):
    wanted = set(os.environ["HOSTS"].split())
    up = {s.host for s in cloud.compute.services(binary="nova-compute") if s.state == "up"}
    known = {p.name for p in cloud.placement.resource_providers()}
    return None if wanted <= up & known else f"{wanted - (up & known)} not up"


CHECKS = {
    "APIs": apis,
    "nova": lambda c: up(c.compute.services(), {"nova-conductor", "nova-scheduler", "nova-compute"}),
    "hosts": hosts,
    "cinder": lambda c: up(c.block_storage.services(), {"cinder-scheduler", "cinder-volume"}),
    "engine": engines,
}
cloud = openstack.connect(cloud="lab-admin")
waiting = dict(CHECKS)
while waiting:
    for name, check in list(waiting.items()):
        try:
            problem = check(cloud)
        except Exception as e:
            problem = f"{type(e).__name__}: {e}"
        if not problem:
            del waiting[name]
        elif time.monotonic() > deadline:
            sys.exit(f"{name}: {problem}")
    if dead():
        sys.exit(f"{dead()} ended: see its log")
    if waiting:
        time.sleep(0.5)
