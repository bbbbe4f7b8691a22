# etcd CALL BODY: ask this master's etcd by its JSON gateway, with the certificate that kubeadm made for health checks.
set -eu
pki=/etc/kubernetes/pki/etcd
exec curl --silent --show-error --fail-with-body --max-time 15 \
    --cacert $pki/ca.crt --cert $pki/healthcheck-client.crt --key $pki/healthcheck-client.key \
    --data "$2" "https://127.0.0.1:2379/v3/$1"
