# packages VERSION: kubeadm, kubelet and kubectl of the repository that slipway-kubernetes.list names, held at VERSION.
# No other list is read anew: the machine's own repositories may be out of reach.
set -eu
version=$1 list=/etc/apt/sources.list.d/slipway-kubernetes.list
. /etc/slipway/environment
export DEBIAN_FRONTEND=noninteractive
apt() { apt-get --quiet --yes -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 -o Acquire::http::Timeout=30 \
    -o Acquire::https::Timeout=30 "$@"; }
apt update -o Dir::Etc::SourceList="$list" -o Dir::Etc::SourceParts=- -o APT::Get::List-Cleanup=0 \
    -o APT::Update::Error-Mode=any
apt install --no-install-recommends --allow-change-held-packages --allow-downgrades \
    -o Dpkg::Options::=--force-confold "kubelet=$version-*" "kubeadm=$version-*" "kubectl=$version-*"
apt-mark hold kubelet kubeadm kubectl
