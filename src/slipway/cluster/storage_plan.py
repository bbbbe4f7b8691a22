"""Plans with a storage server: what it adds to what is done to the cluster. Pure.

Its own machine is set up while the cluster is. Volumes are registered when they are served and every node can mount
them, and the cluster becomes a VIM after that. Before the machine is replaced nobody may use its volumes: they leave
the cluster, and come back when they are served again.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from slipway.cluster.change import ClusterChange, masters
from slipway.cluster.naming import node_name
from slipway.cluster.nfs_config import Export
from slipway.cluster.parameters import ClusterParameters, StorageServerParameters, parameters_now
from slipway.cluster.persistent_volumes import VolumeManifest, persistent_volumes
from slipway.cluster.planning import step
from slipway.cluster.request import ClusterRequest, stored_parameters
from slipway.cluster.spec import ClusterSpec, Node, login_of
from slipway.cluster.steps.actions import action_name
from slipway.cluster.steps.arguments import Ready, Register
from slipway.cluster.steps.storage_arguments import (
    CheckVolumes,
    DeleteVolumes,
    Mount,
    MountVolumes,
    NfsClient,
    RegisterVolumes,
    ServeNfs,
)
from slipway.cluster.storage_checks import VOLUMES, is_within
from slipway.model.errors import PackageError, Unprocessable
from slipway.model.hooks import Batch, Edges, HookPlan
from slipway.model.machine import FoundMachine
from slipway.model.plan import Effect, Plan, Step, Verb
from slipway.model.target import VnfcMember, VnfTarget
from slipway.vim.openstack.base_hot import parse
from slipway.vim.openstack.hot_template import VOLUME, resources_of

CHECK = "check that no persistent volume is in use"
DELETE = "delete the persistent volumes"
REGISTER = "register the persistent volumes"


def with_storage(plan: HookPlan, change: ClusterChange, edges: Edges) -> HookPlan:
    server = change.parameters.storage_server
    if server is None:
        return plan
    planner = _Planner(change, server)
    if (target := change.situation.change.after) and planner.is_new:
        check_template(server, target)
    if "start" in edges and planner.leaves_cluster:
        plan = dataclasses.replace(plan, start=planner.take_volumes_away(plan.start))
    if "end" not in edges:
        return plan
    clients = dict(planner.clients(plan.end))
    rollouts = tuple(tuple(_with_clients(batch, clients) for batch in rollout) for rollout in plan.rollouts)
    end = Plan((*plan.end.steps, *clients.values(), *planner.set_up()))
    return dataclasses.replace(plan, end=planner.with_volumes(end, clients.values()), rollouts=rollouts)


@dataclass(frozen=True)
class _Planner:
    change: ClusterChange
    server: StorageServerParameters

    @property
    def before(self) -> Node | None:
        return _server_among(self.change.request, self.server, self.change.situation.found.machines)

    @property
    def after(self) -> Node | None:
        target = self.change.situation.change.after
        return _server_among(self.change.request, self.server, target.members if target else ())

    @property
    def is_new(self) -> bool:
        before, after = self.before, self.after
        return after is not None and (before is None or before.machine != after.machine)

    @property
    def cluster_stays(self) -> bool:
        return bool(masters(self.change.staying))

    @property
    def leaves_cluster(self) -> bool:
        """Whether a machine goes whose volumes the cluster has."""
        return self.is_new and self.before is not None and self.cluster_stays

    @property
    def cluster(self) -> ClusterSpec:
        through = masters(self.change.staying) if self.cluster_stays else masters(self.change.after)
        return self.change.cluster(through)

    @property
    def volumes(self) -> tuple[VolumeManifest, ...]:
        target = self.change.situation.change.after
        return persistent_volumes(self.change.parameters, target.files) if target else ()

    @property
    def former(self) -> ClusterParameters:
        """What the server was set up with that is there, as far as it is stored."""
        return parameters_now(stored_parameters(self.change.situation), {})

    @property
    def former_volumes(self) -> tuple[VolumeManifest, ...]:
        """Manifests of a new package that can't be read were registered by nobody."""
        target = self.change.situation.change.after
        with contextlib.suppress(PackageError):
            return persistent_volumes(self.former, target.files) if target else ()
        return ()

    def take_volumes_away(self, start: Plan) -> Plan:
        """Asked before all else: a node that has left the cluster meanwhile could not be rolled back."""
        server, served, volumes = self.before, self.former.storage_server, self.former_volumes
        if server is None or served is None:
            return start
        check = step(CHECK, CheckVolumes(cluster=self.cluster), node=server)
        gone = DeleteVolumes(cluster=self.cluster, server=server, mounts=_mounts(served), exports=_exports(served),
                             volumes=volumes, setup=self.change.request.setup)  # fmt: skip
        effects = [Effect(Verb.REMOVE, "persistent volume", volume.name) for volume in volumes]
        delete = step(DELETE, gone, node=server, after=[CHECK], effects=effects)
        return Plan((*Plan.chain(Plan.of(check), start).steps, delete))

    def clients(self, end: Plan) -> Iterator[tuple[str, Step]]:
        """By slot; on every node that comes, once it is Ready."""
        ready = {slot: one.id for one in end.steps if one.action == action_name(Ready) for slot in one.nodes}
        for node in self.change.joining:
            args = NfsClient(node=node, cluster=self.cluster, setup=self.change.request.setup)
            after = [ready[node.slot]] if node.slot in ready else []
            yield node.slot, step(client_id(node), args, node=node, after=after)

    def set_up(self) -> Iterator[Step]:
        server = self.after
        if server is None or not self.is_new:
            return
        mounted, cluster = f"mount volumes {server.slot}", self.cluster
        yield step(mounted, MountVolumes(node=server, cluster=cluster, mounts=_mounts(self.server)), node=server)
        exports = _exports(self.server)
        serve = ServeNfs(node=server, cluster=cluster, exports=exports, setup=self.change.request.setup)
        effects = [Effect(Verb.MAKE, "NFS export", export.directory) for export in exports]
        yield step(_serve_id(server), serve, node=server, after=[mounted], effects=effects)

    def with_volumes(self, end: Plan, clients: Iterable[Step]) -> Plan:
        """Registered behind all that they need, and before the cluster is registered."""
        server = self.after
        if server is None or not (self.is_new or not self.cluster_stays) or not self.volumes:
            return end
        vim = next((one for one in end.steps if one.action == action_name(Register)), None)
        after = dict.fromkeys([_serve_id(server), *(one.id for one in clients), *(vim.after if vim else ())])
        args = RegisterVolumes(cluster=self.cluster, server=server, volumes=self.volumes,
                               cluster_stays=self.cluster_stays)  # fmt: skip
        effects = [Effect(Verb.MAKE, "persistent volume", volume.name) for volume in self.volumes]
        register = step(REGISTER, args, after=list(after), effects=effects)
        others = tuple(one for one in end.steps if one is not vim)
        return Plan((*others, register, *([replace(vim, after=(*vim.after, REGISTER))] if vim else [])))


def _mounts(server: StorageServerParameters) -> tuple[Mount, ...]:
    return tuple(Mount(storage=one.volume_resource_id, path=one.mount_to) for one in server.cinder_volume_setup_params)


def _exports(server: StorageServerParameters) -> tuple[Export, ...]:
    """One for each directory, with all networks that may use it."""
    clients: dict[str, list[str]] = {}
    for one in server.nfs_server_setup_params:
        clients.setdefault(one.export_dir, []).append(one.export_to)
    places = [mount.path for mount in _mounts(server)]
    return tuple(
        Export(directory=directory, mount=next(place for place in places if is_within(directory, place)),
               clients=tuple(networks))
        for directory, networks in clients.items()
    )  # fmt: skip


def client_id(node: Node) -> str:
    return f"NFS client {node.slot}"


def _server_among(
    request: ClusterRequest, server: StorageServerParameters, machines: Iterable[VnfcMember | FoundMachine]
) -> Node | None:
    instance_id = request.situation.instance.vnf.id
    for machine in machines:
        if machine.vdu == request.checked.storage:
            return Node(
                machine=machine.id,
                slot=machine.name,
                name=node_name(instance_id, machine.name),
                master=False,
                ssh=server.ssh_cp_name,
                nic=server.traffic_cp_name,
                login=login_of(server),
            )
    return None


def _with_clients(batch: Batch, clients: Mapping[str, Step]) -> Batch:
    """Nodes serve again when pods on them can have their volumes."""
    return dataclasses.replace(
        batch, back=(*batch.back, *(clients[node].id for node in batch.nodes if node in clients))
    )


def check_template(server: StorageServerParameters, target: VnfTarget) -> None:
    """Where the package brings the VIM's template, and the VIM reads it, the volumes must be resources of it."""
    base = parse(target)
    if base is None:
        return
    templates = (base.template, *base.nested.values())
    known = {name for one in templates for name, made in resources_of(one).items() if made["type"] == VOLUME}
    for at, volume in enumerate(server.cinder_volume_setup_params):
        if volume.volume_resource_id not in known:
            raise Unprocessable(
                f"{VOLUMES}[{at}].volume_resource_id: {base.path} has no {VOLUME} {volume.volume_resource_id!a}; "
                f"write one of: {', '.join(sorted(known)) or '(there is none)'}."
            )


def _serve_id(server: Node) -> str:
    return f"serve NFS {server.slot}"
