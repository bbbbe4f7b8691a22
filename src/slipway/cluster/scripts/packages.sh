# packages VERSION HOW NAME...: of the repository that slipway-kubernetes.list names. HOW: fetch brings them to the machine,
# place puts what was fetched in place, install does both. What is in place is held at its version.
# No other list is read anew: the machine's own repositories may be out of reach.
set -eu
version=$1 how=$2 list=/etc/apt/sources.list.d/slipway-kubernetes.list
shift 2
. /etc/slipway/environment
export DEBIAN_FRONTEND=noninteractive
apt() { apt-get --quiet --yes -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 -o Acquire::http::Timeout=30 \
    -o Acquire::https::Timeout=30 "$@"; }
[ "$how" = place ] || apt update -o Dir::Etc::SourceList="$list" -o Dir::Etc::SourceParts=- \
    -o APT::Get::List-Cleanup=0 -o APT::Update::Error-Mode=any
for name; do
    set -- "$@" "$name=$version-*"
    shift
done
[ "$how" != fetch ] || set -- --download-only "$@"
apt install --no-install-recommends --allow-change-held-packages --allow-downgrades \
    -o Dpkg::Options::=--force-confold "$@"
[ "$how" = fetch ] || apt-mark hold kubelet kubeadm kubectl
