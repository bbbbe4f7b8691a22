"""Tokens for a cluster: a new one for each kubeconfig, one for the registration that is renewed, and none left."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import msgspec
import pytest
import yaml
from sqlalchemy import text

from slipway.cluster.steps.liveness import LivenessLimits
from slipway.cluster_access.clusters import RunningClusters
from slipway.cluster_access.token_renewal import ClusterTokens
from slipway.kube.account import ServiceAccountToken
from slipway.model.errors import Conflict, NotFound, SlipwayError, VimError, VimFault
from slipway.model.instance import VimConnectionInfo
from slipway.model.operation import OperationType, State
from slipway.model.vim import Vim
from slipway.store import instances, vims
from slipway.store.database import Database
from slipway.vim.fault_rules import Rule, RuleKind
from slipway.vim_registry.choice import resolve_connection
from slipway.vim_registry.names import vim_id_of
from tests.cases import in_one_world
from tests.functional.cluster_rig import FORCEFUL, ClusterRig, cluster_rig
from tests.functional.rig import SIMULATED_VIM, settings_in
from tests.functional.test_statement_plans import statements
from tests.unit.api.world import a_world

pytestmark = pytest.mark.sqlite_suffices

HALF_A_DAY = timedelta(hours=12)


async def registered(rig: ClusterRig, instance_id: str) -> tuple[Vim, str]:
    """The VIM, and its token."""
    vim_id = vim_id_of(instance_id)
    database, vault = rig.rig.slipway.database, rig.rig.slipway.vault
    found = await database.read(resolve_connection, vault, VimConnectionInfo(vim_id=vim_id), instance_id)
    return await database.read(vims.get, vim_id), found.access_info["bearer_token"]


def ends_in(text: str) -> timedelta:
    return datetime.fromisoformat(text) - datetime.now(UTC)


async def test_each_kubeconfig_has_a_token_of_its_own_that_ends_soon(tmp_path: Path) -> None:
    async with cluster_rig(settings_in(tmp_path)) as rig:
        instance_id = await rig.cluster()
        _, own = await registered(rig, instance_id)
        clusters = rig.rig.slipway.clusters
        first, second = [await clusters.kubeconfig(instance_id) for _ in range(2)]
        tokens = [yaml.safe_load(one.kubeconfig)["users"][0]["user"]["token"] for one in (first, second)]
        assert len({own, *tokens}) == 3
        assert timedelta(hours=11.9) < first.expires - datetime.now(UTC) <= HALF_A_DAY
        short = await clusters.kubeconfig(instance_id, timedelta(minutes=10))
        assert short.expires - datetime.now(UTC) <= timedelta(minutes=10)


async def test_there_is_no_kubeconfig_of_an_instance_that_is_not_there(tmp_path: Path) -> None:
    async with cluster_rig(settings_in(tmp_path), working=False) as rig:
        with pytest.raises(NotFound, match="no-uuid"):
            await rig.rig.slipway.clusters.kubeconfig("no-uuid")


async def test_a_kubeconfig_of_a_cluster_that_does_not_answer_is_refused_with_the_reason(tmp_path: Path) -> None:
    async with cluster_rig(settings_in(tmp_path)) as rig:
        instance_id = await rig.cluster()
        machine = (await rig.machines(instance_id))["masterNode-0"]
        await rig.rig.slipway.simulated.break_machine(SIMULATED_VIM, machine)
        with pytest.raises(VimError, match=r"No API server of the cluster is ready\. Asked: masterNode-0") as refused:
            await rig.rig.slipway.clusters.kubeconfig(instance_id)
        assert refused.value.fault is VimFault.TEMPORARY


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ("GET /readyz", r"No API server of the cluster is ready\. Asked: masterNode-0: no answer within 0\.4 s"),
        ("POST */token", r"timed out after 0\.5 s waiting for the cluster's API"),
    ],
)
async def test_a_person_does_not_wait_long_for_a_kubeconfig_of_a_dead_cluster(
    tmp_path: Path, asked: str, reason: str
) -> None:
    async with cluster_rig(settings_in(tmp_path), liveness=LivenessLimits(token=0.5)) as rig:
        instance_id = await rig.cluster()
        await rig.rules(Rule(kind=RuleKind.LATENCY, call="api", asked=asked, seconds=30))
        async with asyncio.timeout(10):
            with pytest.raises(VimError, match=reason):
                await rig.rig.slipway.clusters.kubeconfig(instance_id)
    assert LivenessLimits().token <= 10  # the command line gives up after a minute


@in_one_world("seconds", ["599", "604801", "-1", "", "a day", "1e4", "\u0661\u0660\u0660\u0660", "9" * 5000])
async def test_how_long_a_kubeconfig_is_valid_has_bounds(database: Database, tmp_path: Path, seconds: str) -> None:
    async with a_world(database, tmp_path) as world:
        where = f"/slipway/v1/clusters/some/kubeconfig?{urlencode({'lifetime_seconds': seconds})}"
        refused = (await world.call("GET", where, 400)).json()
    assert refused["detail"] == "lifetime_seconds: must be a number of seconds from 600 to 604800."


async def test_the_token_of_the_registration_is_renewed_when_half_of_its_time_is_over(tmp_path: Path) -> None:
    async with cluster_rig(settings_in(tmp_path)) as rig:
        slipway, instance_id = rig.rig.slipway, await rig.cluster()
        vim, first = await registered(rig, instance_id)
        assert timedelta(hours=23.9) < ends_in(vim.extra["tokenExpires"]) <= timedelta(hours=24)
        await slipway.cluster_tokens.renew_due()
        assert (await registered(rig, instance_id))[1] == first

        await slipway.vims.modify(vim.id, {"description": "ours"})  # a person's change stays
        later = datetime.now(UTC) + timedelta(hours=13)
        await slipway.cluster_tokens.renew_due(later)
        renewed, second = await registered(rig, instance_id)
        assert second != first
        assert ends_in(renewed.extra["tokenExpires"]) > timedelta(hours=23.9)
        assert (renewed.name, renewed.description, renewed.interface_info) == (vim.name, "ours", vim.interface_info)


async def test_a_registration_without_a_known_end_is_renewed_and_one_of_others_is_left_alone(tmp_path: Path) -> None:
    """Before, tokens were made for a year, and their end stood with the instance."""
    async with cluster_rig(settings_in(tmp_path)) as rig:
        slipway, instance_id = rig.rig.slipway, await rig.cluster()
        vim, first = await registered(rig, instance_id)
        before = msgspec.structs.replace(vim, extra={})
        await slipway.database.write(vims.update, before)
        foreign = msgspec.structs.replace(before, id="foreign", name="foreign")
        await slipway.database.write(vims.insert, foreign)
        await slipway.cluster_tokens.renew_due()
        assert (await registered(rig, instance_id))[1] != first
        assert (await slipway.database.read(vims.get, "foreign")) == foreign


async def test_a_cluster_that_does_not_answer_keeps_its_token_and_is_asked_again(tmp_path: Path) -> None:
    async with cluster_rig(settings_in(tmp_path)) as rig:
        slipway, instance_id = rig.rig.slipway, await rig.cluster()
        _, first = await registered(rig, instance_id)
        await rig.rules(Rule(kind=RuleKind.ERROR, call="api", asked="POST *", status=403, message="no"))
        later = datetime.now(UTC) + timedelta(hours=13)
        await slipway.cluster_tokens.renew_due(later)
        assert (await registered(rig, instance_id))[1] == first
        await rig.rules()
        await slipway.cluster_tokens.renew_due(later)
        assert (await registered(rig, instance_id))[1] != first


LATER = timedelta(hours=13)


async def use_with_own_credentials(rig: ClusterRig, vim_id: str) -> None:
    """An instance that knows the VIM, and brings credentials for it."""
    database, vault, user = rig.rig.slipway.database, rig.rig.slipway.vault, await rig.rig.create()

    def change(connection: Any) -> None:
        instance = instances.get(connection, user)
        own = vault.encrypt_secrets(connection, user, {"bearer_token": "own"}, ())
        instance.vnf.vim_connection_info["cluster"] = VimConnectionInfo(vim_id=vim_id, access_info=own)
        instances.update(connection, instance)

    await database.write(change)


async def test_a_token_is_renewed_though_an_instance_uses_the_vim_with_credentials_of_its_own(tmp_path: Path) -> None:
    async with cluster_rig(settings_in(tmp_path)) as rig:
        slipway, instance_id = rig.rig.slipway, await rig.cluster()
        vim, first = await registered(rig, instance_id)
        await use_with_own_credentials(rig, vim.id)
        older = msgspec.structs.replace(vim, extra={"tokenExpires": datetime.now(UTC).isoformat()})
        await slipway.database.write(vims.update, older)
        await slipway.cluster_tokens.renew_due(datetime.now(UTC) + LATER)
        renewed, second = await registered(rig, instance_id)
        assert second != first
        assert ends_in(renewed.extra["tokenExpires"]) > timedelta(hours=23.9)
        moved = {"interfaceInfo": {"endpoint": "https://elsewhere.example"}, "accessInfo": {"bearer_token": "x"}}
        with pytest.raises(Conflict, match="keeps its interfaceInfo"):  # addresses stay what they were given for
            await slipway.vims.modify(vim.id, moved)


class Damaged:
    """One cluster's token can't be had, for a reason that nobody foresaw."""

    def __init__(self, clusters: RunningClusters, instance_id: str) -> None:
        self._clusters = clusters
        self._damaged = instance_id

    async def token(self, instance_id: str, lifetime: timedelta) -> ServiceAccountToken:
        if instance_id == self._damaged:
            raise SlipwayError("Secret 1 is damaged.")
        await asyncio.sleep(0.1)  # the other one has failed by then
        return await self._clusters.token(instance_id, lifetime)


async def test_one_cluster_whose_secrets_are_damaged_does_not_keep_others_from_their_tokens(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with cluster_rig(settings_in(tmp_path)) as rig:
        slipway = rig.rig.slipway
        damaged, well = await rig.cluster(vim_name="damaged"), await rig.cluster(vim_name="well")
        _, first = await registered(rig, well)
        tokens = ClusterTokens(slipway.database, slipway.vims, Damaged(slipway.clusters, damaged))
        with caplog.at_level(logging.WARNING):
            await tokens.renew_due(datetime.now(UTC) + LATER)
        assert (await registered(rig, well))[1] != first
        assert "the token of VIM damaged is not renewed" in caplog.text
        assert "Secret 1 is damaged" in caplog.text


async def test_a_round_that_fails_is_told_and_is_not_the_last(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with cluster_rig(settings_in(tmp_path), working=False) as rig:
        tokens, database = rig.rig.slipway.cluster_tokens, rig.rig.slipway.database
        with caplog.at_level(logging.ERROR):
            await database.write(lambda connection: connection.execute(text("UPDATE vims SET doc = '{'")) and None)
            serving = asyncio.create_task(tokens.serve())
            await asyncio.wait([serving], timeout=1)
            assert "tokens of clusters are not renewed in this round" in caplog.text
        assert not serving.done()
        tokens.shut_down()
        await serving


async def test_clusters_that_others_registered_cost_no_look_at_all_instances(tmp_path: Path) -> None:
    async with cluster_rig(settings_in(tmp_path)) as rig:
        slipway, instance_id = rig.rig.slipway, await rig.cluster()
        vim, _ = await registered(rig, instance_id)
        foreign = msgspec.structs.replace(vim, id=str(uuid4()), name="foreign", extra={})
        await slipway.database.write(vims.insert, foreign)
        with statements(slipway.database) as seen:
            await slipway.cluster_tokens.renew_due()
        assert seen
        assert not [statement for statement in seen if "each(instances.doc" in statement]


async def test_whose_cluster_a_vim_is_is_looked_for_once(tmp_path: Path) -> None:
    """A cluster that is dead for days would cost a look at all instances every ten minutes."""
    async with cluster_rig(settings_in(tmp_path)) as rig:
        slipway, later = rig.rig.slipway, datetime.now(UTC) + LATER
        await rig.cluster()
        await rig.rules(Rule(kind=RuleKind.ERROR, call="api", asked="POST *", status=403, message="no"))
        await slipway.cluster_tokens.renew_due(later)
        with statements(slipway.database) as seen:
            await slipway.cluster_tokens.renew_due(later)
        assert not [statement for statement in seen if "each(instances.doc" in statement]


def accounts(rig: ClusterRig) -> set[str]:
    """Service accounts and bindings named slipway, in every cluster on the VIM."""

    def look(db: Any, _: Any) -> set[str]:
        return {row[0].rpartition("/")[2] for row in db.execute("SELECT resource FROM object WHERE name = 'slipway'")}

    return rig.connector.simulation.look(SIMULATED_VIM, look)


async def test_the_account_and_so_all_its_tokens_go_with_the_registration(tmp_path: Path) -> None:
    async with cluster_rig(settings_in(tmp_path)) as rig:
        instance_id = await rig.cluster()
        assert accounts(rig) == {"serviceaccounts", "clusterrolebindings"}
        await rig.rules(Rule(kind=RuleKind.ERROR, call="remove_machine", fault=VimFault.PERMANENT, message="no"))
        ended = await rig.rig.run(OperationType.TERMINATE, instance_id, FORCEFUL)
        assert ended.operation_state is State.FAILED_TEMP  # the machines are still there
        assert accounts(rig) == set()


async def test_a_dead_cluster_is_terminated_all_the_same(tmp_path: Path) -> None:
    async with cluster_rig(settings_in(tmp_path)) as rig:
        instance_id = await rig.cluster()
        machine = (await rig.machines(instance_id))["masterNode-0"]
        await rig.rig.slipway.simulated.break_machine(SIMULATED_VIM, machine)
        await rig.completed(OperationType.TERMINATE, instance_id, FORCEFUL)
        await rig.check(instance_id)


async def test_nobody_says_where_the_tokens_of_a_cluster_go(tmp_path: Path) -> None:
    async with cluster_rig(settings_in(tmp_path)) as rig:
        instance_id = await rig.cluster()
        vim, token = await registered(rig, instance_id)
        elsewhere = {
            "interfaceInfo": {"endpoint": "https://127.0.0.1:1", "ssl_ca_cert": "another"},
            "accessInfo": {"bearer_token": "dummy"},
            "extra": {"tokenExpires": "x"},
        }
        for part, change in elsewhere.items():
            for patch in (elsewhere, {part: change}):
                with pytest.raises(Conflict, match="is a cluster that Slipway made, and keeps its"):
                    await rig.rig.slipway.vims.modify(vim.id, patch)
        await rig.rig.slipway.vims.modify(vim.id, {"description": "ours"})
        assert (await registered(rig, instance_id))[1] == token
        assert vim.interface_info["endpoint"] in (await rig.rig.slipway.clusters.kubeconfig(instance_id)).kubeconfig
