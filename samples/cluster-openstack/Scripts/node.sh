#!/bin/bash
# A package's own node script, as short as it can be: a beginning for yours. Named by script_path, it makes each node
# instead of Slipway's own steps. It works in the image that `lab/openstack/kubernetes-image` and the sandbox have, which
# brings all programs and container images. Options and variables are told in docs/cluster-parameters.md. One master.
set -eu
masters='' worker='' cluster='' pods='' services='' token='' hash=''
while getopts m:w:i:p:a:t:s:k: option; do
    case $option in
    m) masters=$OPTARG ;;
    w) worker=$OPTARG ;;
    i) cluster=$OPTARG ;;
    p) pods=$OPTARG ;;
    a) services=$OPTARG ;;
    t) token=$OPTARG ;;
    s) hash=$OPTARG ;;
    k) : ;;
    *) exit 64 ;;
    esac
done
[ "$ha_flag" = False ] || { echo "only one master, please" >&2; exit 64; }
own=${worker:-${masters%%,*}}
repository=registry.slipway.test

cat >/etc/containerd/config.toml <<TOML
version = 2
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "$repository/pause:3.10.1"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/opt/cni/bin"
TOML
systemctl restart containerd
until ctr version >/dev/null 2>&1; do sleep 0.5; done
for archive in /usr/share/slipway/images/*.tar; do ctr -n k8s.io images import "$archive" >/dev/null; done
sysctl --quiet -w net.ipv4.ip_forward=1
mkdir -p /etc/cni/net.d
cat >/etc/cni/net.d/10-bridge.conflist <<JSON
{"cniVersion": "0.4.0", "name": "bridge", "plugins": [{"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": true,
 "ipam": {"type": "host-local", "ranges": [[{"subnet": "192.168.${own##*.}.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
JSON

if [ -n "$worker" ]; then
    kubeadm join "$cluster:6443" --token "$token" --discovery-token-ca-cert-hash "sha256:$hash"
    exit 0
fi
cat >/root/init.yaml <<YAML
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: "$own"}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.34.4
imageRepository: $repository
controlPlaneEndpoint: "$cluster:6443"
apiServer: {certSANs: [${API_SERVER_NAMES:-}]}
networking: {podSubnet: "$pods", serviceSubnet: "$services"}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: systemd
---
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
conntrack: {maxPerCore: 0}
YAML
kubeadm init --config /root/init.yaml
export KUBECONFIG=/etc/kubernetes/admin.conf
echo "token: $(kubeadm token create)"
echo "server: https://$cluster:6443"
echo "ssl_ca_cert_hash: $(openssl x509 -pubkey -noout -in /etc/kubernetes/pki/ca.crt | openssl pkey -pubin -outform der | sha256sum | cut -d' ' -f1)"
