# Wait for a named job to end. Arguments: name, seconds, bytes of output wanted.
# First line: "absent", "running", "broken", or "ended CODE itself|expired"; then the last of its output, on both streams.
if [ "$(id -u)" = 0 ]; then jobs=/var/lib/slipway/jobs; else jobs=$HOME/.slipway/jobs; fi
name=$1
job=$jobs/$name
cd "$job" 2>/dev/null || { echo absent; exit 0; }
[ -e began ] || { echo absent; exit 0; }
# The lock is free once the job has ended, however it ended.
exec 9>>lock
[ -e end ] || flock --wait "$2" 9 || { echo running; exit 0; }
gone=
if [ -e end ]; then
    echo "ended $(cat end)"
elif [ ! "$job/lock" -ef lock ]; then
    echo absent
else
    # It was killed, or the machine restarted. What it left running would disturb the next try, and so would its name.
    if [ "$(cat began)" = "$(cat /proc/sys/kernel/random/boot_id)" ] && [ -s group ]; then
        kill -s KILL -- "-$(cat group)" 2>/dev/null
    fi
    gone=$jobs/.gone.$name.$$
    mv -T "$job" "$gone"
    echo broken
fi
[ ! -e stdout ] || tail -c "$3" stdout
[ ! -e stderr ] || tail -c "$3" stderr >&2
[ -z "$gone" ] || rm -rf "$gone"
exit 0
