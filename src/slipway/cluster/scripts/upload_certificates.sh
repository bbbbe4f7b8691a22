# upload_certificates CONFIG: what a new master needs of the others, encrypted with the key in CONFIG, for two hours.
set -eu
kubeadm init phase upload-certs --upload-certs --config "$1" >/dev/null
