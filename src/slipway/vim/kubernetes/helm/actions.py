"""What the steps of Helm releases do: install or upgrade one and wait for it, uninstall. Each can be run twice.

    look      the revisions that are there, by the labels of their Secrets
    make      one that was begun and never ended is forgotten, and done again; else nothing is done twice
    check     what the release made is ready, by the same rules as all objects

Undo goes back to the revision that stood before, as `helm rollback` does it, or uninstalls.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import msgspec

from slipway.kube.credentials import Credentials
from slipway.kube.deletion import Doomed
from slipway.kube.ownership import INSTANCE, OPERATION
from slipway.model.action import Action, StepContext, VimConnection
from slipway.model.errors import OutgoingRequestError, PackageError, VimError, VimFault
from slipway.model.machine import Outcome
from slipway.model.secrets import is_reference, secret_strings
from slipway.outgoing.guard import Guard
from slipway.vim.kubernetes.actions import remove_objects, roots_of
from slipway.vim.kubernetes.arguments import Placed
from slipway.vim.kubernetes.cnf_parameters import FORCE
from slipway.vim.kubernetes.helm.arguments import UNINSTALL, UPGRADE, ChartSource, Uninstall, Upgrade, VduObject
from slipway.vim.kubernetes.helm.chart import Chart, read_chart
from slipway.vim.kubernetes.helm.fixed_chart import fixed_chart, kinds_alone
from slipway.vim.kubernetes.helm.guarded_proxy import guarded_proxy
from slipway.vim.kubernetes.helm.parameters import Repository
from slipway.vim.kubernetes.helm.process import HelmProgram, Workspace, values_file
from slipway.vim.kubernetes.helm.release_objects import (
    HOOK,
    check_numbers,
    check_rendered,
    is_hook,
    is_hook_at,
    is_kept,
    label_claims,
    label_objects,
    placed,
    read_manifest,
    refuse_hooks_of_others,
    refuse_if_set_by_others,
    remove_claims,
    vdu_positions,
)
from slipway.vim.kubernetes.helm.release_steps import HELM_SECONDS, UNINSTALL_TIMEOUT, UPGRADE_TIMEOUT
from slipway.vim.kubernetes.helm.releases import (
    DIGEST,
    KEY,
    REVISION,
    UNDER_WAY,
    Revision,
    forget_revision,
    found_release,
    mark_ours,
    newest_of_instance,
    note_begun,
    release_id,
    revisions,
)
from slipway.vim.kubernetes.manifests import Manifest
from slipway.vim.kubernetes.object_plan import FileObjects
from slipway.vim.kubernetes.object_steps import READY_TIMEOUT, REMOVE_TIMEOUT
from slipway.vim.kubernetes.session import Session
from slipway.vim.kubernetes.waits import let_new_pods_leave_first, until_gone, until_ready, until_vnfcs

QUICK_SECONDS = 60.0  # for a call of Helm that only asks
HOOK_SECONDS = 540  # that Helm waits for hooks of a chart, and can say so
MOST_HISTORY = 10  # revisions that are kept of a release
KINDS_ALONE = "kinds"  # the digest of a revision that only makes the definitions of a chart's crds/
DELETE_HOOKS, ROLLBACK_HOOKS = ("pre-delete", "post-delete"), ("pre-rollback", "post-rollback")


@dataclass(frozen=True)
class _Place:
    """One release, where it is, and how Helm is called for it."""

    session: Session
    release: str
    namespace: str
    workspace: Workspace

    async def newest(self) -> Revision | None:
        """VimError when the name is somebody else's."""
        found = await revisions(self.session.api, self.namespace, self.release)
        newest = found[-1] if found else None
        if newest and newest.instance_id != self.session.owner.instance_id:
            raise VimError(
                f"Helm release {self.namespace}/{self.release} is there already and was not made for this VNF; it is "
                "left as it is.",
                VimFault.PERMANENT,
                cure="uninstall or rename it, then retry.",
            )
        return newest

    async def helm(self, *verb: str, options: Sequence[str] = (), names: Sequence[str] = ()) -> bytes:
        return await self.workspace.helm(verb, options, (self.release, *names), HELM_SECONDS)

    async def manifests(self) -> tuple[Manifest, ...]:
        printed = await self.workspace.helm(("get", "manifest"), (), (self.release,), QUICK_SECONDS)
        return await asyncio.to_thread(read_manifest, self.release, printed)


class ReleaseActions:
    def __init__(
        self,
        session: Callable[[StepContext], AbstractAsyncContextManager[Session]],
        credentials: Callable[[VimConnection], Awaitable[Credentials]],
        program: HelmProgram,
        guard: Guard,
    ) -> None:
        self._session, self._credentials, self._program, self._guard = session, credentials, program, guard
        self.all: tuple[Action[Any], ...] = (
            Action(UPGRADE, Upgrade, self._upgrade, self._undo_upgrade, timeout=UPGRADE_TIMEOUT),
            Action(UNINSTALL, Uninstall, self._uninstall, timeout=UNINSTALL_TIMEOUT),
        )

    @asynccontextmanager
    async def _place(
        self, ctx: StepContext, session: Session, release: str, namespace: str, secrets: Sequence[str] = ()
    ) -> AsyncIterator[_Place]:
        connection = await ctx.connection()
        credentials = await self._credentials(connection)
        async with AsyncExitStack() as stack:
            try:
                proxy = await stack.enter_async_context(guarded_proxy(self._guard, credentials.server))
            except OutgoingRequestError as error:
                fault = VimFault.TEMPORARY if error.temporary else VimFault.PERMANENT
                raise VimError(error.detail, fault) from None
            workspace = stack.enter_context(self._program.workspace(credentials, namespace, secrets, proxy))
            yield _Place(session, release, namespace, workspace)

    async def _upgrade(self, args: Upgrade, ctx: StepContext) -> Outcome:
        clear: dict[str, Any] = await ctx.decrypt_secrets(args.values)
        async with self._session(ctx) as session:
            namespace = args.namespace or session.namespace
            async with self._place(ctx, session, args.release, namespace, _secrets(args.values, clear)) as place:
                newest = await place.newest()
                if not (newest and newest.ours and newest.is_deployed and newest.digest == args.digest):
                    _refuse_changed(args, newest, place)
                    chart = await self._chart(args.source, ctx)
                    newest = await _made(place, args, newest, chart, clear)
                return await _settled(place, args, args.vdus, args.rules, newest)

    async def _undo_upgrade(self, args: Upgrade, ctx: StepContext) -> Outcome:
        secrets = _secrets(args.values, await ctx.decrypt_secrets(args.values))
        async with self._session(ctx) as session:
            namespace = args.namespace or session.namespace
            async with self._place(ctx, session, args.release, namespace, secrets) as place:
                newest = await place.newest()
                if args.revision is None:
                    return await _taken_away(place, args, newest)
                if newest is None:
                    raise VimError(
                        f"Helm release {namespace}/{args.release} is gone, so that it can't go back to revision "
                        f"{args.revision}.",
                        VimFault.PERMANENT,
                        cure="fail the operation, then heal the whole VNF.",
                    )
                if newest.operation != ctx.operation_id:
                    return Outcome()  # it was not begun
                back = await _rolled_back(place, args, newest)
                return await _settled(place, args, args.former, args.former_rules, back)

    async def _uninstall(self, args: Uninstall, ctx: StepContext) -> Outcome:
        async with self._session(ctx) as session:
            there = dict.fromkeys(args.releases.values())
            if args.all:
                places = {*args.namespaces, args.namespace or session.namespace}
                found = await newest_of_instance(session.api, ctx.instance_id, places)
                there |= dict.fromkeys((one.release, place) for place, one in found)
            await label_claims(session, [one.ref for one in args.objects])
            for release, namespace in reversed(there):
                async with self._place(ctx, session, release, namespace) as place:
                    await _uninstall(place)
            await remove_objects(session, args.objects, args.grace_seconds)
            ids = (*args.releases, *(one.id for one in args.objects), *args.pods)
            return Outcome(removed=ids)

    async def _chart(self, source: ChartSource, ctx: StepContext) -> Chart:
        if source.path is None:
            from slipway.vim.kubernetes.helm.repository import fetch_chart

            password = await ctx.decrypt_secrets(source.password)
            repository = Repository(
                source.url or "", source.chart or "", source.version or "", source.ca, source.username, password
            )
            return await fetch_chart(self._guard, repository)
        contents = {
            path: await ctx.package_file(source.vnfd_id or "", path, digest) for path, digest in source.files.items()
        }
        try:
            return await asyncio.to_thread(read_chart, source.path, contents)
        except PackageError as error:
            raise VimError(error.detail, VimFault.PERMANENT) from None


async def _made(
    place: _Place, args: Upgrade, newest: Revision | None, chart: Chart, values: dict[str, Any]
) -> Revision:
    """A new revision. What the chart would make is looked at first, so that nothing is made of one that can't be."""
    session = place.session
    if newest and newest.operation != session.owner.operation_id and not args.force:
        await refuse_if_set_by_others(session, args.objects, args.fields)
    if newest and (newest.status in UNDER_WAY or newest.digest == KINDS_ALONE):
        session.ctx.progress(f"revision {newest.number} was begun and never ended: it is made again")
        await forget_revision(session.api, place.namespace, newest)
        newest = await place.newest()
    number = newest.number + 1 if newest else 1
    labels = {INSTANCE: session.owner.instance_id, KEY: args.key, DIGEST: args.digest, REVISION: str(number)}
    labels[OPERATION] = session.owner.operation_id
    directory = await asyncio.to_thread(place.workspace.write_tree, "chart", chart.files)
    file = place.workspace.write("values.json", values_file(values))
    upgrade = ["--install", f"--values={file}", "--reset-values", f"--history-max={MOST_HISTORY}"]
    upgrade += [f"--timeout={HOOK_SECONDS}s", "--output=json"]
    if chart.defines_kinds and newest is None:  # nobody may serve them yet: a cluster could not look at objects of them
        rendered = await place.helm("template", options=[f"--values={file}"], names=[str(directory)])
        await _check(place, args, await asyncio.to_thread(read_manifest, args.release, rendered))
        await _make_kinds(place, chart, [*upgrade, _labelled({**labels, DIGEST: KINDS_ALONE})])
    options = [*upgrade, _labelled(labels)]
    rendered = await place.helm("upgrade", options=[*options, "--dry-run=server"], names=[str(directory)])
    looked_at = await asyncio.to_thread(rendered_release, args.release, rendered)
    objects = [one for one in looked_at if not is_hook(one)]
    for one in objects:
        await placed(session, one, place.namespace)  # a kind that nobody serves is named
    await _check(place, args, looked_at)
    session.ctx.progress(f"chart {chart} makes {len(objects)} objects")
    if newest:
        await note_begun(session.api, place.namespace, newest, session.owner.operation_id)
    files = await asyncio.to_thread(fixed_chart, chart, looked_at)
    fixed = await asyncio.to_thread(place.workspace.write_tree, "fixed", files)
    await place.helm("upgrade", options=options, names=[str(fixed)])
    made = await place.newest()
    if made is None or not made.is_deployed:
        raise _not_deployed(place, made)
    return made


def _labelled(labels: Mapping[str, str]) -> str:
    return f"--labels={','.join(f'{name}={value}' for name, value in labels.items())}"


async def _check(place: _Place, args: Upgrade, rendered: Sequence[Manifest]) -> None:
    """Objects and hooks that a chart would make. VimError when it can't be."""
    check_rendered(rendered)
    await refuse_hooks_of_others(place.session, place.namespace, [one for one in rendered if is_hook(one)])
    manifests = [one for one in rendered if not is_hook(one)]
    check_numbers(args.vdus, manifests, vdu_positions(args.release, args.key, args.vdus, manifests))


async def _make_kinds(place: _Place, chart: Chart, options: Sequence[str]) -> None:
    """Helm makes those of a chart when it installs one: here a release of nothing else, which is then forgotten."""
    files = await asyncio.to_thread(kinds_alone, chart)
    directory = await asyncio.to_thread(place.workspace.write_tree, "kinds", files)
    await place.helm("upgrade", options=options, names=[str(directory)])
    if made := await place.newest():
        await forget_revision(place.session.api, place.namespace, made)


async def _settled(
    place: _Place, args: Upgrade, vdus: dict[str, VduObject], files: tuple[FileObjects, ...], revision: Revision
) -> Outcome:
    """What the release has made, labelled and ready by the rules in `files`."""
    session = place.session
    rules = await session.rules(files)
    manifests = await place.manifests()
    positions = vdu_positions(place.release, args.key, vdus, manifests)
    objects = await label_objects(session, place.namespace, args.key, manifests, positions)
    refs = {Placed.found(one).ref: one for one in objects}
    expiring = [ref for ref, one in refs.items() if one.expires]
    found = await until_ready(session, list(refs), rules, READY_TIMEOUT, expiring=expiring)
    pods = await until_vnfcs(session, found, set(vdus))
    gone = {one.id for one in args.objects} - {one.id for one in objects}
    gone |= set(args.pods) - {pod.id for pod in pods}
    release = found_release(revision, place.namespace)
    return Outcome(objects=(release, *objects), machines=tuple(pods), removed=tuple(sorted(gone)))


async def _rolled_back(place: _Place, args: Upgrade, newest: Revision) -> Revision:
    """A revision that says the same as the one that stood before."""
    found = await revisions(place.session.api, place.namespace, place.release)
    former = next((one for one in found if one.number == args.revision), None)
    back_already = (
        former
        and newest.number > former.number
        and newest.is_deployed
        and newest.ours
        and newest.digest == former.digest
    )
    if not back_already:
        roots = await roots_of(place.session, args.objects, None)
        await let_new_pods_leave_first(place.session, roots, args.pods)
        options = [f"--history-max={MOST_HISTORY}", f"--timeout={HOOK_SECONDS}s"]
        await _check_stored_hooks(place, ROLLBACK_HOOKS, args.revision)
        await place.helm("rollback", options=options, names=[str(args.revision)])
    made = await place.newest()
    if made is None or not made.is_deployed:
        raise _not_deployed(place, made)
    await mark_ours(place.session.api, place.namespace, made)
    return made


async def _taken_away(place: _Place, args: Upgrade, newest: Revision | None) -> Outcome:
    """A release that this operation made; volume claims of it hold nothing yet that anybody would miss."""
    session = place.session
    if newest:
        manifests = await place.manifests()
        refs = [await placed(session, one, place.namespace) for one in manifests if not is_kept(one)]
        await label_claims(session, refs, args.key)
        await _uninstall(place)
        await until_gone(session, [Doomed(ref) for ref in refs], REMOVE_TIMEOUT)
    await remove_claims(session, place.namespace, args.key)
    return Outcome(removed=(release_id(args.key), *(one.id for one in args.objects), *args.pods))


async def _uninstall(place: _Place) -> None:
    if await place.newest():
        await _check_stored_hooks(place, DELETE_HOOKS)
        options = ["--ignore-not-found", "--cascade=foreground", f"--timeout={HOOK_SECONDS}s"]
        await place.helm("uninstall", options=options)


async def _check_stored_hooks(place: _Place, moments: Collection[str], revision: int | None = None) -> None:
    """Since the revision was made, somebody else may have made what has the name of a hook of it."""
    options = [f"--revision={revision}"] if revision is not None else []
    printed = await place.workspace.helm(("get", "hooks"), options, (place.release,), QUICK_SECONDS)
    stored = await asyncio.to_thread(read_manifest, place.release, printed)
    hooks = [one for one in stored if is_hook_at(one, moments)]
    await refuse_hooks_of_others(place.session, place.namespace, hooks)


def _refuse_changed(args: Upgrade, newest: Revision | None, place: _Place) -> None:
    """What others have done to a release is not overwritten, unless the request asks for it."""
    if newest is None or newest.ours or args.force:
        return
    name = f"Helm release {place.namespace}/{place.release}"
    if newest.status in UNDER_WAY:
        raise VimError(f"{name} is {newest.status}: somebody else is changing it.", VimFault.TEMPORARY)
    raise VimError(
        f"{name} is not changed: somebody else made its revision {newest.number}.",
        VimFault.PERMANENT,
        cure=f"roll it back (helm rollback), or roll back and ask again with additionalParams {FORCE}=true.",
    )


def _not_deployed(place: _Place, made: Revision | None) -> VimError:
    state = made.status if made else "gone"
    return VimError(f"Helm release {place.namespace}/{place.release} is {state}.", VimFault.TEMPORARY)


def rendered_release(release: str, printed: bytes) -> list[Manifest]:
    """What a release as `--output=json` prints it would keep, and its hooks. VimError as of `read_manifest`."""
    try:
        found = msgspec.json.decode(printed, type=_Rendered)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise VimError(
            "helm upgrade --output=json printed something else.", VimFault.PERMANENT, cure="use Helm 3.13 or newer."
        ) from None
    texts = [one.manifest.encode() for one in found.hooks or ()]
    hooks = read_manifest(release, *texts)
    if others := [one for one in hooks if not is_hook(one)]:
        raise VimError(
            f"{others[0]} is no hook of itself: a hook of the chart is a List.",
            VimFault.PERMANENT,
            cure=f"write its objects one by one, each with the annotation {HOOK}.",
        )
    return [*read_manifest(release, found.manifest.encode()), *hooks]


class _Hook(msgspec.Struct):
    manifest: str = ""


class _Rendered(msgspec.Struct):
    manifest: str = ""
    hooks: list[_Hook] | None = None


def _secrets(values: Any, clear: Any) -> list[str]:
    """Texts that no error may show: those that references stood for."""
    if is_reference(values):
        return list(secret_strings(clear))
    if isinstance(values, dict):
        return [text for key, value in values.items() for text in _secrets(value, clear[key])]
    if isinstance(values, list | tuple):
        return [text for one, other in zip(values, clear, strict=True) for text in _secrets(one, other)]
    return []
