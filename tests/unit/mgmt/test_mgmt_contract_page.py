"""The contract's page can't rot: it names all that a built-in driver has or may have."""

from __future__ import annotations

import re
from pathlib import Path

from slipway.mgmt.drivers import FollowsModification, ManagementDriver, ReadsPackageFiles, ReadsTemplate, RegistersVim

PAGE = (Path(__file__).parents[3] / "docs" / "contracts" / "mgmt.md").read_text()


def test_the_page_names_all_verbs_of_built_in_drivers() -> None:
    optional = (FollowsModification, ReadsPackageFiles, ReadsTemplate, RegistersVim)
    verbs = {name for one in (ManagementDriver, *optional) for name, its in vars(one).items() if callable(its)}
    named = {verb for verb in verbs if re.search(rf"`{verb}\(", PAGE)}
    assert {verb for verb in verbs if not verb.startswith("_")} == named
    assert [one.__name__ for one in optional if f"`{one.__name__}`" not in PAGE] == []
