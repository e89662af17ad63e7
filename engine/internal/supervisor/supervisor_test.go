package supervisor

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Fake components are shell scripts; a component is ready when its script has made a file.

var quick = Limits{
	Deaths: 3, Within: 10 * time.Second, FirstDelay: 10 * time.Millisecond, LongestDelay: 20 * time.Millisecond,
	ReadyEvery: 5 * time.Millisecond, StartTimeout: 10 * time.Second,
}

type stand struct {
	dir    string
	mu     sync.Mutex
	events []Event
}

func (s *stand) notify(e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
}

func (s *stand) seen(what string) (components []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		if e.What == what {
			components = append(components, e.Component)
		}
	}
	return components
}

func (s *stand) pid(component string, restarts int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		if e.What == "started" && e.Component == component && e.Restarts == restarts {
			return e.PID
		}
	}
	return 0
}

// component's script finds its readiness file in $READY.
func (s *stand) component(name, script string, stage int) Component {
	file := filepath.Join(s.dir, name+".ready")
	return Component{
		Name: name, Path: "/bin/sh", Argv0: "sh", Args: []string{"-c", script}, Dir: s.dir, Stage: stage,
		Env: []string{"PATH=" + os.Getenv("PATH"), "READY=" + file}, Patience: 5 * time.Second,
		Before: func(context.Context) error { _ = os.Remove(file); return nil },
		Ready:  func(context.Context) error { _, err := os.Stat(file); return err },
	}
}

const serves = `touch "$READY"; exec sleep 1000`

func (s *stand) build(t *testing.T, limits Limits, components ...Component) *Supervisor {
	t.Helper()
	overseer, err := New(components, s.dir, limits, s.notify)
	if err != nil {
		t.Fatal(err)
	}
	return overseer
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

func alive(pid int) bool {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err == nil && !strings.Contains(string(content), "zombie")
}

func TestStartsInOrderAndStopsInReverse(t *testing.T) {
	s := &stand{dir: t.TempDir()}
	overseer := s.build(t, quick,
		s.component("third", serves, 2), s.component("first", serves, 0), s.component("second", serves, 1))
	ctx, cancel := context.WithCancel(t.Context())
	ready := false
	err := overseer.Run(ctx, func() { ready = true; cancel() })
	if err != nil || !ready {
		t.Fatalf("%v, ready %v", err, ready)
	}
	if got := s.seen("started"); !slices.Equal(got, []string{"first", "second", "third"}) {
		t.Errorf("started %v", got)
	}
	if got := s.seen("ended"); !slices.Equal(got, []string{"third", "second", "first"}) {
		t.Errorf("ended %v", got)
	}
	for _, name := range []string{"first", "second", "third"} {
		if pid := s.pid(name, 0); pid == 0 || alive(pid) {
			t.Errorf("%s: process %d is left", name, pid)
		}
	}
}

func TestADeadComponentIsStartedAgain(t *testing.T) {
	s := &stand{dir: t.TempDir()}
	overseer := s.build(t, quick, s.component("a", serves, 0), s.component("b", serves, 1))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	result := make(chan error, 1)
	up := make(chan struct{})
	go func() { result <- overseer.Run(ctx, func() { close(up) }) }()
	<-up
	if err := syscall.Kill(s.pid("a", 0), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a ready again", func() bool { return len(s.seen("ready")) == 3 })
	if s.pid("a", 1) == 0 || s.pid("b", 1) != 0 {
		t.Errorf("restarts: %+v", s.events)
	}
	cancel()
	if err := <-result; err != nil {
		t.Error(err)
	}
}

func TestAComponentThatKeepsEndingStopsTheWhole(t *testing.T) {
	s := &stand{dir: t.TempDir()}
	overseer := s.build(t, quick, s.component("good", serves, 0),
		s.component("bad", `touch "$READY"; echo "the disk is on fire"; exit 3`, 1))
	err := overseer.Run(t.Context(), func() {})
	if err == nil {
		t.Fatal("went on")
	}
	for _, want := range []string{"bad ended 3 times within 10s (exit status 3)", "the disk is on fire", "bad.log"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in: %v", want, err)
		}
	}
	if got := len(s.seen("started")); got != 4 {
		t.Errorf("%d starts, want 1 + 3", got)
	}
	if alive(s.pid("good", 0)) {
		t.Error("the good one is left")
	}
}

func TestNotReadyInTimeSaysWhy(t *testing.T) {
	s := &stand{dir: t.TempDir()}
	limits := quick
	limits.StartTimeout = 200 * time.Millisecond
	late := s.component("late", "echo still thinking; exec sleep 1000", 0)
	late.Ready = func(context.Context) error { return fmt.Errorf("connection refused") }
	err := s.build(t, limits, late).Run(t.Context(), func() { t.Error("ready") })
	if err == nil || !strings.Contains(err.Error(), "late was not ready within 200ms (connection refused)") {
		t.Errorf("%v", err)
	}
	if err == nil || !strings.Contains(err.Error(), "still thinking") {
		t.Errorf("%v", err)
	}
}

func TestAStopWhileStartingIsNoFailure(t *testing.T) {
	s := &stand{dir: t.TempDir()}
	ctx, cancel := context.WithCancel(t.Context())
	overseer := s.build(t, quick, s.component("slow", "exec sleep 1000", 0), s.component("never", serves, 1))
	go func() {
		for s.pid("slow", 0) == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	if err := overseer.Run(ctx, func() { t.Error("ready") }); err != nil {
		t.Error(err)
	}
	if alive(s.pid("slow", 0)) || s.pid("never", 0) != 0 {
		t.Errorf("%+v", s.events)
	}
}

func TestWhatIgnoresTheSignalIsKilled(t *testing.T) {
	s := &stand{dir: t.TempDir()}
	deaf := s.component("deaf", `trap "" TERM; touch "$READY"; while :; do sleep 0.05; done`, 0)
	deaf.Patience = 100 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	begin := time.Now()
	if err := s.build(t, quick, deaf).Run(ctx, cancel); err != nil {
		t.Error(err)
	}
	if alive(s.pid("deaf", 0)) || time.Since(begin) > 5*time.Second {
		t.Errorf("after %s: %+v", time.Since(begin), s.events)
	}
}

func TestAFailedPreparationCountsAsADeath(t *testing.T) {
	s := &stand{dir: t.TempDir()}
	broken := s.component("broken", serves, 0)
	broken.Before = func(context.Context) error { return fmt.Errorf("no rights") }
	err := s.build(t, quick, broken).Run(t.Context(), func() {})
	if err == nil || !strings.Contains(err.Error(), "could not be prepared: no rights") || !strings.Contains(err.Error(), "it wrote nothing") {
		t.Errorf("%v", err)
	}
}

func TestAProgramThatIsNotThere(t *testing.T) {
	s := &stand{dir: t.TempDir()}
	absent := s.component("absent", "", 0)
	absent.Path = "/nowhere/program"
	err := s.build(t, quick, absent).Run(t.Context(), func() {})
	if err == nil || !strings.Contains(err.Error(), "could not be started") {
		t.Errorf("%v", err)
	}
}

// TestNoChildOutlivesAKilledSupervisor runs a supervisor in a process of its own (see TestMain) and kills that.
func TestNoChildOutlivesAKilledSupervisor(t *testing.T) {
	dir := t.TempDir()
	command := exec.Command("/proc/self/exe")
	command.Env = append(os.Environ(), "SUPERVISOR_TEST_DIR="+dir)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "pid")
	var child int
	eventually(t, "the child runs", func() bool {
		content, _ := os.ReadFile(file)
		child, _ = strconv.Atoi(strings.TrimSpace(string(content)))
		return child != 0
	})
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait()
	eventually(t, "the child is gone", func() bool { return !alive(child) })
}

func TestMain(m *testing.M) {
	if dir := os.Getenv("SUPERVISOR_TEST_DIR"); dir != "" {
		s := &stand{dir: dir}
		child := s.component("child", `echo $$ > pid.new; mv pid.new pid; touch "$READY"; exec sleep 1000`, 0)
		overseer, err := New([]Component{child}, dir, quick, s.notify)
		if err == nil {
			err = overseer.Run(context.Background(), func() {})
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
