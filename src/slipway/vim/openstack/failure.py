"""Why a stack failed: the deepest resource's own message, and whose it is, instead of CREATE_FAILED."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from slipway.model.errors import VimError, VimFault
from slipway.model.secrets import masked
from slipway.outgoing.responses import server_message
from slipway.vim.openstack.errors import NOT_ALLOWED, TYPE_FORBIDDEN
from slipway.vim.openstack.heat import Stack, StackResource

# Consequences of what happened elsewhere. (Nova aborts builds, too, and then says why.)
_FOLLOWS = re.compile(
    r"^\w+ aborted|^(?:operation|stack \w+) cancelled|^resource .* failed$|^\w+_FAILED$", re.IGNORECASE
)
# Each part of these ends where the next one can't begin: a reason is anybody's words, and is looked at in linear time.
_PREFIX = re.compile(r"^(?:\w+: )?(?:resources\.[^\s:]+: )+")
_LONGEST = 2000  # characters of a reason that are looked at
_CAUSES = (
    (re.compile(r"quota|exceeded for|OverLimit|limit exceeded", re.IGNORECASE), VimFault.QUOTA,
     "free something of this project's quota, or have it raised, then retry."),
    (TYPE_FORBIDDEN, VimFault.AUTH, NOT_ALLOWED),
    (re.compile(r"Policy doesn't allow"), VimFault.AUTH, NOT_ALLOWED),
    (re.compile(r"No valid host", re.IGNORECASE), VimFault.QUOTA,
     "no compute host fits: free some, then retry; or roll back, and choose another flavour or zone."),
    (re.compile(r"IpAddressInUse|AlreadyAllocated|already allocated|in use", re.IGNORECASE), VimFault.PERMANENT,
     "free it, then retry; or roll back, and ask for another."),
    (re.compile(r"could not be found|not found|no .{1,99} matching|does not exist", re.IGNORECASE), VimFault.PERMANENT,
     "make it there, then retry; or roll back, and give the name of one that is there."),
    (re.compile(r"timed out|TimeoutError", re.IGNORECASE), VimFault.PERMANENT,
     "see what it waited for, then retry: Heat had its time already, so it is not tried again by itself."),
)  # fmt: skip


def stack_failure(
    stack: Stack, resources: Iterable[StackResource], vnfcs: Mapping[str, str], secrets: Sequence[str] = ()
) -> VimError:
    """`vnfcs`: names of members, by the resource of the stack that has them or by the server's id."""
    # What was marked has the words of who did so.
    failed = [one for one in resources if one.failed and one.reason and not one.marked]
    if stack.status == "DELETE_FAILED":  # what could not be made before that is no reason
        failed = [one for one in failed if one.status == "DELETE_FAILED"]
    cause = max(failed, key=_weight, default=None)
    if cause is None:
        return _error(f"Stack {stack.name} is {stack.status}", stack.reason or "Heat gives no reason", secrets)
    vnfc = vnfcs.get(cause.id) or vnfcs.get(cause.path[0])
    where = f"resource {'/'.join(cause.path)} ({cause.type})"
    of = f" of VNFC {vnfc}" if vnfc else ""
    return _error(f"Stack {stack.name} is {stack.status}: {where}{of}", cause.reason, secrets)


def _weight(resource: StackResource) -> tuple[bool, int]:
    return not _FOLLOWS.search(resource.reason[:_LONGEST]), len(resource.path)


def _error(where: str, reason: str, secrets: Sequence[str]) -> VimError:
    reason = masked(reason, secrets)[:_LONGEST]  # what is cut can't be found any more
    said = server_message(_PREFIX.sub("", reason), most=600)
    for pattern, fault, cure in _CAUSES:
        if pattern.search(reason):
            return VimError(f"{where}: {said}.", fault, cure=cure)
    return VimError(f"{where}: {said}.", VimFault.PERMANENT, cure="mend what is named there, then retry; or roll back.")
