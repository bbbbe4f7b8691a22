# apt_install NAME...: from the machine's own repositories.
set -eu
command -v apt-get >/dev/null || { echo "there is no apt-get: packages are installed on Debian and Ubuntu only" >&2; exit 69; }
[ ! -f /etc/slipway/environment ] || . /etc/slipway/environment
export DEBIAN_FRONTEND=noninteractive
apt() { apt-get --quiet --yes -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 -o Acquire::http::Timeout=30 \
    -o Acquire::https::Timeout=30 "$@"; }
dpkg --configure -a   # what somebody died over
apt update -o APT::Update::Error-Mode=any
apt install --no-install-recommends -o Dpkg::Options::=--force-confold "$@"
