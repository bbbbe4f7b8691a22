# install_package FILE: the distribution's docker-registry; FILE is one that was sent, or - for the machine's repositories.
set -eu
. /etc/slipway/environment
export DEBIAN_FRONTEND=noninteractive
file=/var/lib/slipway/files/$1
if ! command -v docker-registry >/dev/null; then
    command -v apt-get >/dev/null || { echo "there is no apt-get: packages are installed on Debian and Ubuntu only" >&2; exit 1; }
    apt() { apt-get --quiet --yes -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 -o Acquire::http::Timeout=30 "$@"; }
    dpkg --configure -a   # what somebody died over
    # Its own service is not wanted: it would take the port with a registry that is everybody's.
    ln -sf /dev/null /etc/systemd/system/docker-registry.service
    if [ "$1" != - ]; then
        trap 'rm -f "$file.deb"' EXIT
        mv "$file.part" "$file.deb"
        apt install --no-install-recommends "$file.deb"
    else
        apt update -o APT::Update::Error-Mode=any
        apt install --no-install-recommends docker-registry
    fi
fi
systemctl disable --now --quiet docker-registry.service 2>/dev/null || true
command -v docker-registry
