"""Files that settings name. Those with a secret in them must be closed to others, or Slipway does not start."""

from __future__ import annotations

import os
from pathlib import Path

from slipway.model.errors import SettingsError

GROUP_READS = 0o040


def read_text(path: Path, setting: str) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{setting}: {path} can't be read: {error}.") from None


def read_secret(path: Path, setting: str) -> str:
    """SettingsError also when others may read or write it."""
    require_closed(path, setting)
    return read_text(path, setting)


def require_closed(path: Path, setting: str) -> None:
    """To all but its owner. A file of root may be read by its group: that is how a Slipway that is not root has it."""
    try:
        status = path.stat()
    except OSError as error:
        raise SettingsError(f"{setting}: {path} can't be read: {error}.") from None
    too_open = status.st_mode & 0o077
    if status.st_uid == 0 and os.geteuid() != 0:
        too_open &= ~GROUP_READS
    if too_open:
        raise SettingsError(
            f"{setting}: {path} is open to others (mode {status.st_mode & 0o777:04o}), and what is in it must be taken "
            f"for known. Cure: chmod 600 {path}, and replace the secret if others may have read it."
        )
