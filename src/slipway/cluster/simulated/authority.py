"""A cluster's own CA: a real certificate, since whoever joins knows it by the hash of its key."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta

LIFE = timedelta(days=3650)


def new_authority() -> str:
    """PEM. Nobody ever needs its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(Encoding.PEM).decode()


def kubeconfig(endpoint: str, ca: str, user: str | None = None) -> str:
    """JSON, which is YAML. The user's token opens nothing: who asks is not checked."""
    cluster = {"server": f"https://{endpoint}", "certificate-authority-data": base64.b64encode(ca.encode()).decode()}
    config: dict[str, object] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "kubernetes" if user else "", "cluster": cluster}],
    }
    if user:
        context = {"cluster": "kubernetes", "user": user}
        config |= {
            "contexts": [{"name": user, "context": context}],
            "current-context": user,
            "users": [{"name": user, "user": {"token": "simulated"}}],
        }
    return json.dumps(config)
