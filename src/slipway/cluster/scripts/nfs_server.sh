# nfs_server KIND UNIT CHANGED [MOUNT DIRECTORY]...: make the directories, serve them, and see that they are served.
# CHANGED is yes when the configuration has changed. A directory that is there keeps its owner, its mode and its data.
set -eu
kind=$1 unit=$2 changed=$3
shift 3
fail() { echo "$1" >&2; exit 1; }
for argument; do
    if [ -z "${mount:-}" ]; then mount=$argument; continue; fi
    mountpoint -q "$mount" || fail "no volume is mounted at $mount"
    # Whoever may write to the volume could have left a link that leads out of it.
    [ "$(readlink -m "$argument")" = "$argument" ] || fail "$argument is, or lies behind, a symbolic link"
    # A volume without data yet may be served as a whole: its own root is root's, and nobody could write there.
    if [ ! -d "$argument" ] || { [ "$argument" = "$mount" ] && [ -z "$(ls -A -I lost+found "$mount")" ]; }; then
        mkdir -p "$argument"
        chown nobody:nogroup "$argument"
        chmod 0770 "$argument"
    fi
    [ "$(stat -c %d "$argument")" = "$(stat -c %d "$mount")" ] || fail "$argument is not on the volume at $mount"
    directories="${directories:-}$argument
" mount=
done
systemctl daemon-reload
systemctl enable --quiet "$unit"
if [ "$changed" = yes ] || ! systemctl is-active --quiet "$unit"; then systemctl restart "$unit"; fi
[ "$kind" != kernel ] || exportfs -ra
listens() { ss --no-header --tcp --listening --numeric 'sport = :2049' | grep -q .; }
for second in $(seq 60); do
    ! listens || break
    sleep 1
done
listens || fail "nothing listens at port 2049: $(journalctl --unit "$unit" --lines 5 --output cat 2>/dev/null | tr '\n' ' ')"
served() { if [ "$kind" = kernel ]; then exportfs -s; else sed -n 's/.*Path = "\([^"]*\)"; Pseudo.*/\1 /p' /etc/ganesha/ganesha.conf; fi; }
printf %s "$directories" | while read -r directory; do
    served | grep -qF "$directory " || fail "$directory is not exported"
done
# Ganesha goes on without an export that it can't serve, and says so in its log.
if [ "$kind" = ganesha ]; then
    log=/var/log/ganesha/ganesha.log since=$(systemctl show "$unit" --property MainPID --value)
    wrong=$(grep -F -- "-$since[" "$log" 2>/dev/null | grep -E ':(EXPORT|FSAL|CONFIG) :(CRIT|FATAL|MAJ) :' | tail -n 3) || true
    [ -z "$wrong" ] || fail "nfs-ganesha says: $wrong"
fi
