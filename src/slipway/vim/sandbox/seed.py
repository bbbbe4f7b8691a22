"""What a machine finds on its disk at its first start: host key, who may log in, user data, disks and addresses."""

from __future__ import annotations

import io
import tarfile
import time
from collections.abc import Mapping
from typing import Any

import yaml

from slipway.model.errors import VimError, VimFault
from slipway.vim.sandbox.connection import USER, Access

DISKS = "etc/slipway/disks"
ADDRESSES = "etc/slipway/addresses"
KEYS = "etc/slipway/authorized_keys"
PASSWORDS = "etc/slipway/passwords"
HOST_KEY = "etc/ssh/ssh_host_ed25519_key"
USER_DATA = "var/lib/slipway/user-data"
SECRET_FILES = frozenset({PASSWORDS, HOST_KEY})
PROGRAMS = frozenset({USER_DATA})
Files = Mapping[str, bytes]


def archive(files: Files) -> bytes:
    """A tar of the files and of nothing above them: an entry for a directory would change its owner and mode."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for path, content in files.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mtime = len(content), int(time.time())
            entry.mode = 0o600 if path in SECRET_FILES else 0o755 if path in PROGRAMS else 0o644
            tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def login_files(access: Access, own_key: str, boot_data: str | None) -> dict[str, bytes]:
    """Keys, passwords and user data, from the connection and from the machine's boot data."""
    config = _cloud_config(boot_data)
    keys = [own_key, *access.authorized_keys, *_strings(config, "ssh_authorized_keys")]
    password = config.get("password", access.password)
    files = {KEYS: "".join(f"{key}\n" for key in keys).encode()}
    if password is not None:
        if not isinstance(password, str) or any(sign in password for sign in "\n\r\0"):
            raise _refused("password must be one line of text")
        files[PASSWORDS] = f"{USER}:{password}\n".encode()
    if boot_data is not None and boot_data.startswith("#!"):
        files[USER_DATA] = boot_data.encode()
    elif commands := config.get("runcmd"):
        files[USER_DATA] = _script(commands)
    return files


CLOUD_CONFIG = "#cloud-config"
KNOWN = frozenset({"ssh_authorized_keys", "password", "runcmd", "ssh_pwauth", "chpasswd", "hostname"})


def _cloud_config(boot_data: str | None) -> dict[str, Any]:
    """The part of cloud-init's format that a sandbox machine knows; nothing for a script."""
    if boot_data is None or boot_data.startswith("#!") or not boot_data.strip():
        return {}
    if not boot_data.startswith(CLOUD_CONFIG):
        raise _refused(f"it begins with neither #! nor {CLOUD_CONFIG}")
    try:
        found = yaml.safe_load(boot_data)
    except yaml.YAMLError:
        raise _refused("it is not YAML") from None
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise _refused("it is not a mapping")
    if unknown := sorted(str(key) for key in found.keys() - KNOWN):
        raise _refused(f"it has {', '.join(unknown)}, and a sandbox knows {', '.join(sorted(KNOWN))}")
    return found


def _strings(config: dict[str, Any], key: str) -> list[str]:
    value = config.get(key, [])
    if not isinstance(value, list) or not all(isinstance(one, str) and "\n" not in one for one in value):
        raise _refused(f"{key} must be a list of lines")
    return value


def _script(commands: Any) -> bytes:
    """runcmd: a text is a line of shell, a list is a command with its arguments."""
    if not isinstance(commands, list):
        raise _refused("runcmd is not a list")
    lines = ["#!/bin/sh"]
    for command in commands:
        if isinstance(command, list):
            lines.append(" ".join(quoted(str(word)) for word in command))
        else:
            lines.append(str(command))
    return ("\n".join(lines) + "\n").encode()


def quoted(word: str) -> str:
    """One argument for the shell, whatever is in it."""
    return "'" + word.replace("'", "'\"'\"'") + "'"


def _refused(why: str) -> VimError:
    return VimError(
        f"The boot data can't be used: {why}.", VimFault.PERMANENT, cure="write it as docs/sandbox.md says."
    )
