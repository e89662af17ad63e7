// Package up brings the parts together: one run of the engine on one data folder.
package up

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"strconv"
	"time"

	"podwarden.io/engine/internal/bootstrap"
	"podwarden.io/engine/internal/datadir"
	"podwarden.io/engine/internal/launch"
	"podwarden.io/engine/internal/options"
	"podwarden.io/engine/internal/pki"
	"podwarden.io/engine/internal/ports"
	"podwarden.io/engine/internal/supervisor"
)

// portPatience is how long a port of the last run may stay taken before another is chosen.
const portPatience = 5 * time.Second

// Run runs the engine until ctx ends (nil) or it cannot go on.
func Run(ctx context.Context, opts options.Options, versions map[string]string) error {
	begin := time.Now()
	folder, err := datadir.Open(opts.Data)
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := claim(folder, begin); err != nil {
		return err
	}
	layout, err := prepare(folder, opts, begin)
	if err != nil {
		return err
	}
	client, err := bootstrap.NewClient(layout.Pki)
	if err != nil {
		return err
	}
	report := newReporter(folder, layout, versions, begin)
	report.state("starting", nil)
	overseer, err := supervisor.New(components(layout, client), folder.Join("logs"), supervisor.DefaultLimits(opts.StartTimeout), report.component)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { report.state("stopping", nil) })
	err = overseer.Run(ctx, func() { report.state("ready", nil) })
	if err != nil {
		report.state("failed", err)
		return err
	}
	report.state("stopped", nil)
	return nil
}

// claim says in engine.json that the folder is this process's now: an earlier one that was killed may have left "ready" there.
// The ports of the last run stay, to be used again.
func claim(folder *datadir.Folder, now time.Time) error {
	last, err := folder.ReadState()
	if err != nil {
		return fmt.Errorf("%s cannot be read (%w): remove it, the engine makes it anew", folder.Join("engine.json"), err)
	}
	err = folder.WriteState(datadir.State{PID: os.Getpid(), State: "starting", Started: now.UTC(), Ports: last.Ports})
	if err != nil {
		return fmt.Errorf("--data %s: the folder cannot be written to: %w", folder.Path, err)
	}
	return nil
}

// prepare writes everything that the components read.
func prepare(folder *datadir.Folder, opts options.Options, now time.Time) (launch.Layout, error) {
	layout := launch.Layout{Options: opts, Join: folder.Join}
	var err error
	if layout.Pki, err = pki.Ensure(folder.Join("pki"), now); err != nil {
		return layout, err
	}
	if layout.Ports, err = choosePorts(folder, opts.Port); err != nil {
		return layout, err
	}
	files := layout.Files(now)
	for user, name := range users() {
		if files[name], err = layout.Pki.Kubeconfig(user, layout.Server()); err != nil {
			return layout, err
		}
	}
	for name, content := range files {
		if err := folder.WriteFile(name, content); err != nil {
			return layout, fmt.Errorf("--data %s: %s cannot be written: %w", folder.Path, name, err)
		}
	}
	return layout, nil
}

// users maps each client certificate to the file of its kubeconfig.
func users() map[string]string {
	files := map[string]string{"admin": adminKubeconfig}
	for _, user := range launch.Users {
		files[user] = user + ".kubeconfig"
	}
	return files
}

const adminKubeconfig = "admin.kubeconfig"

// choosePorts prefers the ports of the last run. A port that was asked for is taken or refused, never replaced.
func choosePorts(folder *datadir.Folder, wanted int) (map[string]int, error) {
	last, err := folder.ReadState()
	if err != nil {
		return nil, err
	}
	remembered := maps.Clone(last.Ports)
	if remembered == nil {
		remembered = map[string]int{}
	}
	if wanted != 0 {
		if !ports.WaitFree(wanted, portPatience) {
			return nil, fmt.Errorf("--port %d: another program listens there on 127.0.0.1: stop it, or choose another port (0 lets the engine choose)", wanted)
		}
		remembered["kube-apiserver"] = wanted
	}
	return ports.Choose(launch.PortNames, remembered, portPatience)
}

// components lists what runs, in the order in which it starts.
func components(layout launch.Layout, client *bootstrap.Client) []supervisor.Component {
	server := layout.Server()
	healthz := func(name string) func(context.Context) error {
		return func(ctx context.Context) error {
			return client.Healthy(ctx, "https://127.0.0.1:"+strconv.Itoa(layout.Ports[name])+"/healthz")
		}
	}
	list := []supervisor.Component{
		{Name: "kine", Stage: 0, Patience: 10 * time.Second, Ready: dialer(layout.Join(options.SocketName))},
		{Name: "kube-apiserver", Stage: 1, Patience: 15 * time.Second, Ready: func(ctx context.Context) error {
			return client.Healthy(ctx, server+"/readyz")
		}},
		{Name: "kube-controller-manager", Stage: 2, Patience: 5 * time.Second, Ready: healthz("kube-controller-manager")},
		{Name: "kube-scheduler", Stage: 2, Patience: 5 * time.Second, Ready: healthz("kube-scheduler")},
	}
	if !layout.Options.NoKwok {
		list = append(list, supervisor.Component{
			Name: "kwok", Stage: 2, Patience: 5 * time.Second, Ready: healthz("kwok"),
			Before: func(ctx context.Context) error {
				if err := client.GrantSimulator(ctx, server, "podwarden:kwok"); err != nil {
					return err
				}
				return client.ReleaseNodes(ctx, server, layout.Ports["kwok"])
			},
		})
	}
	for i := range list {
		// /proc/self/exe stays this very binary, also after the file was replaced by a newer build.
		list[i].Path = "/proc/self/exe"
		list[i].Argv0 = "podwarden-engine"
		list[i].Args = append([]string{list[i].Name}, layout.Arguments(list[i].Name)...)
		list[i].Dir = layout.Join()
		list[i].Env = environment(layout)
	}
	return list
}

// environment is what components see: nothing of the user's that could change what they do, such as proxies, KUBECONFIG or
// kwok's own configuration in the home folder.
func environment(layout launch.Layout) []string {
	env := []string{"KWOK_WORKDIR=" + layout.Join("kwok")}
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "TZ", "GODEBUG", "GOGC", "GOMAXPROCS", "GOMEMLIMIT"} {
		if value, set := os.LookupEnv(name); set {
			env = append(env, name+"="+value)
		}
	}
	return env
}

func dialer(socket string) func(context.Context) error {
	return func(ctx context.Context) error {
		connection, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
		if err != nil {
			return err
		}
		return connection.Close()
	}
}
