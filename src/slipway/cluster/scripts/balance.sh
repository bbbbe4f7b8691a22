# balance CHANGED...: the balancer's services with the files that changed. One that did not change goes on undisturbed.
set -eu
haproxy -c -q -f /etc/haproxy/haproxy.cfg
changed=" $* "
for service in haproxy keepalived; do
    systemctl enable --quiet "$service"
    case $changed in
    *" /etc/$service/"*) systemctl reload-or-restart "$service" ;;
    *) systemctl start "$service" ;;
    esac
done
systemctl is-active --quiet haproxy keepalived
