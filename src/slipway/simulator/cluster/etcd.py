"""etcd on the masters: who is a member, who answers, and which changes a quorum allows."""

from __future__ import annotations

import json
import secrets
import sqlite3
from typing import Any

from slipway.cluster.quorum import quorum
from slipway.remote.output import Result
from slipway.simulator.cluster.cluster import Cluster, Member, answering, find_cluster, has_quorum, save_cluster
from slipway.simulator.cluster.host import SimulatedHost

NOT_CONNECTED, HTTP_ERROR = 7, 22  # exit codes of curl


def new_member(name: str, machine_id: str, address: str) -> Member:
    return Member(str(secrets.randbits(63)), name, machine_id, address)


def ask(db: sqlite3.Connection, host: SimulatedHost, call: str, body: str) -> Result:
    """The JSON gateway, as curl on the master prints its answer."""
    cluster = find_cluster(db, host.cluster)
    if cluster is None or not host.is_master or cluster.member_on(host.machine) is None:
        said = b"curl: (7) Failed to connect to 127.0.0.1 port 2379 after 0 ms: Couldn't connect to server\n"
        return Result(NOT_CONNECTED, b"", said)
    asked = json.loads(body)
    if not has_quorum(db, cluster):
        return _refused(503, 14, "etcdserver: request timed out")
    if call == "cluster/member/list":
        return _answer({"header": {}, "members": [_member_json(member) for member in cluster.members]})
    if call == "cluster/member/remove":
        return _remove(db, cluster, str(asked.get("ID")))
    return _refused(404, 5, "Not Found")


def healthy(db: sqlite3.Connection, host: SimulatedHost, urls: list[str]) -> Result:
    """Those of the members' addresses that answer: none, while there is no leader."""
    cluster = find_cluster(db, host.cluster)
    if cluster is None or not host.is_master:
        return Result(0, b"", b"")
    well = {member.client for member in answering(db, cluster)} if has_quorum(db, cluster) else set()
    return Result(0, "".join(f"{url}\n" for url in urls if url in well).encode(), b"")


def may_leave(db: sqlite3.Connection, cluster: Cluster, member: Member) -> bool:
    """A dead one always, with a quorum; one that answers only if those left are a majority without it."""
    there = answering(db, cluster)
    if not has_quorum(db, cluster):
        return False
    return member not in there or len(there) - 1 >= quorum(len(cluster.members) - 1)


def _remove(db: sqlite3.Connection, cluster: Cluster, member_id: str) -> Result:
    member = next((one for one in cluster.members if one.id == member_id), None)
    if member is None:
        return _refused(404, 5, "etcdserver: member not found")
    if not may_leave(db, cluster, member):
        return _refused(412, 9, "etcdserver: unhealthy cluster")
    cluster.members.remove(member)
    save_cluster(db, cluster)
    return _answer({"header": {}, "members": [_member_json(one) for one in cluster.members]})


def _member_json(member: Member) -> dict[str, Any]:
    return {"ID": member.id, "name": member.name, "peerURLs": [member.peer], "clientURLs": [member.client]}


def _answer(document: dict[str, Any]) -> Result:
    return Result(0, json.dumps(document).encode(), b"")


def _refused(status: int, code: int, message: str) -> Result:
    body = json.dumps({"error": message, "code": code, "message": message}).encode()
    return Result(HTTP_ERROR, body, f"curl: (22) The requested URL returned error: {status}\n".encode())
