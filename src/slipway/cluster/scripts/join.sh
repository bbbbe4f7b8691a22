# join CONFIG: enter a cluster. What an earlier try left half made goes first.
set -eu
if [ -e /etc/kubernetes/kubelet.conf ] || [ -e /etc/kubernetes/bootstrap-kubelet.conf ]; then
    kubeadm reset --force
    rm -f /etc/cni/net.d/*
fi
kubeadm join --config "$1"
