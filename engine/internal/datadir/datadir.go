// Package datadir owns the engine's folder: its lock, its state file and the paths inside it.
package datadir

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// minFree is what a fresh control plane with some logs needs, in bytes.
const minFree = 256 << 20

// Folder is an opened and locked data folder.
type Folder struct {
	Path string
	lock *os.File
}

// Component is one child process as the state file shows it.
type Component struct {
	PID      int  `json:"pid"`
	Restarts int  `json:"restarts"`
	Ready    bool `json:"ready"`
}

// State is the content of engine.json: what another process may know about this one.
type State struct {
	PID        int                  `json:"pid"`
	State      string               `json:"state"` // starting, ready, stopping, stopped, failed
	Message    string               `json:"message,omitempty"`
	Started    time.Time            `json:"started"`
	Server     string               `json:"server"`
	Kubeconfig string               `json:"kubeconfig"`
	Ports      map[string]int       `json:"ports"`
	Versions   map[string]string    `json:"versions"`
	Components map[string]Component `json:"components"`
}

// Open makes the folder where absent, closes it to other users and takes its lock.
func Open(path string) (*Folder, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("--data %s: the folder cannot be made (%v): choose one that you may write to", path, cause(err))
	}
	if err := checkOurs(path); err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o700); err != nil {
		return nil, fmt.Errorf("--data %s: the folder cannot be closed to others (%v): choose one that you own", path, cause(err))
	}
	folder := &Folder{Path: path}
	lock, err := os.OpenFile(folder.Join("engine.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--data %s: the folder cannot be written to (%v): choose another, or give this one write access", path, cause(err))
	}
	if !acquire(lock) {
		lock.Close()
		return nil, fmt.Errorf("--data %s: an engine is running there already (pid %d): stop it first, or choose another folder", path, folder.lastPID())
	}
	folder.lock = lock
	if err := folder.checkSpace(minFree); err != nil {
		folder.Close()
		return nil, err
	}
	for _, name := range []string{"pki", "logs", "conf", "kwok"} {
		if err := os.MkdirAll(folder.Join(name), 0o700); err != nil {
			folder.Close()
			return nil, fmt.Errorf("--data %s: %v", path, err)
		}
	}
	return folder, nil
}

// checkOurs refuses a folder with somebody else's things: the engine closes its folder to all others.
func checkOurs(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("--data %s: the folder cannot be read (%v): choose one that you own", path, cause(err))
	}
	other := ""
	for _, entry := range entries {
		switch {
		case entry.Name() == "engine.lock":
			return nil
		case !strings.HasPrefix(entry.Name(), "engine."): // who starts the engine may keep its output there
			other = entry.Name()
		}
	}
	if other != "" {
		return fmt.Errorf("--data %s: the folder has other things in it (%s): choose an empty or a new one", path, other)
	}
	return nil
}

// acquire takes the lock; a reader that only asks whether an engine runs may hold it for a moment.
func acquire(lock *os.File) bool {
	for deadline := time.Now().Add(time.Second); ; time.Sleep(20 * time.Millisecond) {
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}

func (f *Folder) checkSpace(needed uint64) error {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(f.Path, &fs); err != nil {
		return fmt.Errorf("--data %s: %v", f.Path, err)
	}
	if free := fs.Bavail * uint64(fs.Bsize); free < needed {
		return fmt.Errorf("--data %s: only %d MiB are free there, the engine needs %d MiB: free some space or choose another folder", f.Path, free>>20, needed>>20)
	}
	return nil
}

func (f *Folder) lastPID() int {
	state, err := f.ReadState()
	if err != nil {
		return 0
	}
	return state.PID
}

// Close gives the lock back.
func (f *Folder) Close() { f.lock.Close() }

// Join returns the path of a file inside the folder.
func (f *Folder) Join(parts ...string) string {
	return filepath.Join(append([]string{f.Path}, parts...)...)
}

// ReadState returns what the last run wrote. A missing file is an empty state.
func (f *Folder) ReadState() (State, error) {
	var state State
	content, err := os.ReadFile(f.Join("engine.json"))
	if errors.Is(err, os.ErrNotExist) {
		return state, nil
	}
	if err != nil {
		return state, err
	}
	return state, json.Unmarshal(content, &state)
}

// WriteState replaces engine.json in one step, so that a reader never sees half of it.
func (f *Folder) WriteState(state State) error {
	content, err := json.MarshalIndent(state, "", "  ")
	if err != nil {
		return err
	}
	return f.WriteFile("engine.json", append(content, '\n'))
}

// WriteFile replaces one file of the folder in one step, mode 0600.
func (f *Folder) WriteFile(name string, content []byte) error {
	path := f.Join(name)
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// cause strips the operation and the path from a file error: both are said already.
func cause(err error) error {
	var pathError *os.PathError
	if errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}
