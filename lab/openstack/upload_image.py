"""Upload a file as a public image, in the place of one with other content:   upload_image.py NAME FILE"""

import hashlib
import sys

import openstack

name, path = sys.argv[1:]
with open(path, "rb") as file:
    digest = hashlib.file_digest(file, "sha256").hexdigest()
admin = openstack.connect(cloud="lab-admin")
present = list(admin.image.images(name=name))
if not any(image.properties.get("lab_digest") == digest for image in present):
    for image in present:
        admin.image.delete_image(image)
    with open(path, "rb") as file:
        admin.image.create_image(
            name=name,
            disk_format="raw",
            container_format="bare",
            visibility="public",
            validate_checksum=False,
            data=file,
            lab_digest=digest,
        )
