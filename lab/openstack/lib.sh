# Common to install, start and stop.  Sourced.
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# ---- settings, all from the environment ---------------------------------
LAB_DIR=${LAB_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/slipway/openstack-lab}
LAB_PORT_BASE=${LAB_PORT_BASE:-21500}
LAB_PASSWORD=${LAB_PASSWORD:-lab}          # of every account
LAB_GUEST_USER=${LAB_GUEST_USER:-ubuntu}   # in a server without user data
LAB_GUEST_PASSWORD=${LAB_GUEST_PASSWORD:-ubuntu}
LAB_CIDR=${LAB_CIDR:-10.77.0.0/24}         # of the ready-made network "mgmt"
LAB_API_THREADS=${LAB_API_THREADS:-6}
LAB_HEAT_WORKERS=${LAB_HEAT_WORKERS:-1}
LAB_HOSTS=${LAB_HOSTS:-3}                  # compute hosts, for anti-affinity
LAB_START_TIMEOUT=${LAB_START_TIMEOUT:-600}
LAB_PYTHON=${LAB_PYTHON:-python3}
LAB_SUITE=${LAB_SUITE:-bookworm}           # Debian release of the servers
LAB_GUEST_EXTRA=${LAB_GUEST_EXTRA:-}       # more Debian packages in them, with commas
LAB_NAT=${LAB_NAT:-1}                      # servers reach what this machine reaches
LAB_APPLICATION_TRUSTS=${LAB_APPLICATION_TRUSTS:-false}  # whether Heat makes stacks for application credentials

mkdir -p "$LAB_DIR"
LAB_DIR=$(cd "$LAB_DIR" && pwd)
VENV=$LAB_DIR/venv
BASE=$LAB_DIR/base          # root file system of the servers
ETC=$LAB_DIR/etc
STATE=$LAB_DIR/state        # databases, images, volumes, machines
GOLDEN=$LAB_DIR/golden      # STATE as install left it
RUN=$LAB_DIR/run
LOG=$LAB_DIR/log
LIBEXEC=$LAB_DIR/libexec
SOCKET=$RUN/mariadb.sock

KEYSTONE_PORT=$LAB_PORT_BASE
GLANCE_PORT=$((LAB_PORT_BASE + 1))
PLACEMENT_PORT=$((LAB_PORT_BASE + 2))
NOVA_PORT=$((LAB_PORT_BASE + 3))
NEUTRON_PORT=$((LAB_PORT_BASE + 4))
CINDER_PORT=$((LAB_PORT_BASE + 5))
HEAT_PORT=$((LAB_PORT_BASE + 6))
HEAT_CFN_PORT=$((LAB_PORT_BASE + 7))
RABBIT_PORT=$((LAB_PORT_BASE + 8))
RABBIT_DIST_PORT=$((LAB_PORT_BASE + 9))
EPMD_PORT=$((LAB_PORT_BASE + 10))

export OS_CLIENT_CONFIG_FILE=$LAB_DIR/clouds.yaml
# Names of this kind in the caller's environment would win over clouds.yaml.
unset "${!OS_AUTH@}" OS_CLOUD OS_USERNAME OS_PASSWORD OS_PROJECT_NAME
# Loopback is never behind a proxy.
export no_proxy=127.0.0.1,localhost NO_PROXY=127.0.0.1,localhost

say() { printf '%(%H:%M:%S)T %s\n' -1 "$*"; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

[ "$(id -u)" = 0 ] || die "needs root (namespaces, bridges, loop devices)"

# One of install, start and stop at a time.
lock() {
    exec 9> "$LAB_DIR/lock"
    flock -w 600 9 || die "another install, start or stop is under way"
}

# ---- processes ----------------------------------------------------------
born() { # PID: when it started, in clock ticks; fails if it is no more
    local stat
    { IFS= read -r stat < "/proc/$1/stat"; } 2>/dev/null || return 1
    # shellcheck disable=SC2086
    set -- ${stat##*) }
    [ "$1" != Z ] && echo "${20}"
}

alive() { # NAME: does its process run?
    local pid start
    { read -r pid start < "$RUN/$1.pid"; } 2>/dev/null || return 1
    # The start tells it from another process that was given the number later.
    [ "$(born "$pid")" = "$start" ]
}

daemon() { # NAME COMMAND...: start it, in a session of its own, unless it runs
    local name=$1
    shift
    alive "$name" && return
    setsid "$@" < /dev/null >> "$LOG/$name.log" 2>&1 9>&- &
    echo "$! $(born $!)" > "$RUN/$name.pid"
    disown
}

halt() { # NAME...: end them, all at once
    local name pid deadline=$((SECONDS + ${HALT_TIMEOUT:-15})) left
    for name in "$@"; do
        if alive "$name"; then
            read -r pid _ < "$RUN/$name.pid"
            kill -TERM -- "-$pid" 2>/dev/null
        fi
    done
    for name in "$@"; do
        while alive "$name" && [ $SECONDS -lt $deadline ]; do sleep 0.1; done
        if alive "$name"; then
            read -r pid _ < "$RUN/$name.pid"
            kill -KILL -- "-$pid" 2>/dev/null
            left=50
            while alive "$name" && [ $left -gt 0 ]; do sleep 0.1; left=$((left - 1)); done
        fi
        rm -f "$RUN/$name.pid"
    done
}

check_ports() { # that nothing else listens where the lab would
    local port busy
    alive keystone && return
    for port in $(seq "$LAB_PORT_BASE" "$EPMD_PORT"); do
        if (: < "/dev/tcp/127.0.0.1/$port") 2>/dev/null; then busy+=" $port"; fi
    done
    [ -z "${busy-}" ] || die "in use:$busy (set LAB_PORT_BASE)"
}

wait_for() { # SECONDS WHAT COMMAND...: until the command succeeds
    local deadline=$((SECONDS + $1)) what=$2
    shift 2
    until "$@" > /dev/null 2>&1; do
        [ $SECONDS -lt $deadline ] || die "$what is not there; see $LOG"
        sleep 0.2
    done
}

sql() { mariadb --no-defaults --socket="$SOCKET" --user=root "$@"; }

start_database() {
    daemon mariadb mariadbd --no-defaults --user=root \
        --datadir="$STATE/mariadb" --socket="$SOCKET" --skip-networking \
        --pid-file="$RUN/mariadb-own.pid" --tmpdir="$RUN" \
        --max-connections=400 --skip-log-bin --performance-schema=OFF \
        --innodb-buffer-pool-size=192M --innodb-log-file-size=64M \
        --innodb-flush-log-at-trx-commit=0 --innodb-doublewrite=0 \
        --innodb-flush-method=nosync --sync-frm=0 --skip-name-resolve \
        --character-set-server=utf8mb4 --default-storage-engine=InnoDB
}
wait_database() { wait_for 60 "the database" sql -e 'select 1'; }

rabbit_env() {
    export HOME=$STATE/rabbitmq ERL_EPMD_ADDRESS=127.0.0.1 ERL_EPMD_PORT=$EPMD_PORT
    export RABBITMQ_NODENAME=lab$LAB_PORT_BASE@localhost RABBITMQ_NODE_IP_ADDRESS=127.0.0.1
    export RABBITMQ_NODE_PORT=$RABBIT_PORT RABBITMQ_DIST_PORT=$RABBIT_DIST_PORT
    export RABBITMQ_MNESIA_BASE=$STATE/rabbitmq/mnesia RABBITMQ_LOGS=- 
    export RABBITMQ_CONFIG_FILE=$ETC/rabbitmq RABBITMQ_ENABLED_PLUGINS_FILE=$ETC/rabbitmq-plugins
    export RABBITMQ_PID_FILE=$RUN/rabbitmq-own.pid
    export RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="+S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none -kernel inet_dist_use_interface {127,0,0,1}"
}
start_rabbit() (
    mkdir -p "$STATE/rabbitmq"
    rabbit_env
    daemon epmd epmd -address 127.0.0.1 -port "$EPMD_PORT"
    daemon rabbitmq /usr/lib/rabbitmq/bin/rabbitmq-server
)

api() { # NAME PORT MODULE [ARGUMENTS]: a WSGI application under uWSGI
    daemon "$1" "$VENV/bin/uwsgi" --http-socket "127.0.0.1:$2" \
        --virtualenv "$VENV" --module "$3" ${4:+--pyargv "$4"} \
        --master --processes 1 --threads "$LAB_API_THREADS" --enable-threads \
        --lazy-apps --need-app --die-on-term --buffer-size 65535 \
        --procname-prefix "lab-$1 " --disable-logging \
        --add-header "Connection: close" --worker-reload-mercy 3 \
        --chunked-input-limit 16777216 --chunked-input-timeout 60
}
start_keystone() {
    OS_KEYSTONE_CONFIG_FILES=$ETC/keystone.conf api keystone "$KEYSTONE_PORT" keystone.wsgi.api:application
}
start_services() {
    OS_GLANCE_CONFIG_DIR=$ETC api glance "$GLANCE_PORT" glance.wsgi.api:application
    OS_PLACEMENT_CONFIG_DIR=$ETC api placement "$PLACEMENT_PORT" placement.wsgi.api:application
    OS_NOVA_CONFIG_DIR=$ETC OS_NOVA_CONFIG_FILES="$VENV/etc/nova/api-paste.ini;nova.conf;nova-db.conf" \
        api nova-api "$NOVA_PORT" nova.wsgi.osapi_compute:application
    OS_NEUTRON_CONFIG_DIR=$ETC OS_NEUTRON_CONFIG_FILES=neutron.conf \
        api neutron "$NEUTRON_PORT" neutron.wsgi.api:application
    api cinder-api "$CINDER_PORT" cinder.wsgi.api:application "--config-file $ETC/cinder.conf"
    api heat-api "$HEAT_PORT" heat.wsgi.api:application "--config-file $ETC/heat.conf"
    api heat-cfn "$HEAT_CFN_PORT" heat.wsgi.cfn:application "--config-file $ETC/heat.conf"
    local name
    for name in nova-conductor nova-scheduler; do
        daemon $name "$VENV/bin/$name" --config-file "$ETC/nova.conf" --config-file "$ETC/nova-db.conf"
    done
    for name in $HOSTS; do
        mkdir -p "$STATE/nova/$name"
        printf '[DEFAULT]\nhost = %s\nstate_path = %s\n' "$name" "$STATE/nova/$name" > "$ETC/nova-$name.conf"
        daemon "nova-compute-$name" "$VENV/bin/nova-compute" --config-file "$ETC/nova.conf" --config-file "$ETC/nova-$name.conf"
    done
    for name in cinder-scheduler cinder-volume; do
        daemon $name "$VENV/bin/$name" --config-file "$ETC/cinder.conf"
    done
    daemon heat-engine "$VENV/bin/heat-engine" --config-file "$ETC/heat.conf"
}
HOSTS=$(seq -f "lab%g" -s " " 1 "$LAB_HOSTS")
SERVICES="$(printf "nova-compute-%s " $HOSTS) heat-engine cinder-volume nova-api neutron cinder-api heat-api heat-cfn \
nova-scheduler nova-conductor cinder-scheduler glance placement keystone"
BACKENDS="rabbitmq epmd mariadb"

machines() { # stop-all|destroy-all|list
    local directory
    for directory in "$STATE"/nova/*/machines; do
        [ ! -d "$directory" ] || python_lab -m openstack_lab.machine "$directory" "$1"
    done
}

# Servers' packets leave under this machine's address; "nft" has it all in one table.
nat() { # up|down
    nft delete table ip openstack_lab 2>/dev/null || true
    [ "$1" = up ] && [ "$LAB_NAT" = 1 ] || return 0
    echo 1 > /proc/sys/net/ipv4/ip_forward
    nft -f - <<'RULES'
table ip openstack_lab {
    chain enter { type filter hook prerouting priority mangle; iifname "brq*" meta mark set 0x6c6162; }
    chain leave { type nat hook postrouting priority srcnat; meta mark 0x6c6162 oifname != "brq*" masquerade; }
}
RULES
}

python_lab() { "$VENV/bin/python" "$@"; }

render() { # conf/* -> ETC
    local name
    mkdir -p "$ETC" "$LOG" "$RUN" "$STATE" "$LIBEXEC"
    chmod 700 "$ETC"
    install -m 755 "$HERE/guest/boot" "$LIBEXEC/boot"
    printf '[].\n' > "$ETC/rabbitmq-plugins"
    printf 'log.console = true\nlog.console.level = warning\nvm_memory_high_watermark.absolute = 512MB\ndisk_free_limit.absolute = 50MB\n' > "$ETC/rabbitmq.conf"
    export KEYSTONE_PORT GLANCE_PORT PLACEMENT_PORT NOVA_PORT NEUTRON_PORT CINDER_PORT
    export RUN HOSTS HEAT_PORT HEAT_CFN_PORT VENV BASE STATE LIBEXEC SOCKET
    export PASSWORD=$LAB_PASSWORD HEAT_WORKERS=$LAB_HEAT_WORKERS APPLICATION_TRUSTS=$LAB_APPLICATION_TRUSTS
    export RABBIT=rabbit://guest:guest@127.0.0.1:$RABBIT_PORT/
    export DATABASE=mysql+pymysql://root@localhost
    export HEAT_KEY=0123456789abcdef0123456789abcdef
    for name in "$HERE"/conf/*; do
        python_lab "$HERE/render.py" < "$name" > "$ETC/${name##*/}.new"
        mv "$ETC/${name##*/}.new" "$ETC/${name##*/}"
    done
    mv "$ETC/clouds.yaml" "$LAB_DIR/clouds.yaml"
}
