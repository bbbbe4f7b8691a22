# Run a playbook of kubespray. Arguments: kubespray's directory, the inventory's, the run's name, the playbook, options.
set -eu
umask 077
root=$1 inventory=$2 run=$3 playbook=$4
shift 4
PATH=$root/.venv/bin:$root/venv/bin:$PATH
# kubespray's own configuration trusts every host key and caches facts in /tmp: variables go before it.
export PATH ANSIBLE_NOCOLOR=1 ANSIBLE_FORCE_COLOR=0 ANSIBLE_HOST_KEY_CHECKING=True
export ANSIBLE_SSH_ARGS="-o ControlMaster=auto -o ControlPersist=60s -o ConnectionAttempts=5 -o ConnectTimeout=30 -o ServerAliveInterval=15 -o UserKnownHostsFile=$inventory/known_hosts -o GlobalKnownHostsFile=/dev/null -o StrictHostKeyChecking=yes"
# Sockets have short paths, and no two clusters share one: their nodes may have the same addresses.
export ANSIBLE_SSH_CONTROL_PATH_DIR="$HOME/.slipway/ssh-$(printf %s "$inventory" | sha256sum | cut -c 1-12)"
# It refuses a --limit when it has no facts of the nodes that are left out. They are as old as the last run that reached
# them, and count all the same: those that are reached are asked again.
export ANSIBLE_CACHE_PLUGIN_CONNECTION="$inventory/facts" ANSIBLE_CACHE_PLUGIN_TIMEOUT=0
export ANSIBLE_LOG_PATH="$inventory/runs/$run.log" SLIPWAY_EVENTS="$inventory/runs/$run.events"
export ANSIBLE_CALLBACK_PLUGINS="$inventory/callback" ANSIBLE_CALLBACKS_ENABLED=slipway_events
mkdir -p "$inventory/runs" "$inventory/facts"
rm -f "$SLIPWAY_EVENTS"
cd "$root"
exec ansible-playbook -i "$inventory/hosts.yaml" --become --become-user=root "$@" "$root/$playbook"
