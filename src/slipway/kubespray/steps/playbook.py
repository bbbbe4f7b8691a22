"""A playbook of kubespray's runs apart from Slipway, once: followed while it runs, found again after a crash.

A run is a named job on the Ansible server. Its name comes from the operation, the step and the command: one that still
runs with another command, since a node has lost its power or Slipway was upgraded, is stopped before the next begins.
What it reports is read from the file that our callback writes there; so a failure is told in Ansible's own words.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import unquote

from slipway.cluster.parameters import REGISTRIES
from slipway.cluster.schema import read
from slipway.cluster.source_parameters import ProxyParameters
from slipway.cluster.spec import Node
from slipway.cluster.steps.dependencies import Dependencies, RemoteHost
from slipway.cluster.steps.registries import registry_logins
from slipway.cluster.steps.setup import registries_of
from slipway.kube import paths
from slipway.kube.drain import DrainPolicy, drain
from slipway.kubespray.arguments import AnsibleServer, RemoveNodes, RunPlaybook
from slipway.kubespray.events import RunReport, read_events
from slipway.kubespray.group_vars import basic
from slipway.kubespray.inventory import MASTERS
from slipway.kubespray.steps.inventory import CHANGED
from slipway.kubespray.steps.server import SCRIPTS, ansible_host, log, run, runs_prefix
from slipway.model.action import StepContext
from slipway.model.errors import StepError
from slipway.model.machine import Outcome
from slipway.model.secrets import masked
from slipway.remote.quoting import run_script, script

FOLLOW_SECONDS = 3.0
KILL_SECONDS = 30.0
UNJOIN_SECONDS = 60
SHORTEST_SECRET = 4
PIECE = 128 * 1024  # bytes of events that are read at once: less than is kept of what a command prints
LONGEST_LINE = 1024 * 1024  # bytes of an event
AT_ONCE = 1000  # events


async def run_playbook(deps: Dependencies, args: RunPlaybook, ctx: StepContext) -> Outcome:
    written = ctx.outcome(args.if_changed) if args.if_changed else None
    if written is not None and not written.data.get(CHANGED):
        return Outcome()
    options = [*limit_options(args.limit, await dead_nodes(deps, args.nodes, ctx)), *variable_options(args.variables)]
    await run_to_end(deps, args, args.playbook, options, ctx)
    return Outcome()


async def undo_run_playbook(deps: Dependencies, args: RunPlaybook, ctx: StepContext) -> Outcome:
    """What joined a cluster that stays leaves it again. The machines go in the next step."""
    host = await ansible_host(deps, args.ansible, ctx)
    name = run_name(args.ansible, ctx, args.run)
    for one in (await run(host, "runs_list", name)).text.splitlines():
        await host.remove_job(one, kill=True)
    if args.joining:
        async with deps.connector.api(args.cluster, ctx) as api:
            for node in args.joining:
                dead = not await deps.liveness.answers(node, args.cluster, ctx)
                await drain(api, node.name, DrainPolicy(timeout=UNJOIN_SECONDS, force=True), log.info, dead=dead)
                await api.delete(paths.node(node.name))
    return Outcome()


async def run_to_end(
    deps: Dependencies, args: RunPlaybook | RemoveNodes, playbook: str, options: Sequence[str], ctx: StepContext
) -> None:
    """StepError tells host, task and message; which of it a retry mends, Ansible knows as little as we do."""
    ansible, nodes, seconds = args.ansible, args.nodes, args.seconds
    host = await ansible_host(deps, ansible, ctx)
    name = run_name(ansible, ctx, args.run, script("playbook_run", SCRIPTS), playbook, *options)
    command = run_script("playbook_run", ansible.root, ansible.inventory, name, playbook, *options, folder=SCRIPTS)
    slots = {node.name: node.slot for node in nodes}
    report, events = RunReport(), f"{ansible.inventory}/runs/{name}.events"
    for other in (await run(host, "runs_list", run_name(ansible, ctx, args.run), "running")).text.splitlines():
        if other != name:
            await host.remove_job(other, kill=True)
    secrets = await _secrets(nodes, args.setup, ctx)
    following = asyncio.create_task(_follow(host, events, report, partial(report.progress, slots, secrets), ctx))
    try:
        await host.run_job(name, command, limit=seconds, description=playbook)
    except StepError as error:
        following.cancel()
        expired = f"timed out after {seconds}" in error.detail
        if error.temporary and not expired:  # it may still run, and is found again
            raise StepError(masked(error.detail, secrets), temporary=True, data=error.data) from None
        said = await _report(host, events, report) if not expired else report
        raise _failed(ansible, playbook, name, said, slots, error, secrets, expired=expired) from None
    except asyncio.CancelledError:
        if ctx.cancelled:
            with contextlib.suppress(StepError, TimeoutError):
                async with asyncio.timeout(KILL_SECONDS):
                    await host.remove_job(name, kill=True)
        raise
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


def run_name(ansible: AnsibleServer, ctx: StepContext, run_id: str, *command: str) -> str:
    """Without a command, what all runs of the step begin with."""
    step = f"{runs_prefix(ansible.instance, ctx.operation_id)}-{_digest(run_id)}-"
    return f"{step}{_digest(*command)}" if command else step


def limit_options(limit: Sequence[str], dead: Iterable[str]) -> list[str]:
    """The nodes that are meant by name; else a group, or all, but for the dead: Ansible would wait and give up."""
    if limit and MASTERS not in limit:
        return [f"--limit={','.join(limit)}"]
    without = [f"!{name}" for name in sorted(dead)]
    return [f"--limit={':'.join([*(limit or ['all']), *without])}"] if limit or without else []


def variable_options(variables: Mapping[str, object]) -> list[str]:
    """As JSON: true must not become the text "true". No secret is among them."""
    return ["--extra-vars", json.dumps(variables, sort_keys=True)] if variables else []


async def dead_nodes(deps: Dependencies, nodes: Sequence[Node], ctx: StepContext) -> set[str]:
    """Names of those that have no power, says the VIM."""
    off = await deps.liveness.off(ctx)
    return {node.name for node in nodes if node.machine in off}


async def _follow(host: RemoteHost, events: str, report: RunReport, told: Callable[[], str], ctx: StepContext) -> None:
    """Until it is cancelled. What can't be read now is read the next time."""
    followed = Followed(report)
    while True:
        await asyncio.sleep(FOLLOW_SECONDS)
        with contextlib.suppress(StepError):
            printed = await run(host, "events_follow", events, str(followed.known), str(PIECE), check=False)
            if followed.read(printed.stdout):
                ctx.progress(told())


class Followed:
    """Events as they come, in pieces: all that a run wrote before Slipway was started again is more than one."""

    def __init__(self, report: RunReport) -> None:
        self.report, self.known, self.rest = report, 0, b""

    def read(self, piece: bytes) -> bool:
        """Whether there was anything new. A line without an end is not waited for."""
        self.known += len(piece)
        *lines, rest = (self.rest + piece).split(b"\n")
        self.rest = rest[-LONGEST_LINE:]
        for event in read_events(line.decode(errors="replace") for line in lines):
            self.report.add(event)
        return bool(lines)


async def _report(host: RemoteHost, events: str, followed: RunReport) -> RunReport:
    """The whole of it; of one that is too large to be read, what was followed, and its end.

    Ansible may have failed before it could report anything: then its last words must do.
    """
    report = RunReport()
    try:
        told = await host.get(events) or b""
    except StepError:
        report, told = followed, b""
        with contextlib.suppress(StepError):
            told = (await run(host, "events_last", events, str(PIECE))).stdout
    for at, event in enumerate(read_events(told.decode(errors="replace").splitlines()), 1):
        report.add(event)
        if at % AT_ONCE == 0:
            await asyncio.sleep(0)  # hundreds of thousands of events hold up nobody else
    return report


def _failed(
    ansible: AnsibleServer,
    playbook: str,
    name: str,
    report: RunReport,
    slots: Mapping[str, str],
    error: StepError,
    secrets: Sequence[str],
    *,
    expired: bool,
) -> StepError:
    told = report.explanation(slots, secrets) or masked(error.detail, secrets)
    if expired:
        told = f"{masked(error.detail, secrets)} It was at {report.progress(slots, secrets)}."
    return StepError(
        f"{playbook} failed. {told}",
        cure="mend what Ansible names and retry: kubespray does again only what is missing. All that it printed is in "
        f"{ansible.inventory}/runs/{name}.log on the Ansible server {ansible.server.address}.",
    )


async def _secrets(nodes: Sequence[Node], setup: Mapping[str, Any], ctx: StepContext) -> list[str]:
    """All that the inventory holds, as it may be printed: of a module that fails Ansible tells all it was given."""
    passwords = await ctx.decrypt_secrets([node.login.password for node in nodes])
    logins = registry_logins(registries_of({REGISTRIES: await ctx.decrypt_secrets(setup.get(REGISTRIES, []))}))
    proxy = read(ProxyParameters, await ctx.decrypt_secrets(setup.get("proxy") or {}), "proxy")
    proxies = [one.opened(str) for one in (proxy.http_proxy, proxy.https_proxy) if one]
    known = [*passwords, *(one.password for one in logins.values()), *(basic(one) for one in logins.values())]
    for url in proxies:
        user, _, password = url.partition("://")[2].rpartition("@")[0].partition(":")
        secret = password or user  # alone it is a token
        known += [secret, unquote(secret)]
    known += [json.dumps(one)[1:-1] for one in known if one]  # as Ansible's log has it
    return sorted({one for one in known if one and len(one) >= SHORTEST_SECRET}, key=len, reverse=True)


def _digest(*words: str) -> str:
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:10]
