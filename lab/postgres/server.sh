# Sourced by up, down and fault: where the server lives and who runs it.
LAB_DIR=${LAB_DIR:-${TMPDIR:-/tmp}/slipway-postgres}  # the user postgres must be able to enter it
LAB_PASSWORD=${LAB_PASSWORD:-lab}
LAB_OPTIONS=${LAB_OPTIONS:--c fsync=off -c max_connections=200}  # fsync=off still survives `fault crash`
DATA=$LAB_DIR/data

# The server refuses to run as root.
as_server() {
    if [ "$(id -u)" = 0 ]; then (cd / && exec runuser -u postgres -- "$@"); else "$@"; fi
}

find_binaries() {
    BIN=$(find /usr/lib/postgresql -mindepth 2 -maxdepth 2 -name bin 2>/dev/null | sort -V | tail -1)
    [ -n "$BIN" ] && [ -x "$BIN/initdb" ]
}

port() { cat "$LAB_DIR/port"; }

url() { echo "postgresql://lab:$LAB_PASSWORD@127.0.0.1:$(port)/lab"; }

# The main process, if it lives; the pid file of a crashed one may name somebody else by now.
main_pid() {
    local pid
    pid=$(head -1 "$DATA/postmaster.pid" 2>/dev/null) || return 1
    [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = postgres ] && echo "$pid"
}

all_pids() {
    local main
    main=$(main_pid) || { echo "there is no server in $LAB_DIR" >&2; return 1; }
    echo "$main" $(pgrep -P "$main")
}

start() {
    as_server "$BIN/pg_ctl" start --silent --wait --timeout=120 --pgdata="$DATA" --log="$LAB_DIR/log" \
        --options="-c listen_addresses=127.0.0.1 -c port=$(port) -c unix_socket_directories=$LAB_DIR $LAB_OPTIONS"
}
