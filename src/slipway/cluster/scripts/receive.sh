# receive SHA256 OFFSET SIZE: a piece of a file on stdin. The file's digest is its name, and is checked when it is whole.
set -eu
umask 077
part=/var/lib/slipway/files/$1.part
mkdir -p "${part%/*}"
truncate --size="$2" "$part"
cat >>"$part"
[ "$(wc -c <"$part")" -eq $(($2 + $3)) ] || { echo "incomplete" >&2; exit 1; }
