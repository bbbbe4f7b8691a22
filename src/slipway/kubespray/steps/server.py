"""The Ansible server: what is on it, the directory of this instance there, and that nothing is left in the end."""

from __future__ import annotations

import logging
from pathlib import Path

from msgspec.structs import replace

from slipway.cluster.steps.dependencies import Dependencies, RemoteHost
from slipway.kubespray.arguments import AnsibleServer, CleanServer, PrepareServer
from slipway.kubespray.server import HOST_KEY, check_owner, check_server, read_facts
from slipway.model.action import StepContext
from slipway.model.errors import StepError
from slipway.model.machine import Outcome
from slipway.remote.output import Result, readable
from slipway.remote.quoting import run_script

log = logging.getLogger(__name__)

SCRIPTS = Path(__file__).parent.parent / "scripts"
PREPARE = "prepare the Ansible server"  # the step, whose outcome has the server's host key
TAKEN = 65


async def prepare_server(deps: Dependencies, args: PrepareServer, ctx: StepContext) -> Outcome:
    """All that can be known to fail there is known before any machine is made or changed."""
    host = await ansible_host(deps, args.ansible, ctx)
    printed = await run(host, "ansible_server", args.ansible.root, args.ansible.inventory)
    check_server(read_facts(printed.text.splitlines()), args)
    claimed = await run(host, "inventory_claim", args.ansible.inventory, args.ansible.instance, check=False)
    if claimed.exit_code == TAKEN:  # by somebody who was quicker
        check_owner("foreign", args)
    if not claimed.ok:
        raise StepError(
            f"{args.ansible.inventory} can't be made on the Ansible server {args.ansible.server.address}: "
            f"{readable(claimed.stderr).strip()[-300:]}.",
            cure="let its user write there, or name another directory in ansible.transferring_inventory_path.",
        )
    await remove_runs(host, args.ansible.instance, except_of=ctx.operation_id)
    key = await deps.connector.host_key_at(args.ansible.server, ctx)
    return Outcome(
        instance={"instantiatedVnfInfo": {"metadata": {HOST_KEY: {args.ansible.server.address: key}}}} if key else {}
    )


async def undo_prepare_server(deps: Dependencies, args: PrepareServer, ctx: StepContext) -> Outcome:
    """Secrets come there after this step has ended well: until then a server may be one that lets nobody in."""
    if not args.claims:
        return Outcome()
    try:
        await _clean(await ansible_host(deps, args.ansible, ctx), args.ansible)
    except StepError as error:
        if ctx.outcome(PREPARE) is not None:
            raise
        log.warning("VNF instance %s was never on its Ansible server: %s", ctx.instance_id, error.detail)
    return Outcome()


async def clean_server(deps: Dependencies, args: CleanServer, ctx: StepContext) -> Outcome:
    try:
        await _clean(await ansible_host(deps, args.ansible, ctx), args.ansible)
    except StepError as error:
        if not args.forceful:
            raise StepError(
                error.detail,
                temporary=error.temporary,
                cure="let the Ansible server answer and retry; or terminate forcefully, which leaves this instance's "
                f"inventory and secrets in {args.ansible.inventory} there, to be removed by hand.",
            ) from None
        log.warning("VNF instance %s leaves %s behind: %s", ctx.instance_id, args.ansible.inventory, error.detail)
    return Outcome()


async def ansible_host(deps: Dependencies, ansible: AnsibleServer, ctx: StepContext) -> RemoteHost:
    """Held to the host key of the first contact, which an earlier operation or an earlier step recorded."""
    outcome = ctx.outcome(PREPARE)
    recorded = (outcome.instance if outcome else {}).get("instantiatedVnfInfo", {}).get("metadata", {})
    seen = recorded.get(HOST_KEY, {}).get(ansible.server.address)
    return await deps.connector.host_at(replace(ansible.server, host_key=ansible.server.host_key or seen), ctx)


async def run(host: RemoteHost, name: str, *arguments: str, stdin: bytes | None = None, check: bool = True) -> Result:
    """One of our scripts there, as its user: nothing on that server needs root's rights."""
    command = run_script(name, *arguments, folder=SCRIPTS)
    return await host.run(command, stdin=stdin, check=check, description=name.replace("_", " "))


async def remove_runs(host: RemoteHost, instance: str, *, except_of: str | None = None) -> None:
    """What ended, and what still runs of an operation that is over."""
    for name in (await run(host, "runs_list", runs_prefix(instance))).text.splitlines():
        if except_of is None or not name.startswith(runs_prefix(instance, except_of)):
            await host.remove_job(name, kill=True)


def runs_prefix(instance: str, operation: str = "") -> str:
    return f"kubespray-{instance}-{operation[:8]}"


async def _clean(host: RemoteHost, ansible: AnsibleServer) -> None:
    await remove_runs(host, ansible.instance)
    await run(host, "inventory_remove", ansible.inventory, ansible.instance)
