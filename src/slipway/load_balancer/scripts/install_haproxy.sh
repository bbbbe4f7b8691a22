# install_haproxy: HAProxy, and socat to ask it, from the distribution's packages. What is there stays as it is.
set -eu
missing=
for program in haproxy socat; do
    PATH=$PATH:/usr/sbin:/sbin command -v "$program" >/dev/null || missing="$missing $program"
done
[ -n "$missing" ] || exit 0
if command -v apt-get >/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get -q -o DPkg::Lock::Timeout=300 update
    # shellcheck disable=SC2086 # one word for each package
    apt-get -q -y -o DPkg::Lock::Timeout=300 install --no-install-recommends $missing
elif command -v dnf >/dev/null; then
    # shellcheck disable=SC2086
    dnf -q -y install $missing
else
    echo "this machine has neither apt-get nor dnf to install$missing" >&2
    exit 1
fi
