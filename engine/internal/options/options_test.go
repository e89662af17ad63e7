package options

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestDefaults(t *testing.T) {
	o, err := Parse([]string{"--data=/d", "--no-kwok"})
	if err != nil {
		t.Fatal(err)
	}
	if o.QPS != 1000 || o.Burst != 2000 || o.NodeMonitorGracePeriod != 50*time.Second || o.ConcurrentJobSyncs != 5 || o.Port != 0 {
		t.Errorf("%+v", o)
	}
}

func TestPathsBecomeAbsolute(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("stages.yaml", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := Parse([]string{"--data=d", "--kwok-config=stages.yaml", "--audit-log=a.log"})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{o.Data, o.KwokConfigs[0], o.AuditLog} {
		if !filepath.IsAbs(path) {
			t.Errorf("%s", path)
		}
	}
}

func TestRefusals(t *testing.T) {
	long := "/" + strings.Repeat("x", maxSocketPath)
	cases := map[string][]string{
		"--data is missing":              {"--no-kwok"},
		"--kwok-config is missing":       {"--data=/d"},
		"--port 80":                      {"--data=/d", "--no-kwok", "--port=80"},
		"--burst 0":                      {"--data=/d", "--no-kwok", "--burst=0"},
		"--concurrent-job-syncs -1":      {"--data=/d", "--no-kwok", "--concurrent-job-syncs=-1"},
		"--max-requests-inflight 0":      {"--data=/d", "--no-kwok", "--max-requests-inflight=0"},
		"--node-monitor-grace-period 3s": {"--data=/d", "--no-kwok", "--node-monitor-grace-period=3s"},
		"--start-timeout 0s":             {"--data=/d", "--no-kwok", "--start-timeout=0s"},
		"--kwok-config /nowhere/x.yaml":  {"--data=/d", "--kwok-config=/nowhere/x.yaml"},
		"cannot be used together":        {"--data=/d", "--no-kwok", "--kwok-config=x"},
		"unexpected argument \"x\"":      {"--data=/d", "--no-kwok", "x"},
		"unknown flag: --prot":           {"--data=/d", "--prot=1"},
		"the path is too long":           {"--data=" + long, "--no-kwok"},
		"invalid argument \"many\"":      {"--data=/d", "--no-kwok", "--qps=many"},
	}
	for sentence, args := range cases {
		_, err := Parse(args)
		if err == nil || !strings.Contains(err.Error(), sentence) {
			t.Errorf("%v: %v, want %q", args, err, sentence)
		}
	}
}
