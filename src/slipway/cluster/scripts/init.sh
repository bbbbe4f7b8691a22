# init CONFIG: begin a cluster. What an earlier try left half made goes first.
set -eu
if [ -e /etc/kubernetes/admin.conf ] || [ -e /etc/kubernetes/manifests/etcd.yaml ]; then
    kubeadm reset --force
    rm -f /etc/cni/net.d/*
fi
kubeadm init --config "$1" --skip-token-print
