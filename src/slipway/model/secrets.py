"""Which values are secret, and what stands in their place.

A document never holds a secret, only a reference to it: `{"$secret": "<id>"}`. What is secret is decided here, by the
place in the document and the name of the key, or because it is a URL with a password; `store/secrets.py` keeps the
values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

from slipway.model.errors import BadRequest

REFERENCE = "$secret"

Path = tuple[str | int, ...]

# Keys of a mapping, written in any of `ssh_password`, `sshPassword`, `ssh-password`. A leading * stands for any prefix.
# A plural and a number at the end (`tokens`, `password_1`) are meant, too.
SECRET_NAMES = (
    "*password", "*passwd", "*passphrase", "*passcode",
    "*secret", "*secret_key", "*token", "authorization", "proxy_authorization",
    "*private_key", "*private_key_pem", "*client_key_pem",
    "*ssh_key", "*api_key", "*access_key", "*certificate_key", "*ssl_key", "*tls_key", "*client_key",
    "*client_key_data", "*encryption_key", "*kubeconfig", "*credential", "auth_cred",
    "http_proxy", "https_proxy",  # a proxy's address may hold a password
)  # fmt: skip

# Too short for a prefix (`bypass`): these are secret as the last word of a name, as in `db_pass` or `dbPass`.
SECRET_WORDS = frozenset({"pass", "pwd", "pw"})

# The only keys of an `accessInfo` that may be shown. All others are hidden: a driver may bring keys unknown here.
HARMLESS_ACCESS_KEYS = (
    "username", "user", "user_id", "user_domain", "user_domain_id", "user_domain_name",
    "project", "project_id", "project_name", "project_domain", "project_domain_id", "project_domain_name",
    "tenant", "tenant_id", "tenant_name", "domain", "domain_id", "domain_name", "system_scope",
    "region", "region_name", "identity_interface", "interface", "auth_type", "auth_url", "auth_method",
    "client_id", "oidc_token_url", "token_endpoint", "scope", "audience", "namespace", "context", "ssl_ca_cert",
)  # fmt: skip

_ACCESS_INFO = "accessinfo"

# Attributes whose content is up to the sender: what is text may be replaced by a reference, wherever it stands in them.
FREE_FORM = frozenset({
    "additionalParams", "metadata", "extensions", "vnfConfigurableProperties", "vnfcConfigurableProperties",
    "userDefinedData", "interfaceInfo", "accessInfo", "extra",
})  # fmt: skip

_URL_WITH_PASSWORD = re.compile(r"\s*[a-z][a-z0-9+.:-]{0,60}://[^/?#\s:]*:[^/?#\s]+@", re.IGNORECASE)


def reference(secret_id: str) -> dict[str, str]:
    return {REFERENCE: secret_id}


def is_reference(value: Any) -> bool:
    return isinstance(value, dict) and len(value) == 1 and isinstance(value.get(REFERENCE), str)


def redact(value: Any) -> Any:
    """A copy without the entries and items that are references; the value itself when there are none."""
    if isinstance(value, dict):
        kept = {key: redact(item) for key, item in value.items() if not is_reference(item)}
        unchanged = len(kept) == len(value) and all(kept[key] is item for key, item in value.items())
        return value if unchanged else kept
    if isinstance(value, list | tuple):
        items = [redact(item) for item in value if not is_reference(item)]
        unchanged = len(items) == len(value) and all(new is old for new, old in zip(items, value, strict=True))
        return value if unchanged else type(value)(items)
    return value


def refuse_references(value: Any, path: str = "") -> None:
    """Requests must not contain references to stored secrets: with one of another owner they could read it."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key == REFERENCE:
                raise BadRequest(f"{path or 'The body'}: the key {REFERENCE!r} is reserved; give the value itself.")
            refuse_references(item, f"{path}/{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for position, item in enumerate(value):
            refuse_references(item, f"{path}/{position}" if path else str(position))


def find_references(value: Any) -> Iterator[str]:
    """The ids of all secrets that a document refers to."""
    if is_reference(value):
        yield value[REFERENCE]
    elif isinstance(value, dict):
        for item in value.values():
            yield from find_references(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from find_references(item)


def find_secrets(document: Any, names: Iterable[str] = ()) -> tuple[Path, ...]:
    """Where a document holds secrets, by structure. `names` are further names, as in SECRET_NAMES."""
    found: list[Path] = []
    replace_secrets(document, lambda path, value: found.append(path), names)
    return tuple(found)


def replace_secrets(document: Any, replacement: Callable[[Path, Any], Any], names: Iterable[str] = ()) -> Any:
    """A copy with `replacement(path, value)` where a secret was. A list or mapping goes as a whole."""
    return _Search(replacement, _known_names(tuple(names))).within(document, ())


def replace_references(document: Any, value_of: Callable[[str], Any]) -> Any:
    """A copy with the value of each secret where its reference was."""
    if is_reference(document):
        return value_of(document[REFERENCE])
    if isinstance(document, dict):
        return {key: replace_references(item, value_of) for key, item in document.items()}
    if isinstance(document, list | tuple):
        return type(document)(replace_references(item, value_of) for item in document)
    return document


def restore_references(document: Any, secrets: Iterable[tuple[dict[str, str], Any]]) -> Any:
    """A copy with references where values are that are known to be secrets: pairs of a reference and its value."""
    known = tuple(secrets)
    for its_reference, value in known:
        if type(document) is type(value) and document == value:
            return its_reference
    if isinstance(document, dict):
        return {key: restore_references(item, known) for key, item in document.items()}
    if isinstance(document, list | tuple):
        return type(document)(restore_references(item, known) for item in document)
    return document


def secret_strings(value: Any) -> Iterator[str]:
    """Every text in a secret that is long enough to be one."""
    if isinstance(value, str) and len(value) > 2:
        yield value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from secret_strings(str(value))
    elif isinstance(value, dict | list | tuple):
        inside: Iterable[Any] = value.values() if isinstance(value, dict) else value
        for item in inside:
            yield from secret_strings(item)


def masked(text: str, secrets: Iterable[str]) -> str:
    """Without these secrets, as they are and as others repeat them: in JSON, as Python shows them, on one line."""
    written = {
        form
        for secret in secrets
        if secret
        for form in (
            secret,
            json.dumps(secret)[1:-1],
            json.dumps(secret, ensure_ascii=False)[1:-1],
            repr(secret)[1:-1],
            " ".join(secret.split()) if "\n" in secret.strip() else secret,
        )
    }
    for form in sorted(written, key=len, reverse=True):
        text = text.replace(form, "***")
    return text


class Names:
    """Names written as SECRET_NAMES are; keys are looked for in whichever spelling, and as they stand."""

    def __init__(self, patterns: Iterable[str]) -> None:
        patterns = tuple(patterns)
        self._whole = {_plain(pattern) for pattern in patterns if not pattern.startswith("*")}
        self._endings = tuple(_plain(pattern) for pattern in patterns if pattern.startswith("*"))

    def __contains__(self, key: object) -> bool:
        plain = _plain(str(key))
        return plain in self._whole or plain.endswith(self._endings)


class _SecretNames(Names):
    """Many of a kind, and numbered ones, are as secret as one."""

    def __contains__(self, key: object) -> bool:
        unnumbered = str(key).rstrip("0123456789_-. ")
        if _last_word(unnumbered) in SECRET_WORDS:
            return True
        return any(
            super(_SecretNames, self).__contains__(one) for one in (key, unnumbered, unnumbered.removesuffix("s"))
        )


@lru_cache
def _known_names(more: tuple[str, ...]) -> Names:
    return _SecretNames((*SECRET_NAMES, *more))


class _Search:
    def __init__(self, replacement: Callable[[Path, Any], Any], names: Names) -> None:
        self._replacement = replacement
        self._names = names

    def within(self, value: Any, path: Path) -> Any:
        if is_reference(value):
            return value
        if isinstance(value, dict):
            in_access_info = bool(path) and _plain(str(path[-1])) == _ACCESS_INFO
            return {key: self._entry(key, item, (*path, key), in_access_info) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self.within(item, (*path, position)) for position, item in enumerate(value))
        if isinstance(value, str) and _URL_WITH_PASSWORD.match(value) and not FREE_FORM.isdisjoint(path):
            return self._replacement(path, value)
        return value

    def _entry(self, key: str, value: Any, path: Path, in_access_info: bool) -> Any:
        secret = _plain(key) not in _HARMLESS if in_access_info else key in self._names
        # A flag such as `create_admin_token: true` hides nothing.
        if not secret or value is None or isinstance(value, bool) or is_reference(value):
            return self.within(value, path)
        return self._replacement(path, value)


def _plain(name: str) -> str:
    """`ssh_password`, `sshPassword` and `ssh-password` are one name."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _last_word(name: str) -> str:
    """`pass` of `db_pass`, `dbPass` and `pass`, but not of `bypass`."""
    return re.split(r"[^a-z0-9]", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower())[-1]


_HARMLESS = frozenset(_plain(name) for name in HARMLESS_ACCESS_KEYS)
