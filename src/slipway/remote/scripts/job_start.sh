# Start a named job unless it is there already. Arguments: name, command line, time limit, text of job_run.
# Exit code 65: the name is taken by another command; 75: it has not begun yet, ask again.
set -eu
umask 077
name=$1 command=$2 limit=$3 run=$4
if [ "$(id -u)" = 0 ]; then jobs=/var/lib/slipway/jobs; else jobs=$HOME/.slipway/jobs; fi
mkdir -p "$jobs"
job=$jobs/$name

# The directory appears with all that it needs, or not at all: moving onto one that is not empty fails.
if [ ! -e "$job/command" ]; then
    new=$(mktemp -d "$jobs/.new.$name.XXXXXXXXXX")
    trap 'rm -rf "$new"' EXIT
    printf '%s\n' "$command" >"$new/command"
    printf '%s\n' "$run" >"$new/run"
    mv -T "$new" "$job" 2>/dev/null || [ -e "$job/command" ]
fi
[ "$(cat "$job/command")" = "$command" ] || exit 65

# Several may get here at once: job_run takes the lock, and only the first runs the command.
[ ! -e "$job/began" ] || exit 0
if [ "$(id -u)" = 0 ] && [ -d /run/systemd/system ] && command -v systemd-run >/dev/null; then
    # A unit of its own: it outlives the login, and the limit reaches whatever it starts. systemd-run would expand
    # dollar signs in its arguments, so there are none in them.
    systemd-run --quiet --collect --unit="slipway-$name-$$" --property=RuntimeMaxSec="$((limit + 30))" \
        --setenv=HOME="$HOME" --setenv=PATH="$PATH" -- /bin/sh "$job/run" "$job" "$limit"
else
    setsid sh "$job/run" "$job" "$limit" </dev/null >/dev/null 2>&1 &
fi
tries=0
until [ -e "$job/began" ]; do
    tries=$((tries + 1))
    [ "$tries" -lt 500 ] || exit 75
    sleep 0.02
done
