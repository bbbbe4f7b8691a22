# check_programs VERSION: that what lies beside the programs in use is of that version. Nothing there: they are in use.
set -eu
bin=/opt/kubernetes/$1/bin
[ -d "$bin" ] || exit 0
for program in kubeadm kubelet; do
    case $program in
    kubeadm) found=$("$bin/kubeadm" version -o short) ;;
    kubelet) found=$("$bin/kubelet" --version) ;;
    esac
    [ "${found#Kubernetes }" = "v$1" ] || { echo "$program is ${found#Kubernetes }, and v$1 is wanted" >&2; exit 65; }
done
