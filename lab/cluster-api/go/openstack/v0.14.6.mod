module slipway/cluster-api-provider-openstack

go 1.24.0

require sigs.k8s.io/cluster-api-provider-openstack v0.14.6
