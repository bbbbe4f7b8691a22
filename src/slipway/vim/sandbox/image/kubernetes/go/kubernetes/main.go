// The Kubernetes servers in one program, told apart by the name it is called under: one link, one image layer.
// kubeadm and kubectl are built from their own main packages, because people and programs rely on how they behave.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	_ "time/tzdata"

	"github.com/spf13/cobra"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"

	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

var commands = map[string]func() *cobra.Command{
	"kube-apiserver":          func() *cobra.Command { return apiserver.NewAPIServerCommand() },
	"kube-controller-manager": func() *cobra.Command { return manager.NewControllerManagerCommand() },
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kube-proxy":              func() *cobra.Command { return proxy.NewProxyCommand() },
	"kubelet":                 newKubelet,
}

// Kubernetes 1.34 gave NewKubeletCommand a context; before, it took nothing.
func newKubelet() *cobra.Command {
	make := reflect.ValueOf(kubelet.NewKubeletCommand)
	var arguments []reflect.Value
	if make.Type().NumIn() == 1 {
		arguments = append(arguments, reflect.ValueOf(context.Background()))
	}
	return make.Call(arguments)[0].Interface().(*cobra.Command)
}

func main() {
	make := commands[filepath.Base(os.Args[0])]
	if make == nil {
		fmt.Fprintln(os.Stderr, "call me kube-apiserver, kube-controller-manager, kube-scheduler, kube-proxy or kubelet")
		os.Exit(2)
	}
	os.Exit(cli.Run(make()))
}
