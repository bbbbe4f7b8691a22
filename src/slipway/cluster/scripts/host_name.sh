# host_name NAME: the machine's name from now on. No move: in a container the file is a mount.
set -eu
[ "$(hostname)" = "$1" ] || hostname "$1"
echo "$1" >/etc/hostname
