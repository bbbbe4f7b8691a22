# The names of an instance's runs. Arguments: what their names begin with; "running": only those that have not ended.
if [ "$(id -u)" = 0 ]; then jobs=/var/lib/slipway/jobs; else jobs=$HOME/.slipway/jobs; fi
cd "$jobs" 2>/dev/null || exit 0
for job in "$1"*; do
    [ -d "$job" ] || continue
    [ "${2:-all}" = all ] || [ ! -e "$job/end" ] || continue
    echo "$job"
done
