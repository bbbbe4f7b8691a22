"""What an Ansible server must have before anything is made: Ansible, kubespray, sshpass, a directory. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from slipway.kubespray.arguments import PrepareServer
from slipway.model.errors import StepError
from slipway.remote.output import readable

OLDEST = (2, 28)  # of kubespray: from here on its versions of Kubernetes are written without a v
_VERSION = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")
LONGEST = 350  # characters of a fact
HOST_KEY = "ansibleServerHostKeys"  # by address, in instantiatedVnfInfo.metadata


@dataclass(frozen=True)
class ServerFacts:
    """`inventory`: the instance that has the directory, "foreign", or None where there is none."""

    root: bool
    ansible: str | None = None
    broken: str | None = None
    sshpass: bool = False
    missing: tuple[str, ...] = ()
    kubespray: str | None = None
    minimal: str | None = None
    maximal: str | None = None
    inventory: str | None = None


def read_facts(lines: Iterable[str]) -> ServerFacts:
    """Errors tell what is in them, so they are cut, and without control characters."""
    plain = (readable(line.encode(errors="replace"))[:LONGEST] for line in lines)
    words = [line.split(" ", 1) for line in plain if line.strip()]
    one = {word[0]: word[1] for word in words if len(word) == 2 and word[1]}
    return ServerFacts(
        root=one.get("root") != "absent",
        ansible=one.get("ansible"),
        broken=one.get("broken"),
        sshpass="sshpass" in one,
        missing=tuple(word[1] for word in words if word[0] == "missing" and len(word) == 2),
        kubespray=one.get("kubespray"),
        minimal=one.get("minimal"),
        maximal=one.get("maximal"),
        inventory=one.get("inventory"),
    )


def check_server(facts: ServerFacts, args: PrepareServer) -> None:
    """StepError that says what is missing, and the cure."""
    where, root = f"The Ansible server {args.ansible.server.address}", args.ansible.root
    if not facts.root or facts.missing:
        what = f"has no {root}" if not facts.root else f"has in {root} no {', '.join(facts.missing)}"
        raise StepError(f"{where} {what}.", cure="give in ansible.kubespray_root_path the directory of kubespray.")
    if facts.ansible is None:
        said = f": {facts.broken}" if facts.broken else ""
        raise StepError(
            f"{where} can't run ansible-playbook{said}.",
            cure=f"install what {root}/requirements.txt names, for all users or in {root}/.venv.",
        )
    _check_versions(facts, where, root)
    if args.passwords and not facts.sshpass:
        raise StepError(
            f"{where} has no sshpass, which Ansible needs for the nodes' passwords.",
            cure="install it there, or give the nodes a private_key.",
        )
    check_owner(facts.inventory, args)


def check_owner(owner: str | None, args: PrepareServer) -> None:
    directory = args.ansible.inventory
    if owner is None or owner == args.ansible.instance:
        return
    whose = "holds something else" if owner == "foreign" else f"is the inventory of the VNF instance {owner}"
    raise StepError(
        f"{directory} on the Ansible server {args.ansible.server.address} {whose}; nothing in it was changed.",
        cure="name another directory in ansible.transferring_inventory_path, or remove that one.",
    )


def _check_versions(facts: ServerFacts, where: str, root: str) -> None:
    version = _numbers(facts.kubespray)
    if version is None or version < OLDEST:
        raise StepError(
            f"{where} has kubespray {facts.kubespray or 'of no known version'} in {root}.",
            cure=f"use kubespray {OLDEST[0]}.{OLDEST[1]} or newer.",
        )
    ansible, least, most = _numbers(facts.ansible), _numbers(facts.minimal), _numbers(facts.maximal)
    if ansible and ((least and ansible < least) or (most and ansible >= most)):
        raise StepError(
            f"{where} has Ansible {facts.ansible}, and kubespray {facts.kubespray} wants {facts.minimal} up to, and "
            f"without, {facts.maximal}.",
            cure=f"install what {root}/requirements.txt names.",
        )


def _numbers(text: str | None) -> tuple[int, ...] | None:
    found = _VERSION.match(text or "")
    return tuple(int(part) for part in found.groups() if part is not None) if found else None
