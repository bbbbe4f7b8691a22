"""What another description of a VIM means: whether stored secrets may stay, and whether it leads elsewhere.

One rule for every merge.

Secrets were given for addresses, for who is believed there, and for a project or domain of the cloud. Who may write
and not read them must not use them elsewhere, so they stay only while all of that stays. What may change is listed
here: the secrets themselves, and who logs in. Whatever is not listed counts as an address.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from slipway.model.action import VimConnection
from slipway.model.errors import BadRequest
from slipway.model.secrets import Names, find_references, is_reference

Parts = Mapping[str, Any]  # a VIM or a VimConnectionInfo, as it stands in JSON
WHERE = ("vimId", "vimType", "interfaceInfo", "accessInfo", "extra")

# As SECRET_NAMES, but for those whose values hold addresses: proxies, kubeconfigs, whole credentials.
_SECRETS = Names((
    "*password", "*passwd", "*passphrase", "pwd", "*secret", "*token",
    "*private_key", "*ssh_key", "*api_key", "*access_key", "*client_key", "*client_key_data", "client_certificate",
))  # fmt: skip
_WHO = Names((
    "username", "user", "user_id", "user_domain", "user_domain_id", "user_domain_name",
    "client_id", "application_credential_id", "application_credential_name", "namespace",
))  # fmt: skip
# Of those, what leads elsewhere: an application credential has a project of its own.
_PLACE = Names(("namespace", "application_credential_id", "application_credential_name"))


def same_address(before: Parts, after: Parts) -> bool:
    """Whether secrets would be used in the same places, which are believed for the same reasons."""
    return not _moved(before, after)


def same_place(before: VimConnection, after: VimConnection) -> bool:
    """Whether both lead to the same resources, whoever logs in. `extra` says nothing of that."""
    was, is_ = (
        {"vimType": one.vim_type, "interfaceInfo": one.interface_info, "accessInfo": one.access_info}
        for one in (before, after)
    )
    return same_address(was, is_) and _placed(before.access_info) == _placed(after.access_info)


def _placed(access_info: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in access_info.items() if key in _PLACE and value}


def refuse_moved_secrets(before: Parts, after: Parts, place: str = "") -> None:
    """BadRequest when a secret of `before` is still in `after`, and would go elsewhere. `place` begins the field."""
    if set(find_references(before)).isdisjoint(find_references(after)):
        return
    if moved := _moved(before, after):
        raise BadRequest(
            f"{place}accessInfo: the stored credentials were given for the addresses, certificates and project that "
            f"the VIM has now, and go nowhere else; give them again together with the new {', '.join(moved)}."
        )


def _moved(before: Parts, after: Parts) -> list[str]:
    """What is not as it was, by name."""
    return [
        f"{part}.{name}" if name else part
        for part in WHERE
        for name in _different(_fixed(before.get(part), part), _fixed(after.get(part), part))
    ]


def _different(old: Any, new: Any) -> Iterable[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        return sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    return () if old == new else ("",)


def _fixed(value: Any, part: str) -> Any:
    """What must stay: without what may change, and without what says nothing."""
    if value is None and part in ("interfaceInfo", "accessInfo", "extra"):
        return {}
    if isinstance(value, dict) and not is_reference(value):
        kept = {key: _fixed(item, "") for key, item in value.items() if not _is_free(key, item, part)}
        return {key: item for key, item in kept.items() if item not in (None, False, "")}
    if isinstance(value, list | tuple):
        return [_fixed(item, "") for item in value]
    return value


def _is_free(key: str, value: Any, part: str) -> bool:
    if not isinstance(value, str) and not is_reference(value):
        return False
    return key in _SECRETS or (part == "accessInfo" and key in _WHO)
