package up

import (
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"podwarden.io/engine/internal/datadir"
	"podwarden.io/engine/internal/launch"
	"podwarden.io/engine/internal/options"
	"podwarden.io/engine/internal/ports"
	"podwarden.io/engine/internal/supervisor"
)

func openFolder(t *testing.T, state datadir.State) *datadir.Folder {
	t.Helper()
	folder, err := datadir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(folder.Close)
	if err := folder.WriteState(state); err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestClaimReplacesWhatAKilledRunLeft(t *testing.T) {
	folder := openFolder(t, datadir.State{PID: 1, State: "ready", Server: "https://old", Ports: map[string]int{"kwok": 5}})
	if err := claim(folder, time.Now()); err != nil {
		t.Fatal(err)
	}
	state, err := folder.ReadState()
	if err != nil || state.State != "starting" || state.PID != os.Getpid() || state.Server != "" || state.Ports["kwok"] != 5 {
		t.Errorf("%+v %v", state, err)
	}
}

func TestPortsAreUsedAgain(t *testing.T) {
	first, err := choosePorts(openFolder(t, datadir.State{}), 0)
	if err != nil || len(first) != len(launch.PortNames) {
		t.Fatalf("%v %v", first, err)
	}
	again, err := choosePorts(openFolder(t, datadir.State{Ports: first}), 0)
	if err != nil {
		t.Fatal(err)
	}
	for name, port := range first {
		if again[name] != port {
			t.Errorf("%s: %d became %d", name, port, again[name])
		}
	}
}

func TestAPortThatWasAskedForIsTakenOrRefused(t *testing.T) {
	remembered, err := choosePorts(openFolder(t, datadir.State{}), 0)
	if err != nil {
		t.Fatal(err)
	}
	free, err := ports.Choose([]string{"x"}, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	chosen, err := choosePorts(openFolder(t, datadir.State{Ports: remembered}), free["x"])
	if err != nil || chosen["kube-apiserver"] != free["x"] || chosen["kwok"] != remembered["kwok"] {
		t.Errorf("%v %v", chosen, err)
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, err = choosePorts(openFolder(t, datadir.State{}), listener.Addr().(*net.TCPAddr).Port)
	if err == nil || !strings.Contains(err.Error(), "another program listens there") {
		t.Errorf("%v", err)
	}
}

func TestComponentsSeeNothingOfTheUsers(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://proxy.example.org")
	t.Setenv("KUBECONFIG", "/somewhere")
	layout := launch.Layout{Join: openFolder(t, datadir.State{}).Join}
	seen := strings.Join(environment(layout), " ")
	if strings.Contains(seen, "proxy") || strings.Contains(seen, "KUBECONFIG") || !strings.Contains(seen, "KWOK_WORKDIR=") {
		t.Error(seen)
	}
}

func TestWithoutSimulatedNodesThereIsNoKwok(t *testing.T) {
	folder := openFolder(t, datadir.State{})
	layout, err := prepare(folder, options.Options{NoKwok: true, NodeMonitorGracePeriod: time.Minute}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, component := range components(layout, nil) {
		if component.Name == "kwok" {
			t.Error("kwok is there")
		}
	}
	for _, name := range []string{adminKubeconfig, "conf/scheduler.yaml", "pki/ca.crt"} {
		if info, err := os.Stat(folder.Join(name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", name, info, err)
		}
	}
}

func TestTheStateFileFollowsEvents(t *testing.T) {
	folder := openFolder(t, datadir.State{})
	layout := launch.Layout{Ports: map[string]int{"kube-apiserver": 7}}
	report := newReporter(folder, layout, map[string]string{"kwok": "v1"}, time.Now())
	report.state("starting", nil)
	report.component(supervisor.Event{What: "started", Component: "kine", PID: 9})
	expect := func(state string, pid int, ready bool) {
		t.Helper()
		got, err := folder.ReadState()
		if err != nil || got.State != state || got.Components["kine"].PID != pid || got.Components["kine"].Ready != ready {
			t.Errorf("%+v %v", got, err)
		}
	}
	expect("starting", 9, false)
	report.component(supervisor.Event{What: "ready", Component: "kine", PID: 9})
	report.state("ready", nil)
	expect("ready", 9, true)
	report.component(supervisor.Event{What: "ended", Component: "kine", Detail: "exit status 1"})
	expect("ready", 0, false)
	report.state("failed", errors.New("kine is broken"))
	report.state("stopping", nil)
	expect("failed", 0, false)
	if got, _ := folder.ReadState(); got.Message != "kine is broken" {
		t.Errorf("%+v", got)
	}
}
