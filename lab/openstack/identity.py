"""Make Keystone's content: accounts, services, end points.  Idempotent."""

import os

import openstack

PASSWORD = os.environ["PASSWORD"]


def url(port, path=""):
    return f"http://127.0.0.1:{os.environ[port]}{path}"


SERVICES = {  # name: (types, end point); Keystone enters itself
    "glance": (("image",), url("GLANCE_PORT")),
    "placement": (("placement",), url("PLACEMENT_PORT")),
    "nova": (("compute",), url("NOVA_PORT", "/v2.1")),
    "neutron": (("network",), url("NEUTRON_PORT")),
    # Older clients know Cinder by the second name.
    "cinder": (("block-storage", "volumev3"), url("CINDER_PORT", "/v3")),
    "heat": (("orchestration",), url("HEAT_PORT", "/v1/%(tenant_id)s")),
    "heat-cfn": (("cloudformation",), url("HEAT_CFN_PORT", "/v1")),
}

cloud = openstack.connect(cloud="lab-admin")
identity = cloud.identity


def role(name):
    return identity.find_role(name) or identity.create_role(name=name)


def project(name):
    return identity.find_project(name) or identity.create_project(name=name, domain_id="default")


def user(name, domain="default"):
    found = list(identity.users(name=name, domain_id=domain))
    return found[0] if found else identity.create_user(name=name, password=PASSWORD, domain_id=domain)


roles = {name: role(name) for name in ("admin", "member", "reader", "service", "heat_stack_owner", "heat_stack_user")}

service = project("service")
for name in ("glance", "placement", "nova", "neutron", "cinder", "heat"):
    account = user(name)
    for granted in ("admin", "service"):
        identity.assign_project_role_to_user(service, account, roles[granted])

lab = project("lab")
account = user("lab")
for granted in ("member", "reader", "heat_stack_owner"):
    identity.assign_project_role_to_user(lab, account, roles[granted])

# Heat keeps the users that sign for a stack's resources in their own domain.
domain = identity.find_domain("heat") or identity.create_domain(name="heat")
identity.assign_domain_role_to_user(domain, user("heat_domain_admin", domain.id), roles["admin"])

present = {(s.type, s.name): s for s in identity.services()}
for name, (types, address) in SERVICES.items():
    for kind in types:
        entry = present.get((kind, name)) or identity.create_service(type=kind, name=name)
        if not list(identity.endpoints(service_id=entry.id)):
            for interface in ("public", "internal", "admin"):
                identity.create_endpoint(service_id=entry.id, url=address, interface=interface, region_id="RegionOne")
