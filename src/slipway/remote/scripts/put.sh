# Write stdin to a file, whole or not at all. Arguments: path, mode, size.
set -eu
umask 077
path=$1 mode=$2 size=$3
if [ -d "$path" ]; then echo "is a directory" >&2; exit 1; fi
temporary=$(mktemp "${path%/*}/.slipway.XXXXXXXXXX")
trap 'rm -f "$temporary"' EXIT
trap 'exit 1' HUP INT TERM PIPE
cat >"$temporary"
# Fewer bytes than were sent: the connection was cut, and this is not the file.
[ "$(wc -c <"$temporary")" -eq "$size" ] || { echo "incomplete" >&2; exit 1; }
if [ -e "$path" ]; then chown --reference="$path" "$temporary"; fi
chmod "$mode" "$temporary"
sync "$temporary"
mv -fT "$temporary" "$path"
