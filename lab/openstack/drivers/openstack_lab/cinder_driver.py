"""Cinder driver that keeps each volume in one sparse raw file.

A volume is attached by giving its path to the Nova driver on the same
machine, which makes a loop device of it.  No device mapper, no iSCSI.
"""

import contextlib
import os
import shutil
import subprocess

from cinder import exception, interface
from cinder.common import constants
from cinder.image import image_utils
from cinder.volume import configuration, driver
from oslo_config import cfg
from oslo_utils import units

OPTS = [
    cfg.StrOpt("lab_volumes_dir", default="$state_path/volumes", help="Directory of the volume files."),
]
CONF = cfg.CONF
CONF.register_opts(OPTS, group=configuration.SHARED_CONF_GROUP)


@interface.volumedriver
class FileVolumeDriver(driver.VolumeDriver):
    VERSION = "1.0"
    CI_WIKI_NAME = "none"
    VENDOR = "lab"

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.configuration.append_config_values(OPTS)
        self._dir = None

    # -- service ----------------------------------------------------------
    def do_setup(self, context):
        self._dir = self.configuration.lab_volumes_dir
        os.makedirs(self._dir, exist_ok=True)

    def check_for_setup_error(self):
        if not os.access(self._dir, os.W_OK):
            raise exception.VolumeBackendAPIException(data=f"{self._dir} cannot be written")

    def _update_volume_stats(self):
        usage = shutil.disk_usage(self._dir)
        self._stats = {
            "volume_backend_name": self.configuration.safe_get("volume_backend_name") or "lab",
            "vendor_name": self.VENDOR,
            "driver_version": self.VERSION,
            "storage_protocol": constants.FILE,
            "total_capacity_gb": usage.total // units.Gi,
            "free_capacity_gb": usage.free // units.Gi,
            # The files are sparse: let the scheduler promise more than there is.
            "thin_provisioning_support": True,
            "thick_provisioning_support": False,
            "max_over_subscription_ratio": "100.0",
            "provisioned_capacity_gb": 0,
            "reserved_percentage": 0,
            "multiattach": True,
            "QoS_support": False,
        }

    # -- files ------------------------------------------------------------
    def local_path(self, volume):
        return os.path.join(self._dir, volume["name"])

    def _snapshot_path(self, snapshot):
        return os.path.join(self._dir, snapshot["name"])

    @staticmethod
    def _copy(source, target):
        subprocess.run(["cp", "--sparse=always", "--reflink=auto", source, target], check=True, capture_output=True)

    @staticmethod
    def _resize(path, size_gb):
        with open(path, "ab") as f:
            f.truncate(size_gb * units.Gi)

    @staticmethod
    def _unlink(path):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def create_volume(self, volume):
        self._resize(self.local_path(volume), volume["size"])

    def delete_volume(self, volume):
        self._unlink(self.local_path(volume))

    def extend_volume(self, volume, new_size):
        self._resize(self.local_path(volume), new_size)

    def create_snapshot(self, snapshot):
        self._copy(self.local_path(snapshot["volume"]), self._snapshot_path(snapshot))

    def delete_snapshot(self, snapshot):
        self._unlink(self._snapshot_path(snapshot))

    def create_volume_from_snapshot(self, volume, snapshot):
        self._copy(self._snapshot_path(snapshot), self.local_path(volume))
        self._resize(self.local_path(volume), volume["size"])

    def create_cloned_volume(self, volume, src_vref):
        self._copy(self.local_path(src_vref), self.local_path(volume))
        self._resize(self.local_path(volume), volume["size"])

    # -- images -----------------------------------------------------------
    def clone_image(self, context, volume, image_location, image_meta, image_service):
        # The image's bytes as they are: what a server of this lab boots is
        # chosen by the Nova driver, so no format has to be known or changed.
        path = self.local_path(volume)
        image_utils.fetch(context, image_service, image_meta["id"], path, None, None)
        if os.path.getsize(path) > volume["size"] * units.Gi:
            self._unlink(path)
            raise exception.ImageUnacceptable(image_id=image_meta["id"], reason="larger than the volume")
        self._resize(path, volume["size"])
        return {}, True

    def copy_volume_to_image(self, context, volume, image_service, image_meta):
        with open(self.local_path(volume), "rb") as f:
            image_service.update(context, image_meta["id"], {"container_format": "bare"}, f)

    # -- attachment -------------------------------------------------------
    def ensure_export(self, context, volume):
        pass

    def create_export(self, context, volume, connector):
        pass

    def remove_export(self, context, volume):
        pass

    def validate_connector(self, connector):
        pass

    def initialize_connection(self, volume, connector):
        return {
            "driver_volume_type": "local",
            "data": {"device_path": self.local_path(volume), "volume_id": volume["id"], "access_mode": "rw"},
        }

    def terminate_connection(self, volume, connector, **kwargs):
        pass
