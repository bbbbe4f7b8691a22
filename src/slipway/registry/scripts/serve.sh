# serve SCHEME PORT DIRECTORY: the service runs with its present configuration, now and after every boot, and answers.
set -eu
scheme=$1 port=$2 directory=$3 started=/run/slipway-registry.started
mkdir -p "$directory"
if id docker-registry >/dev/null 2>&1; then
    # Only what is not theirs yet: a change looks like a new configuration.
    chgrp docker-registry /etc/slipway-registry
    find /etc/slipway-registry -type f ! -group docker-registry -exec chgrp docker-registry {} +
    # All of it: on a machine that was made anew the user may have another number.
    [ "$(stat -c %U "$directory")" = docker-registry ] || chown -R docker-registry:docker-registry "$directory"
fi
chmod 750 /etc/slipway-registry
systemctl daemon-reload
systemctl enable --quiet slipway-registry
newer=$(find /etc/slipway-registry /etc/systemd/system/slipway-registry.service -type f -cnewer "$started" 2>/dev/null || echo never)
if [ -n "$newer" ] || ! systemctl is-active --quiet slipway-registry; then
    systemctl stop slipway-registry
    if taken=$(ss -Hltnp "sport = :$port") && [ -n "$taken" ]; then
        echo "port $port is taken: $(printf '%s' "$taken" | sed -n 's/.*users:((\([^)]*\)).*/\1/p' | head -n 1)" >&2
        exit 1
    fi
    touch "$started"
    systemctl start slipway-registry
fi
for second in $(seq 60); do
    code=$(curl -q --silent --insecure --noproxy '*' --max-time 5 --output /dev/null --write-out '%{http_code}' "$scheme://127.0.0.1:$port/v2/" || true)
    case $code in 200 | 401) exit 0 ;; esac
    sleep 1
done
# Its own error: whatever went wrong, systemd and the engine end with the same lines, restart after restart.
said=$(journalctl --unit slipway-registry --lines 200 --no-pager --output cat)
why=$(printf '%s\n' "$said" | grep -iE '(^|[^a-z])(error|fatal|panic)([^a-z]|$)' | tail -n 1)
[ -n "$why" ] || why=$(printf '%s\n' "$said" | tail -n 5 | tr '\n' '|')
printf 'the registry does not answer at port %s: %s\n' "$port" "$why" >&2
exit 1
