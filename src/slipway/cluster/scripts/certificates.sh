# certificates: when this master's certificates end, as kubeadm tells it.
set -eu
kubeadm certs check-expiration -o json
