#!/bin/sh
# A package's own load balancer script, as short as it can be: a beginning for yours. Named by external_lb_param.script_path,
# it sets up and changes the load balancer of a cluster in place of Slipway's template (docs/load-balancer.md).
# It runs as root. Whatever ends with another code than 0 fails the operation with what was printed last.
set -eu
verb=$1
shift
while [ $# -gt 0 ]; do
    case $1 in
    --api-port) api_port=$2 ;;
    --masters) masters=$2 ;;
    --nodes) nodes=$2 ;;
    --front-ends) front_ends=$2 ;;
    esac
    shift 2
done

case $verb in
install | reinstall)
    command -v haproxy >/dev/null || DEBIAN_FRONTEND=noninteractive apt-get -q -y install haproxy
    ;;
esac

servers() { # NAME=ADDRESS,... PORT
    echo "$1" | tr ',' '\n' | while IFS='=' read -r name address; do
        [ -z "$name" ] || echo "    server $name $address:$2 check"
    done
}

# All of it is told each time, so the file is always written as a whole, whatever the change is.
new=/etc/haproxy/haproxy.cfg.new
{
    printf '%s\n' 'defaults' '    mode tcp' '    timeout connect 5s' '    timeout client 1h' '    timeout server 1h'
    printf 'listen kubernetes-api\n    bind *:%s\n' "$api_port"
    servers "$masters" 6443
    echo "$front_ends" | tr ',' '\n' | while IFS='=' read -r service port; do
        [ -n "$service" ] || continue
        printf 'listen %s_%s\n    bind *:%s\n' "$(echo "$service" | tr '/' '_')" "$port" "$port"
        servers "$nodes" "$port"
    done
} >"$new"
haproxy -c -q -f "$new"
mv "$new" /etc/haproxy/haproxy.cfg
systemctl reload-or-restart haproxy
