"""What every host must do, before there is a cluster."""

from __future__ import annotations

from slipway.cluster.steps import etcd
from slipway.cluster.steps.machine import address_of, facts_of, install, line, run_job
from tests.contract.cluster_world import Check, Stage, refused

NOTHING = "/etc/kubernetes/there-is-none.yaml"


async def what_is_put_is_got(stage: Stage) -> None:
    host = await stage.host(stage.worker)
    assert await host.get("/etc/slipway/one", sudo=True) is None
    await host.put("/etc/slipway/one", "first", sudo=True)
    await host.put("/etc/slipway/one", b"sec\x00nd", sudo=True)
    assert await host.get("/etc/slipway/one", sudo=True) == b"sec\x00nd"
    await refused(host.put("etc/slipway/one", "", sudo=True), "is not the absolute path of a file")


async def installed_files_are_told_when_they_are_new_or_have_changed(stage: Stage) -> None:
    host = await stage.host(stage.worker)
    files: dict[str, str | bytes] = {"/etc/slipway/a": "a", "/etc/slipway/deeper/b": b"b"}
    assert sorted(await install(host, files)) == sorted(files)
    assert await install(host, files) == []
    assert await install(host, files | {"/etc/slipway/a": "A"}) == ["/etc/slipway/a"]
    assert await host.get("/etc/slipway/a", sudo=True) == b"A"


async def a_machine_tells_its_facts(stage: Stage) -> None:
    host = await stage.host(stage.worker)
    facts = await facts_of(host, await address_of(stage.worker, stage.ctx))
    assert facts.machine == "x86_64"
    assert facts.kubeadm is not None
    assert facts.kubeadm.startswith("v1.")
    assert facts.kubeadm.removeprefix("v") in facts.versions
    assert facts.containerd is not None
    assert facts.interface is not None
    assert facts.prefix == 24
    assert (await facts_of(host, "192.0.2.1")).interface is None


async def a_program_that_is_not_there_is_told(stage: Stage) -> None:
    host = await stage.host(stage.worker)
    await refused(host.run(["no-such-program", "x"]), "'no-such-program x'", "exit code 127", "install the program")
    assert (await host.run(["no-such-program"], check=False)).exit_code == 127


async def a_named_job_that_succeeded_stays_until_it_is_forgotten(stage: Stage) -> None:
    host = await stage.host(stage.worker)
    address = await address_of(stage.worker, stage.ctx)
    first = await host.run_job("look", line("facts", address), limit=60)
    assert (await host.run_job("look", line("facts", address), limit=60)).stdout == first.stdout
    other = line("facts", "192.0.2.1")
    await refused(host.run_job("look", other, limit=60), "the job name look belongs to another command")
    await host.remove_job("look")
    await host.remove_job("look")
    assert b"interface" not in (await host.run_job("look", other, limit=60)).stdout
    await host.remove_job("look")


async def a_named_job_that_failed_frees_its_name(stage: Stage) -> None:
    host = await stage.host(stage.worker)
    for _ in range(2):
        await refused(run_job(host, "join", NOTHING, limit=60), "(job join)", "exit code 1", "there-is-none.yaml")
    assert not (await host.run_job("look", line("join", NOTHING), limit=60, sudo=True, check=False)).ok
    await refused(
        host.run_job("look", line("join", "/other"), limit=60, sudo=True), "the job name look belongs to another"
    )
    await host.remove_job("look", sudo=True)


async def there_is_no_cluster_yet(stage: Stage) -> None:
    with_nothing = stage.api()
    await refused(with_nothing.__aenter__(), "No API server of the cluster is ready", "masterNode-0", temporary=True)
    await refused(etcd.members_of(await stage.host(stage.master)), "'etcd'", "exit code 7")


HOST_CHECKS: tuple[Check, ...] = (
    what_is_put_is_got,
    installed_files_are_told_when_they_are_new_or_have_changed,
    a_machine_tells_its_facts,
    a_program_that_is_not_there_is_told,
    a_named_job_that_succeeded_stays_until_it_is_forgotten,
    a_named_job_that_failed_frees_its_name,
    there_is_no_cluster_yet,
)
