// Package ports chooses TCP ports on the loopback address.
package ports

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"time"
)

// Ports are taken from below the range from which systems hand out client ports, so that a port which the engine used
// is very likely free again when it comes back.
const (
	lowest  = 16000
	highest = 32000
)

// Free tells whether a server could listen on 127.0.0.1:port now.
func Free(port int) bool {
	listener, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	listener.Close()
	return true
}

// WaitFree waits until port is free, because a server that was told to stop keeps it for a while.
func WaitFree(port int, timeout time.Duration) bool {
	for deadline := time.Now().Add(timeout); ; time.Sleep(50 * time.Millisecond) {
		if Free(port) {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}

// Choose returns a port for each name: the remembered one where it is free (again, within wait), else a new one.
func Choose(names []string, remembered map[string]int, wait time.Duration) (map[string]int, error) {
	chosen := make(map[string]int, len(names))
	taken := map[int]bool{}
	for _, name := range names {
		if port := remembered[name]; port != 0 && !taken[port] && WaitFree(port, wait) {
			chosen[name] = port
			taken[port] = true
		}
	}
	for _, name := range names {
		if chosen[name] != 0 {
			continue
		}
		port, err := pick(taken)
		if err != nil {
			return nil, err
		}
		chosen[name] = port
		taken[port] = true
	}
	return chosen, nil
}

func pick(taken map[int]bool) (int, error) {
	for range 1000 {
		port := lowest + rand.IntN(highest-lowest)
		if !taken[port] && Free(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port on 127.0.0.1 between %d and %d", lowest, highest)
}
