# The names of an instance's runs. Argument: what their names begin with.
if [ "$(id -u)" = 0 ]; then jobs=/var/lib/slipway/jobs; else jobs=$HOME/.slipway/jobs; fi
cd "$jobs" 2>/dev/null || exit 0
for job in "$1"*; do [ ! -d "$job" ] || echo "$job"; done
