// Package options reads the command line of `podwarden-engine up`. It checks values, not the machine.
package options

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
)

// maxSocketPath is what Linux allows for the path of a unix socket, less its closing zero byte.
const maxSocketPath = 107

// SocketName is kine's socket inside the data folder.
const SocketName = "kine.sock"

// Options are the settings of one run.
type Options struct {
	Data                        string
	Port                        int
	KwokConfigs                 []string
	NoKwok                      bool
	NodeMonitorGracePeriod      time.Duration
	ConcurrentJobSyncs          int
	QPS                         int
	Burst                       int
	AuditLog                    string
	MaxRequestsInflight         int
	MaxMutatingRequestsInflight int
	StartTimeout                time.Duration
}

func flagSet(o *Options) *pflag.FlagSet {
	f := pflag.NewFlagSet("up", pflag.ContinueOnError)
	f.Usage = func() {}
	f.SortFlags = false
	f.StringVar(&o.Data, "data", "", "folder for the database, certificates, logs and kubeconfigs (made when absent, mode 0700)")
	f.IntVar(&o.Port, "port", 0, "port of the API server on 127.0.0.1 (0: the one used last, or a free one)")
	f.StringArrayVar(&o.KwokConfigs, "kwok-config", nil, "file with KWOK stages; may be repeated")
	f.BoolVar(&o.NoKwok, "no-kwok", false, "do not simulate nodes")
	f.DurationVar(&o.NodeMonitorGracePeriod, "node-monitor-grace-period", 50*time.Second, "silence after which a node counts as not ready")
	f.IntVar(&o.ConcurrentJobSyncs, "concurrent-job-syncs", 5, "Jobs that the controller manager handles at a time")
	f.IntVar(&o.QPS, "qps", 1000, "requests per second that controller manager and scheduler may send, each")
	f.IntVar(&o.Burst, "burst", 2000, "burst of the same")
	f.StringVar(&o.AuditLog, "audit-log", "", "file for an audit log of all writes (who, what, when; no bodies)")
	f.IntVar(&o.MaxRequestsInflight, "max-requests-inflight", 400, "reading requests that the API server handles at a time")
	f.IntVar(&o.MaxMutatingRequestsInflight, "max-mutating-requests-inflight", 200, "writing requests that the API server handles at a time")
	f.DurationVar(&o.StartTimeout, "start-timeout", 2*time.Minute, "time for the whole to become ready")
	return f
}

// Usage lists the flags.
func Usage() string {
	var o Options
	return "usage: podwarden-engine up --data DIR [flags]\n" + flagSet(&o).FlagUsages()
}

// Parse reads and checks args. An error names the flag, its value and what would be right.
func Parse(args []string) (Options, error) {
	var o Options
	f := flagSet(&o)
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: everything is given by flags (see up --help)", f.Arg(0))
	}
	if err := o.check(); err != nil {
		return o, err
	}
	return o, o.resolve()
}

func (o *Options) check() error {
	if o.Data == "" {
		return errors.New("--data is missing: name a folder for the engine's data")
	}
	if o.Port != 0 && (o.Port < 1024 || o.Port > 65535) {
		return fmt.Errorf("--port %d: must be 0 (choose) or between 1024 and 65535", o.Port)
	}
	for name, value := range map[string]int{
		"--concurrent-job-syncs": o.ConcurrentJobSyncs, "--qps": o.QPS, "--burst": o.Burst,
		"--max-requests-inflight": o.MaxRequestsInflight, "--max-mutating-requests-inflight": o.MaxMutatingRequestsInflight,
	} {
		if value < 1 {
			return fmt.Errorf("%s %d: must be 1 or more", name, value)
		}
	}
	if o.NodeMonitorGracePeriod < 4*time.Second || o.NodeMonitorGracePeriod > time.Hour {
		return fmt.Errorf("--node-monitor-grace-period %s: must be between 4s and 1h", o.NodeMonitorGracePeriod)
	}
	if o.StartTimeout < time.Second {
		return fmt.Errorf("--start-timeout %s: must be 1s or more", o.StartTimeout)
	}
	if o.NoKwok && len(o.KwokConfigs) > 0 {
		return fmt.Errorf("--kwok-config %s: cannot be used together with --no-kwok", o.KwokConfigs[0])
	}
	if !o.NoKwok && len(o.KwokConfigs) == 0 {
		return errors.New("--kwok-config is missing: name a file with KWOK stages, or say --no-kwok")
	}
	return nil
}

// resolve makes paths absolute, because components run inside the data folder.
func (o *Options) resolve() error {
	for _, path := range append([]*string{&o.Data, &o.AuditLog}, pointers(o.KwokConfigs)...) {
		if *path == "" {
			continue
		}
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return fmt.Errorf("%s: %w", *path, err)
		}
		*path = absolute
	}
	if socket := filepath.Join(o.Data, SocketName); len(socket) > maxSocketPath {
		return fmt.Errorf("--data %s: the path is too long for the database socket inside it (%d characters, at most %d): choose a shorter one", o.Data, len(socket), maxSocketPath)
	}
	for _, file := range o.KwokConfigs {
		if _, err := os.ReadFile(file); err != nil {
			return fmt.Errorf("--kwok-config %s: cannot be read (%v): name a file with KWOK stages", file, errors.Unwrap(err))
		}
	}
	return nil
}

func pointers(values []string) []*string {
	out := make([]*string, len(values))
	for i := range values {
		out[i] = &values[i]
	}
	return out
}
