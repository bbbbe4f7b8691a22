# etcd_health SECONDS URL...: print those of the members' addresses that answer in time.
set -eu
seconds=$1
shift
pki=/etc/kubernetes/pki/etcd
for url; do
    (! curl --silent --fail --max-time "$seconds" --output /dev/null \
        --cacert $pki/ca.crt --cert $pki/healthcheck-client.crt --key $pki/healthcheck-client.key "$url/health" ||
        echo "$url") &
done
wait
