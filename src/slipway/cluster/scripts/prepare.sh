# prepare VERSION RESTART: kernel, containerd and kubelet as kubeadm wants them. VERSION may be empty: what is there.
# RESTART is yes when containerd's configuration has changed.
set -eu
version=$1 restart=$2
if [ -n "$version" ] && [ -x "/opt/kubernetes/$version/bin/kubeadm" ]; then
    for program in kubeadm kubelet kubectl; do ln -sfn "/opt/kubernetes/$version/bin/$program" "/usr/bin/$program"; done
fi
swapoff -a || true
[ ! -f /etc/fstab ] || sed -i '/^[^#].*[[:space:]]swap[[:space:]]/s/^/#/' /etc/fstab
modprobe overlay
modprobe br_netfilter
sysctl --quiet --load=/etc/sysctl.d/90-slipway-kubernetes.conf
systemctl daemon-reload
systemctl enable --quiet containerd kubelet
# Also when somebody wrote the files and did not live to restart it.
newer=$(find /etc/containerd/config.toml /etc/systemd/system/containerd.service.d -cnewer /run/containerd/containerd.sock 2>/dev/null) || true
if [ "$restart" = yes ] || [ -n "$newer" ] || ! systemctl is-active --quiet containerd; then systemctl restart containerd; fi
for second in $(seq 60); do
    ! ctr version >/dev/null 2>&1 || exit 0
    sleep 1
done
echo "containerd does not answer" >&2
exit 1
