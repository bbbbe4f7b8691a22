"""Two small HOTs of a package, one in each of the forms that packages have, and VNFDs that go with them."""

from __future__ import annotations

from typing import Any

from slipway.model.descriptor import Aspect, ConnectionPoint, Flavour, Storage, Vdu
from tests.unit.vim.openstack_targets import GIB, image

TOP = "BaseHOT/simple/top.yaml"

GROUPS = {
    TOP: """
heat_template_version: 2013-05-23
parameters:
  nfv: {type: json}
  worker_instance_desired_capacity: {type: number}
  key: {type: string}
  colour: {type: string, default: red}
resources:
  master_instance:
    type: OS::Heat::AutoScalingGroup
    properties:
      min_size: 1
      max_size: 3
      desired_capacity: 1
      resource:
        type: master.yaml
        properties:
          flavor: {get_param: [nfv, VDU, masterNode, flavor]}
          image: {get_param: [nfv, VDU, masterNode, image]}
          net1: {get_param: [nfv, CP, masterNode_CP1, network]}
  worker_instance:
    type: OS::Heat::AutoScalingGroup
    properties:
      min_size: 2
      max_size: 4
      desired_capacity: {get_param: worker_instance_desired_capacity}
      resource:
        type: worker.yaml
        properties:
          flavor: {get_param: [nfv, VDU, workerNode, computeFlavourId]}
          image: {get_param: [nfv, VDU, workerNode, vcImageId]}
          zone: {get_param: [nfv, VDU, workerNode, locationConstraints]}
          net1: {get_param: [nfv, CP, workerNode_CP2, network]}
  master_instance_scale_out:
    type: OS::Heat::ScalingPolicy
    properties:
      scaling_adjustment: 1
      auto_scaling_group_id: {get_resource: master_instance}
      adjustment_type: change_in_capacity
  storage_CP:
    type: OS::Neutron::Port
    properties:
      network: {get_param: [nfv, CP, storage_CP, network]}
      fixed_ips:
      - ip_address: {get_param: [nfv, CP, storage_CP, fixed_ips, 0, ip_address]}
  storage:
    type: OS::Nova::Server
    properties:
      flavor: {get_param: [nfv, VDU, storage, flavor]}
      image: {get_param: [nfv, VDU, storage, image]}
      key_name: {get_param: key}
      networks: [{port: {get_resource: storage_CP}}]
""",
    "BaseHOT/simple/nested/master.yaml": """
heat_template_version: 2013-05-23
parameters: {flavor: {type: string}, image: {type: string}, net1: {type: string}}
resources:
  masterNode:
    type: OS::Nova::Server
    properties:
      flavor: {get_param: flavor}
      image: {get_param: image}
      user_data: {get_file: boot.sh}
      networks: [{port: {get_resource: masterNode_CP1}}]
  masterNode_CP1:
    type: OS::Neutron::Port
    properties: {network: {get_param: net1}}
""",
    "BaseHOT/simple/nested/worker.yaml": """
heat_template_version: 2013-05-23
parameters: {flavor: {type: string}, image: {type: string}, zone: {type: string}, net1: {type: string}}
resources:
  node: {type: server.yaml}
""",
    "BaseHOT/simple/nested/server.yaml": """
heat_template_version: 2013-05-23
resources:
  workerNode: {type: OS::Nova::Server, properties: {flavor: m1.small, image: debian}}
""",
    "BaseHOT/simple/nested/boot.sh": "#!/bin/sh\n",
    "BaseHOT/simple/nested/unused.yaml": "nobody: reads it",
}

INDEXED = {
    TOP: """
heat_template_version: 2013-05-23
parameters:
  nfv: {type: json}
resources:
  VDU1:
    type: VDU1.yaml
    properties:
      flavor: {get_param: [nfv, VDU, VDU1, computeFlavourId]}
      image-VDU1: {get_param: [nfv, VDU, VDU1, vcImageId]}
      zone: {get_param: [nfv, VDU, VDU1, locationConstraints]}
      net1: {get_param: [nfv, CP, VDU1_CP1, network]}
      addresses:
      - {get_param: [nfv, CP, VDU1_CP1, fixed_ips, 0, ip_address]}
      net2: {get_resource: internalVL}
      affinity: {get_resource: apart}
  VDU2:
    type: VDU2.yaml
    depends_on: VDU1
    properties:
      flavor: {get_param: [nfv, VDU, VDU2, computeFlavourId]}
      image-root: {get_param: [nfv, VDU, VDU2-root, vcImageId]}
      net1: {get_param: [nfv, CP, VDU2_CP1, network]}
  apart:
    type: OS::Nova::ServerGroup
    properties: {policies: [anti-affinity]}
  internalVL: {type: OS::Neutron::Net}
  internalVL_subnet:
    type: OS::Neutron::Subnet
    depends_on: [internalVL]
    properties: {network: {get_resource: internalVL}, cidr: 192.168.3.0/24}
outputs: {}
""",
    "BaseHOT/simple/nested/VDU1.yaml": """
heat_template_version: 2013-05-23
parameters:
  flavor: {type: string}
  image-VDU1: {type: string}
  zone: {type: string}
  net1: {type: string}
  net2: {type: string}
  addresses: {type: comma_delimited_list}
  affinity: {type: string}
resources:
  VDU1:
    type: OS::Nova::Server
    properties:
      flavor: {get_param: flavor}
      image: {get_param: image-VDU1}
      networks: [{port: {get_resource: VDU1_CP1}}, {network: {get_param: net2}}]
      scheduler_hints: {group: {get_param: affinity}}
  VDU1_CP1:
    type: OS::Neutron::Port
    properties:
      network: {get_param: net1}
      fixed_ips: [{ip_address: {get_param: [addresses, 0]}}]
""",
    "BaseHOT/simple/nested/VDU2.yaml": """
heat_template_version: 2013-05-23
parameters: {flavor: {type: string}, image-root: {type: string}, net1: {type: string}}
resources:
  VDU2:
    type: OS::Nova::Server
    properties:
      flavor: {get_param: flavor}
      block_device_mapping_v2: [{volume_id: {get_resource: VDU2-root}}]
      networks: [{network: {get_param: net1}}]
  VDU2-root:
    type: OS::Cinder::Volume
    properties: {size: 1, image: {get_param: image-root}}
""",
}


def _vdu(name: str, initial: int = 1, **more: Any) -> Vdu:
    return Vdu(name=name, initial=initial, **{"image": image("debian"), "flavour": "m1.small", **more})


def _points(**points: str) -> dict[str, ConnectionPoint]:
    return {name: ConnectionPoint(name=name, vdu=vdu) for name, vdu in points.items()}


def groups_flavour() -> Flavour:
    vdus = [_vdu("masterNode"), _vdu("workerNode", 2, flavour="m1.large"), _vdu("storage")]
    return Flavour(
        id="simple",
        vdus={vdu.name: vdu for vdu in vdus},
        connection_points=_points(masterNode_CP1="masterNode", workerNode_CP2="workerNode", storage_CP="storage"),
        aspects={
            "master_instance": Aspect(name="master_instance", max_level=2, deltas={"masterNode": (1,)}),
            "worker_instance": Aspect(name="worker_instance", max_level=3, deltas={"workerNode": (1,)}),
        },
    )


def indexed_flavour() -> Flavour:
    """VDU1 scales. VDU2 has one member, always, and boots from a volume."""
    vdus = [_vdu("VDU1", 2, flavour="m1.large"), _vdu("VDU2", image=None, storages=("VDU2-root",))]
    return Flavour(
        id="simple",
        vdus={vdu.name: vdu for vdu in vdus},
        connection_points=_points(VDU1_CP1="VDU1", VDU2_CP1="VDU2"),
        storages={"VDU2-root": Storage(name="VDU2-root", size_bytes=GIB, image=image("root"))},
        aspects={"VDU1_scale": Aspect(name="VDU1_scale", max_level=2, deltas={"VDU1": (1,)})},
    )
