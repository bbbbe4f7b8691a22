"""Nova compute driver whose servers are light machines (see machine.py).

Each server gets exactly the MAC and fixed addresses that Neutron gave its
ports, its config drive's content where cloud-init looks for it, and its
Cinder volumes as block devices.  An image that is a tar archive (of a root
file system with an init, possibly compressed) is what the server boots; any
other image stands for the lab's own base.
"""

import contextlib
import json
import os
import shutil
import tarfile
import tempfile

import nova.conf
import os_resource_classes as orc
from nova import exception
from nova.api.metadata import base as instance_metadata
from nova.compute import power_state, task_states
from nova.image import glance
from nova.objects import fields as obj_fields
from nova.virt import driver, hardware
from oslo_config import cfg
from oslo_log import log as logging
from oslo_serialization import jsonutils
from oslo_utils import versionutils

from openstack_lab import machine

LOG = logging.getLogger(__name__)
CONF = nova.conf.CONF
CONF.register_opts(
    [
        cfg.StrOpt("base", help="Root file system directory that servers boot when their image is not one."),
        cfg.StrOpt(
            "images",
            default="$state_path/images",
            help="Directory of the root file systems made of images; hosts can share it.",
        ),
        cfg.StrOpt("boot", help="The script that starts a machine."),
        cfg.IntOpt("vcpus", default=256, help="Processors to announce."),
        cfg.IntOpt("memory_mb", default=1048576, help="Memory to announce."),
        cfg.IntOpt("disk_gb", default=102400, help="Disk to announce."),
    ],
    group="lab",
)

STATES = {
    machine.RUNNING: power_state.RUNNING,
    machine.PAUSED: power_state.PAUSED,
    machine.STOPPED: power_state.SHUTDOWN,
}
SEED = "var/lib/cloud/seed/config_drive"


class LabHostDriver(driver.ComputeDriver):
    capabilities = dict(  # noqa: RUF012 - as Nova has it
        driver.ComputeDriver.capabilities,
        supports_attach_interface=True,
        supports_device_tagging=True,
        supports_tagged_attach_interface=True,
        supports_tagged_attach_volume=True,
        supports_extend_volume=True,
        supports_multiattach=True,
        supports_migrate_to_same_host=True,
        supports_image_type_raw=True,
        supports_image_type_qcow2=True,
        supports_image_type_vmdk=True,
        supports_image_type_vdi=True,
        supports_image_type_vhd=True,
        supports_image_type_iso=True,
    )

    def __init__(self, virtapi, read_only=False):
        super().__init__(virtapi)
        self._machines = machine.Machines(os.path.join(CONF.state_path, "machines"), CONF.lab.boot)
        self._images = CONF.lab.images

    def init_host(self, host):
        for name in ("base", "boot"):
            path = getattr(CONF.lab, name)
            if not path or not os.path.exists(path):
                raise exception.InvalidConfiguration(f"[lab] {name}: {path} is not there")
        os.makedirs(self._images, exist_ok=True)

    # -- what there is ----------------------------------------------------
    def list_instances(self):
        return self.list_instance_uuids()

    def list_instance_uuids(self):
        return self._machines.list()

    def instance_exists(self, instance):
        return self._machines.exists(instance.uuid)

    def instance_on_disk(self, instance):
        return self._machines.exists(instance.uuid)

    def get_info(self, instance, use_cache=True):
        if not self._machines.exists(instance.uuid):
            raise exception.InstanceNotFound(instance_id=instance.uuid)
        return hardware.InstanceInfo(state=STATES[self._machines.state(instance.uuid)])

    def get_available_nodes(self, refresh=False):
        return [CONF.host]

    def get_host_ip_addr(self):
        return CONF.my_ip

    def get_available_resource(self, nodename):
        return {
            "vcpus": CONF.lab.vcpus,
            "vcpus_used": 0,
            "memory_mb": CONF.lab.memory_mb,
            "memory_mb_used": 0,
            "local_gb": CONF.lab.disk_gb,
            "local_gb_used": 0,
            "hypervisor_type": "lab",
            "hypervisor_version": versionutils.convert_version_to_int("1.0"),
            "hypervisor_hostname": nodename,
            "disk_available_least": 0,
            "numa_topology": None,
            "cpu_info": jsonutils.dumps({"arch": "x86_64"}),
            "supported_instances": [
                (obj_fields.Architecture.X86_64, obj_fields.HVType.LXC, obj_fields.VMMode.EXE),
                (obj_fields.Architecture.X86_64, obj_fields.HVType.KVM, obj_fields.VMMode.HVM),
            ],
        }

    def update_provider_tree(self, provider_tree, nodename, allocations=None):
        ratios = self._get_allocation_ratios(provider_tree.data(nodename).inventory)
        totals = {orc.VCPU: CONF.lab.vcpus, orc.MEMORY_MB: CONF.lab.memory_mb, orc.DISK_GB: CONF.lab.disk_gb}
        provider_tree.update_inventory(
            nodename,
            {
                name: {
                    "total": total,
                    "min_unit": 1,
                    "max_unit": total,
                    "step_size": 1,
                    "reserved": 0,
                    "allocation_ratio": ratios[name],
                }
                for name, total in totals.items()
            },
        )

    # -- life -------------------------------------------------------------
    def spawn(
        self,
        context,
        instance,
        image_meta,
        injected_files,
        admin_password,
        allocations,
        network_info=None,
        block_device_info=None,
        power_on=True,
        accel_info=None,
    ):
        if self._machines.exists(instance.uuid):
            # An earlier attempt, or a rebuild.
            self._machines.destroy(instance.uuid)
        base = self._base(context, instance)
        files = {
            os.path.join(SEED, path): data.encode() if isinstance(data, str) else data
            for path, data in self._metadata(instance, injected_files, admin_password, network_info)
        }
        with self._as_nova_error(instance):
            self._machines.create(
                instance.uuid,
                instance.hostname or "server",
                base,
                [self._nic(vif) for vif in network_info or ()],
                self._disks(block_device_info),
                files,
            )
            if power_on:
                self._machines.start(instance.uuid)

    def destroy(
        self, context, instance, network_info, block_device_info=None, destroy_disks=True, destroy_secrets=True
    ):
        if destroy_disks:
            self._machines.destroy(instance.uuid)
        elif self._machines.exists(instance.uuid):
            self._machines.stop(instance.uuid)

    def cleanup(
        self,
        context,
        instance,
        network_info,
        block_device_info=None,
        destroy_disks=True,
        migrate_data=None,
        destroy_vifs=True,
        destroy_secrets=True,
    ):
        if destroy_disks:
            self._machines.destroy(instance.uuid)

    def power_off(self, instance, timeout=0, retry_interval=0):
        self._machines.stop(instance.uuid, timeout)

    def power_on(self, context, instance, network_info, block_device_info=None, accel_info=None, share_info=None):
        with self._as_nova_error(instance):
            self._machines.start(instance.uuid)

    def reboot(
        self,
        context,
        instance,
        network_info,
        reboot_type,
        block_device_info=None,
        bad_volumes_callback=None,
        accel_info=None,
        share_info=None,
    ):
        with self._as_nova_error(instance):
            self._machines.stop(instance.uuid, 30 if reboot_type.upper() == "SOFT" else 0)
            self._machines.start(instance.uuid)

    def pause(self, instance):
        self._machines.freeze(instance.uuid, True)

    def unpause(self, instance):
        self._machines.freeze(instance.uuid, False)

    def suspend(self, context, instance):
        self._machines.freeze(instance.uuid, True)

    def resume(self, context, instance, network_info, block_device_info=None, share_info=None):
        self._machines.freeze(instance.uuid, False)

    def resume_state_on_host_boot(self, context, instance, network_info, share_info=None, block_device_info=None):
        with self._as_nova_error(instance):
            self._machines.start(instance.uuid)

    # A resize keeps the machine as it is: nothing of a flavor is enforced. On another host it moves to its directory.
    def migrate_disk_and_power_off(
        self, context, instance, dest, flavor, network_info, block_device_info=None, timeout=0, retry_interval=0
    ):
        self._machines.stop(instance.uuid, timeout)
        return json.dumps(self._machines.path(instance.uuid))

    def finish_migration(
        self,
        context,
        migration,
        instance,
        disk_info,
        network_info,
        image_meta,
        resize_instance,
        allocations,
        block_device_info=None,
        power_on=True,
        share_info=None,
    ):
        if not self._machines.exists(instance.uuid):
            os.makedirs(self._machines.directory, exist_ok=True)
            os.rename(json.loads(disk_info), self._machines.path(instance.uuid))
        if power_on:
            self._machines.start(instance.uuid)

    def finish_revert_migration(
        self, context, instance, network_info, migration, block_device_info=None, power_on=True, share_info=None
    ):
        if power_on:
            self._machines.start(instance.uuid)

    def confirm_migration(self, context, migration, instance, network_info):
        pass

    # -- inside -----------------------------------------------------------
    def set_admin_password(self, instance, new_pass):
        user = instance.image_meta.properties.get("os_admin_user") or "root"
        with self._as_nova_error(instance):
            self._machines.execute(instance.uuid, "chpasswd", stdin=f"{user}:{new_pass}\n")

    def get_console_output(self, context, instance):
        return self._machines.console(instance.uuid)

    def snapshot(self, context, instance, image_id, update_task_state):
        """An archive of the root file system, which can be booted again."""
        pid = self._machines.pid(instance.uuid)
        if not pid:
            raise exception.InstanceNotRunning(instance_id=instance.uuid)
        update_task_state(task_state=task_states.IMAGE_PENDING_UPLOAD)
        image_api = glance.API()
        image = {
            "name": image_api.get(context, image_id)["name"],
            "status": "active",
            "disk_format": "raw",
            "container_format": "bare",
            "properties": {"image_location": "snapshot", "image_state": "available", "owner_id": instance.project_id},
        }
        with tempfile.NamedTemporaryFile(dir=self._images) as archive:
            machine.run(
                "tar",
                "--create",
                "--one-file-system",
                "--numeric-owner",
                "--file",
                archive.name,
                "--directory",
                f"/proc/{pid}/root",
                "--exclude=./var/lib/cloud/*",
                ".",
            )
            update_task_state(task_state=task_states.IMAGE_UPLOADING, expected_state=task_states.IMAGE_PENDING_UPLOAD)
            with open(archive.name, "rb") as data:
                image_api.update(context, image_id, image, data)

    # -- network ----------------------------------------------------------
    @staticmethod
    def _nic(vif):
        network = vif["network"]
        nic = {
            "id": vif["id"],
            "mac": vif["address"],
            "mtu": network.get_meta("mtu") or 1500,
            "tap": "tap" + vif["id"][:11],
            "bridge": "brq" + network["id"][:11],
            "addresses": [],
            "gateways": [],
            "routes": [],
        }
        for subnet in network["subnets"]:
            prefix = subnet["cidr"].split("/")[1]
            nic["addresses"] += [f"{ip['address']}/{prefix}" for ip in subnet["ips"]]
            gateway = subnet["gateway"] and subnet["gateway"]["address"]
            if gateway:
                nic["gateways"].append(f"{gateway}/{prefix}")
                nic["routes"].append(("default", gateway))
            nic["routes"] += [(r["cidr"], r["gateway"]["address"]) for r in subnet["routes"] if r["gateway"]]
        return nic

    def plug_vifs(self, instance, network_info):
        pass

    def unplug_vifs(self, instance, network_info):
        pass

    def attach_interface(self, context, instance, image_meta, vif):
        try:
            self._machines.attach_nic(instance.uuid, self._nic(vif))
        except machine.MachineError:
            LOG.exception("interface %s", vif["id"], instance=instance)
            raise exception.InterfaceAttachFailed(instance_uuid=instance.uuid) from None

    def detach_interface(self, context, instance, vif):
        try:
            self._machines.detach_nic(instance.uuid, vif["id"])
        except FileNotFoundError:
            raise exception.InterfaceDetachFailed(instance_uuid=instance.uuid) from None

    # -- volumes ----------------------------------------------------------
    @staticmethod
    def _path(connection_info):
        if connection_info["driver_volume_type"] != "local":
            raise exception.InvalidVolume(reason="the lab attaches only files of this machine")
        return connection_info["data"]["device_path"]

    def _disks(self, block_device_info):
        return [
            {"device": bdm["mount_device"].rpartition("/")[2], "path": self._path(bdm["connection_info"])}
            for bdm in driver.block_device_info_get_mapping(block_device_info)
        ]

    def default_root_device_name(self, instance, image_meta, root_bdm):
        # Nova names the other disks after this one: vdb, vdc, ...
        return "/dev/vda"

    def get_volume_connector(self, instance):
        return {
            "ip": CONF.my_block_storage_ip,
            "host": CONF.host,
            "platform": "x86_64",
            "os_type": "linux",
            "multipath": False,
        }

    def attach_volume(
        self, context, connection_info, instance, mountpoint, disk_bus=None, device_type=None, encryption=None
    ):
        with self._as_nova_error(instance):
            self._machines.attach_disk(instance.uuid, mountpoint.rpartition("/")[2], self._path(connection_info))

    def detach_volume(self, context, connection_info, instance, mountpoint, encryption=None):
        self._machines.detach_disk(instance.uuid, self._path(connection_info))

    def extend_volume(self, context, connection_info, instance, requested_size):
        self._machines.resize_disk(self._path(connection_info))

    # -- images -----------------------------------------------------------
    def _base(self, context, instance):
        """The root file system directory of the server's image."""
        image_id = instance.image_ref
        if not image_id:
            # Booted from a volume.
            return CONF.lab.base
        ready = os.path.join(self._images, image_id)
        with machine.locked(os.path.join(self._images, "lock")):
            if os.path.islink(ready) or os.path.isdir(ready):
                return os.path.realpath(ready)
            new = tempfile.mkdtemp(dir=self._images)
            try:
                archive = os.path.join(new, "image")
                glance.API().download(context, image_id, dest_path=archive)
                if not tarfile.is_tarfile(archive):
                    os.symlink(CONF.lab.base, ready)
                    return CONF.lab.base
                root = os.path.join(new, "root")
                os.mkdir(root)
                machine.run("tar", "--extract", "--numeric-owner", "--file", archive, "--directory", root)
                if not os.path.lexists(os.path.join(root, "sbin/init")):
                    raise exception.ImageUnacceptable(image_id=image_id, reason="has no /sbin/init")
                os.rename(root, ready)
                return ready
            except machine.MachineError as e:
                raise exception.ImageUnacceptable(image_id=image_id, reason=str(e)) from e
            finally:
                shutil.rmtree(new, ignore_errors=True)

    @staticmethod
    def _metadata(instance, injected_files, admin_password, network_info):
        extra = {"admin_pass": admin_password} if admin_password else {}
        return instance_metadata.InstanceMetadata(
            instance, content=injected_files, extra_md=extra, network_info=network_info
        ).metadata_for_config_drive()

    @contextlib.contextmanager
    def _as_nova_error(self, instance):
        try:
            yield
        except machine.MachineError as e:
            LOG.exception("machine", instance=instance)
            raise exception.InternalError(str(e)) from e
