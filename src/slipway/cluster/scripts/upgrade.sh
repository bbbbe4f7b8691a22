# upgrade VERSION HOW NAME...: what kubeadm of that version changes. HOW is apply on the first master, node on all others.
# The machine may have several versions side by side; kubelet and kubectl stay as they are.
set -eu
version=$1 how=$2
shift 2
# Once more: a kubelet that is short of room throws away images that nobody uses yet.
for name; do
    archive=/usr/share/slipway/images/$name.tar
    [ ! -f "$archive" ] || ctr -n k8s.io images import "$archive" >/dev/null
done
bin=/opt/kubernetes/$version/bin
[ ! -x "$bin/kubeadm" ] || ln -sfn "$bin/kubeadm" /usr/bin/kubeadm
case $how in
apply) kubeadm upgrade apply "v$version" --yes ;;
node) kubeadm upgrade node ;;
esac
