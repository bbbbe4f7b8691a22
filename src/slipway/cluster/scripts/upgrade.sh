# upgrade VERSION HOW FROM NAME...: what kubeadm of that version changes. HOW is apply on the first master, node on all
# others. The machine may have several versions side by side, unless they are FROM packages; kubelet and kubectl stay.
set -eu
version=$1 how=$2 from=$3
shift 3
# Once more: a kubelet that is short of room throws away images that nobody uses yet.
for name; do
    archive=/usr/share/slipway/images/$name.tar
    [ ! -f "$archive" ] || ctr -n k8s.io images import "$archive" >/dev/null
done
bin=/opt/kubernetes/$version/bin
[ "$from" = packages ] || [ ! -x "$bin/kubeadm" ] || ln -sfn "$bin/kubeadm" /usr/bin/kubeadm
case $how in
apply) kubeadm upgrade apply "v$version" --yes ;;
node) kubeadm upgrade node ;;
esac
