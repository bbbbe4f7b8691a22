# What the Ansible server has. Arguments: kubespray's directory, the inventory's directory.
root=$1 inventory=$2
PATH=$root/.venv/bin:$root/venv/bin:$PATH
[ -d "$root" ] || { echo "root absent"; exit 0; }
if version=$(cd / && ansible-playbook --version 2>&1); then
    echo "ansible $(echo "$version" | sed -n '1s/[^0-9]*\([0-9][0-9.]*\).*/\1/p')"
else
    echo "broken $(echo "$version" | tail -n 1 | cut -c 1-300)"
fi
command -v sshpass >/dev/null && echo "sshpass there"
for file in cluster.yml scale.yml remove-node.yml upgrade-cluster.yml playbooks/facts.yml galaxy.yml; do
    [ -f "$root/$file" ] || echo "missing $file"
done
echo "kubespray $(sed -n 's/^version: *//p' "$root/galaxy.yml" 2>/dev/null | tr -d "\"' ")"
bounds=$root/playbooks/ansible_version.yml
echo "minimal $(sed -n 's/^ *minimal_ansible_version: *//p' "$bounds" 2>/dev/null | tr -d "\"' ")"
echo "maximal $(sed -n 's/^ *maximal_ansible_version: *//p' "$bounds" 2>/dev/null | tr -d "\"' ")"
if [ -e "$inventory" ] || [ -L "$inventory" ]; then
    [ -O "$inventory" ] && owner=$(cat "$inventory/.slipway" 2>/dev/null) || owner=foreign
    echo "inventory $owner"
fi
