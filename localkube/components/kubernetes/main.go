// Command kubernetes is every Kubernetes program of the local cluster in one
// binary, so that the packages they share are compiled, linked and stored
// once. Like busybox it looks at the name it is called by: a symlink called
// kubelet is the kubelet.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	_ "time/tzdata" // CronJob time zones, on machines without a zone database

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectlcmd "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// programs maps the name this binary is called by to what it then is.
var programs = map[string]func() int{
	"etcd":                    runEtcd,
	"kube-apiserver":          command(apiserver.NewAPIServerCommand),
	"kube-controller-manager": command(controllermanager.NewControllerManagerCommand),
	"kube-proxy":              command(proxy.NewProxyCommand),
	"kube-scheduler":          command(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
	"kubectl":                 runKubectl,
	"kubelet": command(
		func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }),
}

func main() {
	run, ok := programs[calledAs()]
	if !ok {
		fmt.Fprintf(os.Stderr, "usage: %s PROGRAM [FLAGS], where PROGRAM is one of: %s\n",
			filepath.Base(os.Args[0]), strings.Join(names(), ", "))
		os.Exit(2)
	}
	os.Exit(run())
}

// calledAs returns the program's name: the symlink's, or else the first
// argument, which is then taken off the command line.
func calledAs() string {
	name := filepath.Base(os.Args[0])
	if _, ok := programs[name]; ok || len(os.Args) < 2 {
		return name
	}
	os.Args = os.Args[1:]
	return os.Args[0]
}

func names() []string {
	list := make([]string, 0, len(programs))
	for name := range programs {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

func command(make func() *cobra.Command) func() int {
	return func() int { return cli.Run(make()) }
}

func runEtcd() int {
	etcdmain.Main(os.Args)
	return 0
}

// runKubectl is kubectl's own main: it sets up logging by hand, because
// plugins are looked up while the command is built, before flags are parsed.
func runKubectl() int {
	logs.GlogSetter( //nolint:errcheck // as kubectl does: a bad level is reported later
		kubectlcmd.GetLogVerbosity(os.Args))
	if err := cli.RunNoErrOutput(kubectlcmd.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err)
	}
	return 0
}
