# Be a named job: hold its lock while it runs. Arguments: its directory, time limit.
umask 077
job=$1 limit=$2
exec 9>>"$job/lock"
flock 9
[ ! -e "$job/began" ] || exit 0
cat /proc/sys/kernel/random/boot_id >"$job/began.new" && mv "$job/began.new" "$job/began" || exit 1
since=$(date +%s)
# `timeout` leads a process group of its own, whose number is written down before the command exists. The command gets
# the usual umask back, and not the lock: what it leaves running is not the job.
sh -c 'echo $$ >"$0/group"; umask 022; exec timeout --kill-after=10 "$1" sh "$0/command"' "$job" "$limit" \
    </dev/null >"$job/stdout" 2>"$job/stderr" 9>&- &
wait $!
code=$?
how=itself
case $code in 124 | 137)
    if [ $(($(date +%s) - since)) -ge "$limit" ]; then
        how=expired
        kill -s KILL -- "-$(cat "$job/group")" 2>/dev/null
    fi ;;
esac
echo "$code $how" >"$job/end.new" && mv "$job/end.new" "$job/end"
