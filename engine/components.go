package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	_ "time/tzdata" // time zones of CronJobs, on hosts without a zone database

	kine "github.com/k3s-io/kine/pkg/app"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // version metric
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
	kwoksignals "sigs.k8s.io/kwok/pkg/utils/signals"
)

// components maps a name to what runs it in this process, reading os.Args, until it ends; the result is the exit code.
// The commands are built only when asked for: building one already installs its signal handlers and feature gates.
var components = map[string]func() int{
	"kube-apiserver":          func() int { return runCobra(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func() int { return runCobra(controllers.NewControllerManagerCommand()) },
	"kube-scheduler":          func() int { return runCobra(scheduler.NewSchedulerCommand()) },
	"kubelet":                 func() int { return runCobra(kubelet.NewKubeletCommand(context.Background())) },
	"kube-proxy":              func() int { return runCobra(proxy.NewProxyCommand()) },
	"kine":                    runKine,
	"kwok":                    runKwok,
}

func componentNames() []string {
	names := make([]string, 0, len(components))
	for name := range components {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func runCobra(command *cobra.Command) int { return cli.Run(command) }

func runKine() int {
	err := kine.New().Run(os.Args)
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "kine:", err)
		return exitFailed
	}
	return 0
}

// runKwok reads kwok's global flags (log level, configuration files) before the command exists, because kwok fills the
// command's defaults from those files.
func runKwok() int {
	flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}
	ctx, _ := kwoklog.InitFlags(kwoksignals.SetupSignalContext(), flags)
	ctx, err := kwokconfig.InitFlags(ctx, flags)
	if err != nil {
		fmt.Fprintln(os.Stderr, "kwok: configuration:", err)
		return exitFailed
	}
	command := kwok.NewCommand(ctx)
	// Kubernetes' packages add a --version flag of another type to all commands, with which kwok's own would clash.
	command.Version = ""
	command.PersistentFlags().AddFlagSet(flags)
	if err := command.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "kwok:", err)
		return exitFailed
	}
	return 0
}
