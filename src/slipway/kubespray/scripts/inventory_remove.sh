# Remove an instance's inventory, if it is its own. Arguments: directory, instance.
inventory=$1 instance=$2
[ "$(cat "$inventory/.slipway" 2>/dev/null)" = "$instance" ] || exit 0
rm -rf "$HOME/.slipway/ssh-$(printf %s "$inventory" | sha256sum | cut -c 1-12)"   # as in playbook_run
# The name of its owner goes last: whoever is interrupted here is not shut out.
find "$inventory" -mindepth 1 -maxdepth 1 ! -name .slipway -exec rm -rf {} + && rm -rf "$inventory"
