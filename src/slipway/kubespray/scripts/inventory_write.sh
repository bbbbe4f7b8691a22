# Put an archive's files beside the inventory. Arguments: directory, instance; stdin: the archive.
# Each file appears whole; what is ours and not in the archive goes. Exit code 65: it is not this instance's directory.
set -eu
umask 077
inventory=$1 instance=$2
[ -O "$inventory" ] && [ "$(cat "$inventory/.slipway" 2>/dev/null)" = "$instance" ] || { echo "$inventory is not of this VNF" >&2; exit 65; }
rm -rf "$inventory"/.new.*   # of somebody who was killed: private keys are in it
new=$(mktemp -d "$inventory/.new.XXXXXXXXXX")
trap 'rm -rf "$new"' EXIT
tar -x -f - -C "$new" --no-same-owner
sync -f "$new"
for part in keys callback group_vars host_vars known_hosts hosts.yaml; do
    rm -rf "$inventory/.old"
    [ ! -e "$inventory/$part" ] || [ -f "$inventory/$part" ] || mv -T "$inventory/$part" "$inventory/.old"
    [ ! -e "$new/$part" ] || mv -fT "$new/$part" "$inventory/$part"
    rm -rf "$inventory/.old"
done
