# join CONFIG [LOGS]: enter a cluster. What an earlier try left half made goes first.
# If it fails, the last words of an etcd that could not start follow: kubeadm says only that it did not.
set -eu
if [ -e /etc/kubernetes/kubelet.conf ] || [ -e /etc/kubernetes/bootstrap-kubelet.conf ]; then
    kubeadm reset --force
    rm -f /etc/cni/net.d/*
fi
kubeadm join --config "$1" || {
    status=$?
    cat "${2:-/var/log/pods}"/kube-system_etcd-*/etcd/*.log 2>/dev/null | grep '"level":"fatal"' | tail -n 1 | sed 's/^[^{]*/etcd: /' >&2
    exit "$status"
}
