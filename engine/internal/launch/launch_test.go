package launch

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"podwarden.io/engine/internal/options"
	"podwarden.io/engine/internal/pki"
)

var now = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func layout(t *testing.T, change func(*options.Options)) Layout {
	t.Helper()
	authority, err := pki.Ensure(t.TempDir(), now)
	if err != nil {
		t.Fatal(err)
	}
	o := options.Options{
		Data: "/data", KwokConfigs: []string{"/stages.yaml"}, NodeMonitorGracePeriod: 50 * time.Second, ConcurrentJobSyncs: 7,
		QPS: 1000, Burst: 2000, MaxRequestsInflight: 11, MaxMutatingRequestsInflight: 12,
	}
	if change != nil {
		change(&o)
	}
	return Layout{
		Options: o, Pki: authority,
		Ports: map[string]int{"kube-apiserver": 1, "kube-controller-manager": 2, "kube-scheduler": 3, "kwok": 4},
		Join:  func(parts ...string) string { return filepath.Join(append([]string{"/data"}, parts...)...) },
	}
}

func expect(t *testing.T, args []string, want ...string) {
	t.Helper()
	for _, flag := range want {
		if !slices.Contains(args, flag) {
			t.Errorf("no %s in %v", flag, args)
		}
	}
}

func TestArguments(t *testing.T) {
	l := layout(t, nil)
	expect(t, l.Arguments("kine"), "--listen-address=unix:///data/kine.sock", "--metrics-bind-address=0")
	expect(t, l.Arguments("kube-apiserver"),
		"--etcd-servers=unix:///data/kine.sock", "--bind-address=127.0.0.1", "--secure-port=1", "--authorization-mode=Node,RBAC",
		"--max-requests-inflight=11", "--max-mutating-requests-inflight=12")
	expect(t, l.Arguments("kube-controller-manager"),
		"--kube-api-qps=1000", "--kube-api-burst=2000", "--use-service-account-credentials=true", "--concurrent-job-syncs=7",
		"--node-monitor-grace-period=50s", "--node-monitor-period=5s", "--bind-address=127.0.0.1", "--secure-port=2")
	expect(t, l.Arguments("kube-scheduler"), "--config=/data/conf/scheduler.yaml", "--bind-address=127.0.0.1", "--secure-port=3")
	expect(t, l.Arguments("kwok"), "--config=/data/conf/kwok.yaml", "--config=/stages.yaml", "--kubeconfig=/data/kwok.kubeconfig")
}

func TestAuditOnlyWhenAsked(t *testing.T) {
	quiet := layout(t, nil)
	if strings.Contains(strings.Join(quiet.Arguments("kube-apiserver"), " "), "audit") || quiet.Files(now)["conf/audit.yaml"] != nil {
		t.Error("an audit log that nobody asked for")
	}
	loud := layout(t, func(o *options.Options) { o.AuditLog = "/a.log" })
	expect(t, loud.Arguments("kube-apiserver"), "--audit-log-path=/a.log", "--audit-log-mode=batch", "--audit-policy-file=/data/conf/audit.yaml")
	if policy := string(loud.Files(now)["conf/audit.yaml"]); !strings.Contains(policy, "level: Metadata") {
		t.Error(policy)
	}
}

func TestSchedulerConfig(t *testing.T) {
	config := string(layout(t, nil).Files(now)["conf/scheduler.yaml"])
	for _, want := range []string{
		"percentageOfNodesToScore: 100", "name: NodeAffinity\n        weight: 100", "qps: 1000", "burst: 2000", "/data/kube-scheduler.kubeconfig",
	} {
		if !strings.Contains(config, want) {
			t.Errorf("no %q in\n%s", want, config)
		}
	}
}

func TestKwokConfig(t *testing.T) {
	l := layout(t, nil)
	config := string(l.Files(now)["conf/kwok.yaml"])
	for _, want := range []string{
		"manageNodesWithLabelSelector: " + PowerLabel + "=on", "serverAddress: 127.0.0.1:4", "nodeLeaseDurationSeconds: 40", "kind: ClusterLogs",
	} {
		if !strings.Contains(config, want) {
			t.Errorf("no %q in\n%s", want, config)
		}
	}
	for _, door := range []string{"Exec", "Attach", "PortForward"} {
		if strings.Contains(config, door) {
			t.Errorf("%s is open: it would act on this host", door)
		}
	}
	without := layout(t, func(o *options.Options) { o.NoKwok = true })
	if without.Files(now)["conf/kwok.yaml"] != nil {
		t.Error("a configuration for a kwok that does not run")
	}
}

func TestLeasesAreRenewedWellWithinTheGracePeriod(t *testing.T) {
	for grace, want := range map[time.Duration]int{50 * time.Second: 40, time.Hour: 40, 8 * time.Second: 6, 4 * time.Second: 3} {
		if got := LeaseSeconds(grace); got != want {
			t.Errorf("%s: %d, want %d", grace, got, want)
		}
	}
}

func TestSimulatedLogIsInTheRuntimesForm(t *testing.T) {
	for _, line := range strings.Split(strings.TrimSpace(string(simulatedLog(now))), "\n") {
		fields := strings.SplitN(line, " ", 4)
		if _, err := time.Parse(time.RFC3339Nano, fields[0]); err != nil || fields[1] != "stdout" || fields[2] != "F" {
			t.Errorf("%q (%v)", line, err)
		}
	}
}
