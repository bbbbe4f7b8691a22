"""What a test finds ready: flavors, an image, a network.  Idempotent."""

import io
import ipaddress
import os

import openstack

admin = openstack.connect(cloud="lab-admin")

for name, vcpus, ram, disk in (
    ("m1.tiny", 1, 512, 1),
    ("m1.small", 1, 2048, 20),
    ("m1.medium", 2, 4096, 40),
    ("m1.large", 4, 8192, 80),
):
    if not admin.compute.find_flavor(name):
        admin.compute.create_flavor(name=name, vcpus=vcpus, ram=ram, disk=disk)

if not admin.block_storage.find_type("lab"):
    admin.block_storage.create_type(name="lab", extra_specs={"volume_backend_name": "lab"})

if not admin.image.find_image("lab-debian"):
    # Not a root file system: the Nova driver boots its own base for it.
    admin.image.create_image(
        name="lab-debian",
        disk_format="raw",
        container_format="bare",
        visibility="public",
        min_disk=1,
        min_ram=256,
        validate_checksum=False,
        data=io.BytesIO(b"Stands for the base of the lab.\n"),
        os_distro="debian",
    )

project = admin.identity.find_project("lab")
if not admin.network.find_network("mgmt"):
    cidr = ipaddress.ip_network(os.environ["LAB_CIDR"])
    network = admin.network.create_network(name="mgmt", shared=True, project_id=project.id)
    admin.network.create_subnet(
        name="mgmt",
        network_id=network.id,
        project_id=project.id,
        ip_version=cidr.version,
        cidr=str(cidr),
        gateway_ip=str(cidr[1]),
    )
