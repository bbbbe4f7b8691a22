# Remove a named job's directory. Arguments: name, "kill" or "ended". Exit code 75: it runs, and was not to be killed.
if [ "$(id -u)" = 0 ]; then jobs=/var/lib/slipway/jobs; else jobs=$HOME/.slipway/jobs; fi
name=$1
job=$jobs/$name
rm -rf "$jobs/.new.$name."* "$jobs/.gone.$name."*
[ -d "$job" ] || exit 0
exec 9>>"$job/lock"
if ! flock --nonblock 9; then
    [ "$2" = kill ] || exit 75
    [ ! -s "$job/group" ] || kill -s KILL -- "-$(cat "$job/group")" 2>/dev/null
    flock --wait 20 9 || { echo "the job does not end" >&2; exit 1; }
fi
# Somebody else was quicker, and there may be a new one by that name.
[ "$job/lock" -ef "/proc/$$/fd/9" ] || exit 0
# A starter that is late finds that it began, and leaves it.
[ -e "$job/began" ] || echo forgotten >"$job/began"
mv -T "$job" "$jobs/.gone.$name.$$" && rm -rf "$jobs/.gone.$name.$$"
