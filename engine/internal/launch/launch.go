// Package launch says how each component is started: its arguments and its configuration files. It starts nothing.
package launch

import (
	"fmt"
	"strconv"
	"time"

	"podwarden.io/engine/internal/options"
	"podwarden.io/engine/internal/pki"
)

// PortNames are the components that listen on a port of their own.
var PortNames = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"}

// Users are the kubeconfigs that are written into the data folder, besides the admin's.
var Users = []string{"kube-controller-manager", "kube-scheduler", "kwok"}

// PowerLabel is on every simulated node; only a node that has it with the value "on" is kept alive.
const PowerLabel = "simulator.podwarden.io/power"

const serviceNetwork = "10.43.0.0/16"

// databaseSettings are what K3s gives to SQLite through kine: a write-ahead log, and writers that wait for each other.
const databaseSettings = "_journal_mode=WAL&_busy_timeout=30000&_synchronous=NORMAL&_txlock=immediate&cache=shared"

// Layout is everything the arguments depend on.
type Layout struct {
	Options options.Options
	Ports   map[string]int
	Pki     *pki.Authority
	Join    func(parts ...string) string
}

// Server is the API server's address.
func (l Layout) Server() string {
	return "https://127.0.0.1:" + strconv.Itoa(l.Ports["kube-apiserver"])
}

// Arguments returns the arguments of one component, its name not included.
func (l Layout) Arguments(component string) []string {
	switch component {
	case "kine":
		return l.kine()
	case "kube-apiserver":
		return l.apiserver()
	case "kube-controller-manager":
		return l.controllerManager()
	case "kube-scheduler":
		return l.scheduler()
	case "kwok":
		return l.kwok()
	}
	panic("no such component: " + component)
}

func (l Layout) socket() string { return "unix://" + l.Join(options.SocketName) }

func (l Layout) kine() []string {
	return []string{
		"--listen-address=" + l.socket(),
		"--endpoint=sqlite://" + l.Join("state.db") + "?" + databaseSettings,
		"--metrics-bind-address=0",
	}
}

func (l Layout) apiserver() []string {
	args := []string{
		"--etcd-servers=" + l.socket(),
		"--bind-address=127.0.0.1",
		// There is no address under which pods could reach a server on loopback, so no endpoint is published for it.
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		"--secure-port=" + strconv.Itoa(l.Ports["kube-apiserver"]),
		"--tls-cert-file=" + l.Pki.Path("apiserver.crt"),
		"--tls-private-key-file=" + l.Pki.Path("apiserver.key"),
		"--client-ca-file=" + l.Pki.Path("ca.crt"),
		"--kubelet-certificate-authority=" + l.Pki.Path("ca.crt"),
		"--kubelet-client-certificate=" + l.Pki.Path("kubelet-client.crt"),
		"--kubelet-client-key=" + l.Pki.Path("kubelet-client.key"),
		// Simulated nodes show made-up addresses; where their logs are really served is their internal name.
		"--kubelet-preferred-address-types=InternalDNS,InternalIP,Hostname",
		"--service-account-key-file=" + l.Pki.Path("service-account.pub"),
		"--service-account-signing-key-file=" + l.Pki.Path("service-account.key"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-cluster-ip-range=" + serviceNetwork,
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--profiling=false",
		"--max-requests-inflight=" + strconv.Itoa(l.Options.MaxRequestsInflight),
		"--max-mutating-requests-inflight=" + strconv.Itoa(l.Options.MaxMutatingRequestsInflight),
	}
	if l.Options.AuditLog != "" {
		args = append(args,
			"--audit-policy-file="+l.Join("conf", "audit.yaml"),
			"--audit-log-path="+l.Options.AuditLog,
			"--audit-log-mode=batch",
			"--audit-log-maxsize=200",
			"--audit-log-maxbackup=5",
		)
	}
	return args
}

func (l Layout) controllerManager() []string {
	kubeconfig := l.Join("kube-controller-manager.kubeconfig")
	grace := l.Options.NodeMonitorGracePeriod
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--authentication-skip-lookup=true",
		"--client-ca-file=" + l.Pki.Path("ca.crt"),
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + l.Pki.Path("service-account.key"),
		"--root-ca-file=" + l.Pki.Path("ca.crt"),
		"--cluster-signing-cert-file=" + l.Pki.Path("ca.crt"),
		"--cluster-signing-key-file=" + l.Pki.Path("ca.key"),
		"--leader-elect=false",
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(l.Ports["kube-controller-manager"]),
		"--tls-cert-file=" + l.Pki.Path("loopback.crt"),
		"--tls-private-key-file=" + l.Pki.Path("loopback.key"),
		"--profiling=false",
		"--kube-api-qps=" + strconv.Itoa(l.Options.QPS),
		"--kube-api-burst=" + strconv.Itoa(l.Options.Burst),
		"--concurrent-job-syncs=" + strconv.Itoa(l.Options.ConcurrentJobSyncs),
		"--node-monitor-grace-period=" + grace.String(),
		"--node-monitor-period=" + min(5*time.Second, grace/5).String(),
	}
}

func (l Layout) scheduler() []string {
	kubeconfig := l.Join("kube-scheduler.kubeconfig")
	return []string{
		"--config=" + l.Join("conf", "scheduler.yaml"),
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--authentication-skip-lookup=true",
		"--client-ca-file=" + l.Pki.Path("ca.crt"),
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(l.Ports["kube-scheduler"]),
		"--tls-cert-file=" + l.Pki.Path("loopback.crt"),
		"--tls-private-key-file=" + l.Pki.Path("loopback.key"),
	}
}

func (l Layout) kwok() []string {
	args := []string{
		"--kubeconfig=" + l.Join("kwok.kubeconfig"),
		"--config=" + l.Join("conf", "kwok.yaml"),
		// At its usual level kwok writes a line for each change of each pod.
		"--v=WARN",
	}
	for _, file := range l.Options.KwokConfigs {
		args = append(args, "--config="+file)
	}
	return args
}

// LeaseSeconds is how long a simulated node's lease is good for; kwok renews it after a quarter of that. It is kept well
// below the grace period, and is a kubelet's 40 s where the grace period is the usual one.
func LeaseSeconds(grace time.Duration) int {
	return max(2, min(40, int(grace.Seconds()*4/5)))
}

// Files returns the configuration files by their path inside the data folder.
func (l Layout) Files(now time.Time) map[string][]byte {
	files := map[string][]byte{
		"conf/scheduler.yaml": l.schedulerConfig(),
	}
	if l.Options.AuditLog != "" {
		files["conf/audit.yaml"] = []byte(auditPolicy)
	}
	if !l.Options.NoKwok {
		files["conf/kwok.yaml"] = l.kwokConfig()
		files["kwok/pod.log"] = simulatedLog(now)
	}
	return files
}

// schedulerConfig looks at every node and lets PodWarden's ranking, which travels as preferred node affinity, outweigh all
// other scores.
func (l Layout) schedulerConfig() []byte {
	return fmt.Appendf(nil, `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 100
leaderElection:
  leaderElect: false
clientConnection:
  kubeconfig: %s
  qps: %d
  burst: %d
profiles:
- schedulerName: default-scheduler
  plugins:
    score:
      enabled:
      - name: NodeAffinity
        weight: 100
`, l.Join("kube-scheduler.kubeconfig"), l.Options.QPS, l.Options.Burst)
}

// kwokConfig holds kwok's own settings and the logs of simulated pods. There is deliberately no object for exec, attach or
// port-forward: kwok's exec would run the command on this host.
func (l Layout) kwokConfig() []byte {
	return fmt.Appendf(nil, `apiVersion: config.kwok.x-k8s.io/v1alpha1
kind: KwokConfiguration
options:
  manageNodesWithLabelSelector: %s=on
  nodeLeaseDurationSeconds: %d
  nodeLeaseParallelism: 8
  podPlayStageParallelism: 16
  nodePlayStageParallelism: 8
  podsOnNodeSyncParallelism: 4
  cidr: 10.42.0.1/16
  nodePort: %d
  serverAddress: 127.0.0.1:%d
  tlsCertFile: %s
  tlsPrivateKeyFile: %s
  enableDebuggingHandlers: true
  enableProfilingHandler: false
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterLogs
metadata:
  name: simulated
spec:
  logs:
  - logsFile: %s
    previousLogsFile: %s
`, PowerLabel, LeaseSeconds(l.Options.NodeMonitorGracePeriod), l.Ports["kwok"], l.Ports["kwok"],
		l.Pki.Path("loopback.crt"), l.Pki.Path("loopback.key"), l.Join("kwok", "pod.log"), l.Join("kwok", "pod.log"))
}

// simulatedLog is what every simulated container has "written", in the form in which container runtimes keep logs.
func simulatedLog(now time.Time) []byte {
	stamp := now.UTC().Format(time.RFC3339Nano)
	return fmt.Appendf(nil, "%s stdout F This container is simulated: no program runs in it.\n"+
		"%s stdout F PodWarden's simulator plays its node; start, end and failure follow the simulator annotations of the workload.\n", stamp, stamp)
}

// auditPolicy records who changed what and when, once per request, and nothing else.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
- level: None
`
