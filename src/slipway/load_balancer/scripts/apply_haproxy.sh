# apply_haproxy REVISION MARK PORT...: the configuration on stdin, which has that mark and binds those ports, goes live.
# Unless a later change has been here: then it says so. When anything is wrong with it, what was live stays live.
set -u
PATH=$PATH:/usr/sbin:/sbin
umask 077
revision=$1 mark=$2
shift 2
config=/etc/haproxy/haproxy.cfg new=/etc/haproxy/.slipway.new old=/etc/haproxy/.slipway.old
socket=/run/slipway-haproxy.sock noted=/var/lib/slipway/load-balancer.revision

fail() { echo "$*" >&2; exit 1; }
running() { printf 'show info\n' | socat -T 2 - "UNIX-CONNECT:$socket" 2>/dev/null | sed -n 's/^[Dd]escription: *//p'; }
started() {
    systemctl enable --quiet haproxy
    if systemctl is-active --quiet haproxy; then systemctl reload haproxy; else systemctl reset-failed haproxy; systemctl start haproxy; fi
}
# A reload that comes while HAProxy is still at the one before may be lost: it is asked for again.
wait_for() {
    tries=0
    while [ "$(running)" != "$1" ]; do
        tries=$((tries + 1))
        [ $tries -lt 150 ] || return 1
        [ $((tries % 50)) -ne 0 ] || started || return 1
        sleep 0.1
    done
}

exec 9>/run/slipway-load-balancer.lock || exit 1
flock -w 60 9 || fail "another change holds /run/slipway-load-balancer.lock"
mkdir -p /var/lib/slipway /etc/haproxy || exit 1
last=$(cat "$noted" 2>/dev/null || echo 0)
[ "${last:-0}" -le "$revision" ] || { echo later; exit 0; }
trap 'rm -f "$new" "$noted.new"' EXIT
{ cat >"$new" && echo "$revision" >"$noted.new" && mv "$noted.new" "$noted"; } ||
    fail "the new configuration can't be written: $(df -Ph /etc/haproxy | tail -n 1); the old one stays"
if cmp -s "$new" "$config" && [ "$(running)" = "$mark" ]; then exit 0; fi

haproxy -c -f "$new" >/dev/null || fail "haproxy does not accept the new configuration; the old one stays"
for port in "$@"; do
    taken=$(ss -Hltnp "sport = :$port" 2>/dev/null | grep -v '"haproxy"' | head -n 1)
    [ -n "$taken" ] || continue
    who=$(printf %s "$taken" | sed -n 's/.*users:((\("[^"]*"\).*/\1/p')
    fail "port $port is in use by ${who:-another program}; the old configuration stays"
done
rm -f "$old"
[ ! -e "$config" ] || cp -p "$config" "$old" || fail "the old configuration can't be kept; it stays"
{ sync "$new" && mv "$new" "$config"; } || fail "the new configuration can't be put in place; the old one stays"
started && wait_for "$mark" && exit 0

journalctl -u haproxy -n 5 -o cat --no-pager >&2
if [ -e "$old" ]; then
    mv "$old" "$config"
    started
fi
fail "haproxy did not take the new configuration; the old one is live again"
