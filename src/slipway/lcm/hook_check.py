"""At onboarding: every hook of a VNFD names somebody who can do it, or the package is refused."""

from __future__ import annotations

from slipway.mgmt.drivers import ManagementDrivers
from slipway.model.descriptor import Hook
from slipway.model.errors import PackageError
from slipway.package.reader import Package


def check_hooks(package: Package, management: ManagementDrivers) -> None:
    for flavour in package.descriptor.flavours.values():
        for hook in flavour.hooks.values():
            if refusal := management.refusal(hook):
                file, line = _place(package, hook)
                raise PackageError(
                    f"Hook {hook.operation!r} of flavour {flavour.id!r}: {refusal}",
                    file=file,
                    line=line,
                    cure="name one of those, or a .py or .sh file that is in the package and an artifact of the node.",
                )


def _place(package: Package, hook: Hook) -> tuple[str, int | None]:
    """Where a person finds it: the file that holds both names, and the line of the hook."""
    files = {path: content.decode(errors="replace") for path, content in package.vnfd_files().items()}
    for path, text in files.items():
        if hook.implementation in text:
            for number, line in enumerate(text.splitlines(), 1):
                if hook.operation in line:
                    return path, number
    return next(iter(files)), None
