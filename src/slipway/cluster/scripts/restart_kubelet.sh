# restart_kubelet VERSION: the kubelet of that version, and kubectl with it.
set -eu
for program in kubelet kubectl; do
    new=/opt/kubernetes/$1/bin/$program
    [ ! -x "$new" ] || ln -sfn "$new" "/usr/bin/$program"
done
systemctl daemon-reload
systemctl restart kubelet
