"""ML2 mechanism driver that binds every port at once, with no agent.

Neutron's API server is the only Neutron process in the lab.  The data plane
(one Linux bridge per network) is made by the Nova driver when it starts a
server, so there is nothing an agent would have to report: a port is bound,
and ACTIVE, as soon as Nova says on which host its server is.
"""

from neutron_lib import constants
from neutron_lib.api.definitions import portbindings
from neutron_lib.plugins.ml2 import api

# Virtual NIC kinds accepted.  All of them become a veth pair: the SR-IOV ones
# are accepted so that templates which ask for them can be deployed.
VNIC_TYPES = (
    portbindings.VNIC_NORMAL,
    portbindings.VNIC_DIRECT,
    portbindings.VNIC_DIRECT_PHYSICAL,
    portbindings.VNIC_MACVTAP,
    portbindings.VNIC_VIRTIO_FORWARDER,
)


class LabMechanismDriver(api.MechanismDriver):
    def initialize(self):
        pass

    @property
    def connectivity(self):
        return portbindings.CONNECTIVITY_L2

    def bind_port(self, context):
        vnic_type = context.current.get(portbindings.VNIC_TYPE, portbindings.VNIC_NORMAL)
        if vnic_type not in VNIC_TYPES:
            return
        for segment in context.segments_to_bind:
            context.set_binding(
                segment[api.ID],
                portbindings.VIF_TYPE_TAP,
                {portbindings.CAP_PORT_FILTER: False, portbindings.VIF_DETAILS_CONNECTIVITY: self.connectivity},
                status=constants.PORT_STATUS_ACTIVE,
            )
            return
