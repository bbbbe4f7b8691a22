# Make the directory of an instance's inventory. Arguments: directory, instance. Exit code 65: somebody else has it.
set -eu
umask 077
inventory=$1 instance=$2
if [ "$(cat "$inventory/.slipway" 2>/dev/null)" = "$instance" ]; then exit 0; fi
if [ -e "$inventory" ] || [ -L "$inventory" ]; then echo "$inventory exists" >&2; exit 65; fi
mkdir -p "${inventory%/*}"
new=$(mktemp -d "${inventory%/*}/.slipway.XXXXXXXXXX")
trap 'rm -rf "$new"' EXIT
printf '%s\n' "$instance" >"$new/.slipway"
mkdir "$new/runs"
# The directory appears with its owner's name in it, or not at all: two that come at once are told apart.
mv -T "$new" "$inventory" || exit 65
