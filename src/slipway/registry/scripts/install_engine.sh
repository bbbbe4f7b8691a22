# install_engine: docker or podman, the one that is here; else podman from the machine's repositories.
set -eu
. /etc/slipway/environment
export DEBIAN_FRONTEND=noninteractive
if command -v docker >/dev/null && systemctl is-active --quiet docker; then exit 0; fi
if command -v podman >/dev/null; then exit 0; fi
command -v apt-get >/dev/null || { echo "there is neither docker nor podman, and no apt-get to install one" >&2; exit 1; }
apt() { apt-get --quiet --yes -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 -o Acquire::http::Timeout=30 "$@"; }
apt update
apt install --no-install-recommends podman crun
