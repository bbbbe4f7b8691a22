"""The next version of a sample package: the same tree under another VNFD id, with versions and words replaced."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from slipway.model.clock import utcnow
from slipway.model.descriptor import Descriptor
from slipway.model.package import OnboardingState, OperationalState, UsageState, VnfPackage
from slipway.package.build import build_package
from slipway.store import packages
from tests.functional.rig import Rig, hooked

NEXT_ID = "6b1a5d0e-3c52-4f0a-9d57-1f5c2c7d8e11"
OTHER_ID = "6b1a5d0e-3c52-4f0a-9d57-1f5c2c7d8e12"
_ID = re.compile(r"descriptor_id: (\S+)")


def next_package(
    sample: Path, directory: Path, vnfd_id: str, *, version: str = "2.0", image: str = "1.0", words: Mapping[str, str]
) -> Path:
    """A source tree. `image` is the version of the machines' images; `words` are replaced wherever they are."""
    tree = directory / vnfd_id
    shutil.copytree(sample, tree)
    (old,) = {found[1] for file in tree.rglob("*.vnfd.yaml") for found in _ID.finditer(file.read_text())}
    for file in tree.rglob("*.yaml"):
        text = file.read_text().replace(old, vnfd_id)
        text = re.sub(r'((?:descriptor|software)_version): "1.0"', rf'\1: "{version}"', text)
        text = re.sub(r'\bversion: "1.0"', f'version: "{image}"', text)
        for word, other in words.items():
            text = text.replace(word, other)
        file.write_text(text)
    return tree


async def onboard_next(
    rig: Rig,
    sample: Path,
    directory: Path,
    vnfd_id: str,
    *,
    version: str = "2.0",
    image: str = "1.0",
    words: Mapping[str, str] | None = None,
    hooks: Sequence[str] | None = None,
    change: Callable[[Descriptor], Descriptor] = lambda descriptor: descriptor,
) -> None:
    """`hooks` None: those that the sample has. `change`: what else is new in its VNFD."""
    tree = next_package(sample, directory, vnfd_id, version=version, image=image, words=words or {})
    package_id = f"package-{vnfd_id[-12:]}"
    built = build_package(tree, rig.slipway.settings.data_dir / "packages" / f"{package_id}.csar")
    descriptor = change(built.descriptor)
    if hooks is not None:
        descriptor = hooked(descriptor, hooks)
    package = VnfPackage(
        id=package_id,
        vnfd_id=vnfd_id,
        onboarding_state=OnboardingState.ONBOARDED,
        operational_state=OperationalState.ENABLED,
        usage_state=UsageState.NOT_IN_USE,
        additional_artifacts=built.artifacts,
        created_at=utcnow(),
    )
    await rig.slipway.database.write(packages.insert, package, descriptor)
