# facts ADDRESS: what a machine has, as lines of a name and words. ADDRESS tells which interface is the cluster's.
set -eu
echo "machine $(uname -m)"
! command -v kubeadm >/dev/null || echo "kubeadm $(kubeadm version -o short)"
! command -v containerd >/dev/null || echo "containerd $(containerd --version | cut -d' ' -f3)"
for bin in /opt/kubernetes/*/bin; do
    [ ! -x "$bin/kubeadm" ] || echo "version $(basename "$(dirname "$bin")")"
done
for program in conntrack iptables mount ip; do
    command -v "$program" >/dev/null || echo "missing $program"
done
ip -o address show | awk -v wanted="$1" '{ split($4, part, "/"); if (part[1] == wanted) print "interface", $2, part[2] }'
