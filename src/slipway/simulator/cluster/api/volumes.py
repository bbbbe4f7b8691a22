"""Persistent volumes and claims: bound by name, or to the first volume of the same class that allows the access.

Sizes are not compared, and nothing is mounted. A volume that is deleted while it is bound stays until its claim goes.
"""

from __future__ import annotations

from slipway.kube.interface import Object
from slipway.simulator.cluster.api.kinds import CLAIM, PERSISTENT_VOLUME
from slipway.simulator.cluster.api.objects import ObjectStore, now

PROTECTION = "kubernetes.io/pv-protection"


def reconcile_volume(store: ObjectStore, volume: Object) -> None:
    if not (volume.get("status") or {}).get("phase"):
        volume["metadata"].setdefault("finalizers", []).append(PROTECTION)
        store.put(PERSISTENT_VOLUME, volume | {"status": {"phase": "Available"}})
        for claim in store.all_of(CLAIM):
            reconcile_claim(store, claim)


def reconcile_claim(store: ObjectStore, claim: Object) -> None:
    if (claim.get("status") or {}).get("phase") == "Bound":
        return
    volume = next((one for one in store.all_of(PERSISTENT_VOLUME) if _fits(one, claim)), None)
    if volume is None:
        if not claim.get("status"):
            store.put(CLAIM, claim | {"status": {"phase": "Pending"}})
        return
    metadata = claim["metadata"]
    reference = {"kind": "PersistentVolumeClaim", **{key: metadata[key] for key in ("namespace", "name", "uid")}}
    volume["spec"]["claimRef"] = reference
    store.put(PERSISTENT_VOLUME, volume | {"status": {"phase": "Bound"}})
    claim["spec"]["volumeName"] = volume["metadata"]["name"]
    store.put(CLAIM, claim | {"status": {"phase": "Bound"}})


def remove_volume(store: ObjectStore, volume: Object) -> None:
    if volume["status"]["phase"] != "Bound":
        store.remove(PERSISTENT_VOLUME, volume)
    elif "deletionTimestamp" not in volume["metadata"]:
        volume["metadata"]["deletionTimestamp"] = now()
        store.put(PERSISTENT_VOLUME, volume)


def release_claim(store: ObjectStore, claim: Object) -> None:
    """Its data stays for whoever looks after it: nothing else is for NFS."""
    for volume in store.all_of(PERSISTENT_VOLUME):
        if (volume["spec"].get("claimRef") or {}).get("uid") == claim["metadata"]["uid"]:
            if "deletionTimestamp" in volume["metadata"]:
                store.remove(PERSISTENT_VOLUME, volume)
            else:
                store.put(PERSISTENT_VOLUME, volume | {"status": {"phase": "Released"}})


def _fits(volume: Object, claim: Object) -> bool:
    spec, wanted = volume["spec"], claim["spec"]
    if (volume.get("status") or {}).get("phase") != "Available" or "deletionTimestamp" in volume["metadata"]:
        return False
    if wanted.get("volumeName", volume["metadata"]["name"]) != volume["metadata"]["name"]:
        return False
    same_class = (spec.get("storageClassName") or "") == (wanted.get("storageClassName") or "")
    return same_class and set(wanted.get("accessModes", ())) <= set(spec.get("accessModes", ()))
