# Make the directory of an instance's inventory. Arguments: directory, instance. Exit code 65: somebody else has it.
set -eu
umask 077
inventory=$1 instance=$2
# One that another user made with that name in it is theirs, and so would be what we write there.
if [ -O "$inventory" ] && [ "$(cat "$inventory/.slipway" 2>/dev/null)" = "$instance" ]; then exit 0; fi
if [ -e "$inventory" ] || [ -L "$inventory" ]; then echo "$inventory exists" >&2; exit 65; fi
# Below another instance's directory it would go together with that one. In a home .slipway is a directory: our jobs.
parent=$(readlink -m "${inventory%/*}/")
while [ "$parent" != / ]; do
    [ ! -f "$parent/.slipway" ] || { echo "it is within $parent, which is another VNF's inventory" >&2; exit 1; }
    parent=$(dirname "$parent")
done
mkdir -p "${inventory%/*}"
new=$(mktemp -d "${inventory%/*}/.slipway.XXXXXXXXXX")
trap 'rm -rf "$new"' EXIT
printf '%s\n' "$instance" >"$new/.slipway"
mkdir "$new/runs"
# The directory appears with its owner's name in it, or not at all: two that come at once are told apart.
mv -T "$new" "$inventory" || exit 65
