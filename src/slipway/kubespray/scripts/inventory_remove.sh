# Remove an instance's inventory, if it is its own. Arguments: directory, instance.
inventory=$1 instance=$2
[ "$(cat "$inventory/.slipway" 2>/dev/null)" = "$instance" ] || exit 0
rm -rf "$HOME/.slipway/ssh-$(printf %s "$inventory" | sha256sum | cut -c 1-12)"   # as in playbook_run
# Somebody may have moved it to another disk and left a link.
place=$(readlink -f "$inventory") || exit 1
# The name of its owner goes last: whoever is interrupted here is not shut out.
find "$place" -mindepth 1 -maxdepth 1 ! -name .slipway -exec rm -rf {} + && rm -rf "$place" && rm -rf "$inventory"
