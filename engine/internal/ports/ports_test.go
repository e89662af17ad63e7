package ports

import (
	"net"
	"testing"
	"time"
)

func occupy(t *testing.T) (int, net.Listener) {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener.Addr().(*net.TCPAddr).Port, listener
}

func TestChooseGivesEachItsOwnFreePort(t *testing.T) {
	names := []string{"a", "b", "c"}
	chosen, err := Choose(names, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, name := range names {
		port := chosen[name]
		if port < lowest || port >= highest || seen[port] || !Free(port) {
			t.Errorf("%s: %d", name, port)
		}
		seen[port] = true
	}
}

func TestChooseKeepsWhatIsFree(t *testing.T) {
	first, err := Choose([]string{"a", "b"}, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Choose([]string{"a", "b"}, first, 0)
	if err != nil || again["a"] != first["a"] || again["b"] != first["b"] {
		t.Errorf("%v became %v (%v)", first, again, err)
	}
}

func TestChooseReplacesWhatIsTaken(t *testing.T) {
	taken, _ := occupy(t)
	chosen, err := Choose([]string{"a"}, map[string]int{"a": taken}, 0)
	if err != nil || chosen["a"] == taken {
		t.Errorf("%v (%v)", chosen, err)
	}
}

func TestChooseGivesARememberedPortOnlyOnce(t *testing.T) {
	first, err := Choose([]string{"a"}, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	chosen, err := Choose([]string{"a", "b"}, map[string]int{"a": first["a"], "b": first["a"]}, 0)
	if err != nil || chosen["a"] != first["a"] || chosen["b"] == first["a"] {
		t.Errorf("%v (%v)", chosen, err)
	}
}

func TestWaitFreeWaitsForAServerThatStops(t *testing.T) {
	port, listener := occupy(t)
	time.AfterFunc(100*time.Millisecond, func() { listener.Close() })
	if !WaitFree(port, 10*time.Second) {
		t.Error("gave up on a port that came free")
	}
	taken, _ := occupy(t)
	if WaitFree(taken, 20*time.Millisecond) {
		t.Error("a taken port counts as free")
	}
}
