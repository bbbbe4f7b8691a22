# install_engine: docker or podman, the one that is here; else podman from the machine's repositories.
set -eu
. /etc/slipway/environment
export DEBIAN_FRONTEND=noninteractive
# docker's daemon is who pulls, and it does not see this environment. Not as Environment=, which every user may ask for.
tell_docker() {
    mkdir -p /etc/systemd/system/docker.service.d
    (umask 077 && printf '%s="%s"\n' HTTP_PROXY "${HTTP_PROXY:-}" HTTPS_PROXY "${HTTPS_PROXY:-}" NO_PROXY "${NO_PROXY:-}" >/etc/slipway/docker-proxy)
    printf '[Service]\nEnvironmentFile=/etc/slipway/docker-proxy\n' >/etc/systemd/system/docker.service.d/slipway-proxy.conf
    systemctl daemon-reload
    systemctl restart docker
}
if command -v docker >/dev/null && systemctl is-active --quiet docker; then
    [ -z "${HTTP_PROXY:-}${HTTPS_PROXY:-}" ] || tell_docker
    exit 0
fi
if command -v podman >/dev/null; then exit 0; fi
command -v apt-get >/dev/null || { echo "there is neither docker nor podman, and no apt-get to install one" >&2; exit 1; }
apt() { apt-get --quiet --yes -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 -o Acquire::http::Timeout=30 "$@"; }
dpkg --configure -a   # what somebody died over
apt update -o APT::Update::Error-Mode=any
apt install --no-install-recommends podman crun
