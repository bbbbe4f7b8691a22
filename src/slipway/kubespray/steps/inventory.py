"""The inventory goes to the Ansible server: hosts and their keys, variables, secrets for its user alone."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from slipway.cluster.networks import no_proxy
from slipway.cluster.parameters import REGISTRIES
from slipway.cluster.schema import read
from slipway.cluster.source_parameters import ProxyParameters
from slipway.cluster.spec import Node
from slipway.cluster.steps.dependencies import Dependencies
from slipway.cluster.steps.machine import address_of
from slipway.cluster.steps.registries import registry_logins
from slipway.cluster.steps.setup import registries_of
from slipway.cluster.steps.template_addresses import with_template_addresses
from slipway.kubespray.arguments import WriteInventory
from slipway.kubespray.group_vars import (
    KEYS,
    cluster_variables,
    login_variables,
    proxy_variables,
    registry_variables,
)
from slipway.kubespray.inventory import (
    MASTERS,
    WORKERS,
    InventoryHost,
    as_yaml,
    check_hosts,
    group,
    hosts_yaml,
    known_hosts,
)
from slipway.kubespray.steps.server import ansible_host, run
from slipway.model.action import StepContext
from slipway.model.machine import Outcome

VARIABLES = "group_vars/all/slipway.yml"
CHANGED = "variablesChanged"  # in the outcome: whether kubespray is told something new
CALLBACK = Path(__file__).parent.parent / "callback" / "slipway_events.py"


async def write_inventory(deps: Dependencies, args: WriteInventory, ctx: StepContext) -> Outcome:
    files = await _files(args, args.nodes, ctx)
    host = await ansible_host(deps, args.ansible, ctx)
    before = await host.get(f"{args.ansible.inventory}/{VARIABLES}")
    await run(host, "inventory_write", args.ansible.inventory, args.ansible.instance, stdin=_archive(files))
    return Outcome(data={CHANGED: before != files[VARIABLES].encode()})


async def undo_write_inventory(deps: Dependencies, args: WriteInventory, ctx: StepContext) -> Outcome:
    """The nodes that were there before. Without any the directory goes, in the undo of the step that made it."""
    if args.before:
        files = await _files(args, args.before, ctx)
        host = await ansible_host(deps, args.ansible, ctx)
        await run(host, "inventory_write", args.ansible.inventory, args.ansible.instance, stdin=_archive(files))
    return Outcome()


async def _files(args: WriteInventory, nodes: tuple[Node, ...], ctx: StepContext) -> dict[str, str]:
    hosts = [await _host(node, ctx) for node in nodes]
    check_hosts(hosts)
    return {
        "hosts.yaml": hosts_yaml(hosts),
        "known_hosts": known_hosts(hosts),
        "callback/slipway_events.py": CALLBACK.read_text(),
        VARIABLES: as_yaml(await _variables(args, hosts, ctx)),
        "group_vars/all/slipway-secrets.yml": as_yaml(await _secrets(args, hosts, ctx)),
        **await _logins(args, hosts, ctx),
    }


async def _host(node: Node, ctx: StepContext) -> InventoryHost:
    machine = await ctx.machine(node.machine)
    address = await address_of(node, ctx, node.ssh)
    return InventoryHost(node=node, address=address, ip=await address_of(node, ctx), host_key=machine.host_key)


async def _variables(args: WriteInventory, hosts: list[InventoryHost], ctx: StepContext) -> dict[str, Any]:
    cluster = await with_template_addresses(args.cluster, ctx)
    masters = [one for host in group(hosts, master=True) for one in (host.ip, host.address)]
    published = [await address_of(node, ctx, point) for node in args.published for point in {node.ssh, node.nic}]
    return cluster_variables(
        networks=cluster.networks,
        version=cluster.version,
        plugin=args.plugin,
        image_repository=cluster.image_repository,
        certificate_names=sorted({*masters, *published, *([cluster.outside] if cluster.outside else [])}),
    )


async def _secrets(args: WriteInventory, hosts: list[InventoryHost], ctx: StepContext) -> dict[str, Any]:
    registries = registries_of({REGISTRIES: await ctx.decrypt_secrets(args.setup.get(REGISTRIES, []))})
    return {**await _proxy(args, hosts, ctx), **registry_variables(registries, registry_logins(registries))}


async def _proxy(args: WriteInventory, hosts: list[InventoryHost], ctx: StepContext) -> dict[str, Any]:
    if "proxy" not in args.setup:
        return {}
    proxy = read(ProxyParameters, await ctx.decrypt_secrets(args.setup["proxy"]), "proxy")
    http, https = (one.opened(str) if one else None for one in (proxy.http_proxy, proxy.https_proxy))
    direct = no_proxy(args.cluster.networks, group(hosts, master=True)[0].ip, proxy.no_proxy)
    return proxy_variables(http, https, direct)


async def _logins(args: WriteInventory, hosts: list[InventoryHost], ctx: StepContext) -> dict[str, str]:
    """For each role a file of variables, and its private key in another file that the variables name."""
    files: dict[str, str] = {}
    for role, master in ((MASTERS, True), (WORKERS, False)):
        of_role = group(hosts, master=master)
        if not of_role:
            continue
        login = of_role[0].node.login
        opened = await ctx.decrypt_secrets({"password": login.password, "private_key": login.private_key})
        key_file = f"{KEYS}/{role}" if opened["private_key"] else None
        if key_file:
            files[key_file] = f"{opened['private_key'].strip()}\n"
        place = f"{args.ansible.inventory}/{key_file}" if key_file else None
        variables = login_variables(password=opened["password"], key_file=place)
        # A master may be in the workers' group, too: its own login is said by name, not by group.
        for host in of_role:
            files[f"host_vars/{host.name}/slipway-secrets.yml"] = as_yaml(variables)
    return files


def _archive(files: Mapping[str, str]) -> bytes:
    """For the user alone, all of them."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for path, content in files.items():
            written = content.encode()
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(written), 0o600
            tar.addfile(entry, io.BytesIO(written))
    return packed.getvalue()
