# etcd_health URL...: print those of the members' addresses that answer.
set -eu
pki=/etc/kubernetes/pki/etcd
for url; do
    (! curl --silent --fail --max-time 5 --output /dev/null \
        --cacert $pki/ca.crt --cert $pki/healthcheck-client.crt --key $pki/healthcheck-client.key "$url/health" ||
        echo "$url") &
done
wait
