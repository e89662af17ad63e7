package datadir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func open(t *testing.T, path string) *Folder {
	t.Helper()
	folder, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(folder.Close)
	return folder
}

func TestOpenClosesTheFolderToOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	open(t, path)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info, err)
	}
}

func TestOnlyOneAtATime(t *testing.T) {
	path := t.TempDir()
	first := open(t, path)
	if err := first.WriteState(State{PID: 4711}); err != nil {
		t.Fatal(err)
	}
	_, err := Open(path)
	if err == nil || !strings.Contains(err.Error(), "running there already (pid 4711)") {
		t.Errorf("%v", err)
	}
	first.Close()
	open(t, path)
}

func TestStateComesBackAsWritten(t *testing.T) {
	folder := open(t, t.TempDir())
	empty, err := folder.ReadState()
	if err != nil || empty.PID != 0 {
		t.Errorf("%+v %v", empty, err)
	}
	want := State{PID: 7, State: "ready", Ports: map[string]int{"kwok": 9}, Components: map[string]Component{"kine": {PID: 8, Ready: true}}}
	if err := folder.WriteState(want); err != nil {
		t.Fatal(err)
	}
	got, err := folder.ReadState()
	if err != nil || got.PID != 7 || got.State != "ready" || got.Ports["kwok"] != 9 || !got.Components["kine"].Ready {
		t.Errorf("%+v %v", got, err)
	}
	if err := folder.WriteFile("engine.json", []byte("{half")); err != nil {
		t.Fatal(err)
	}
	if _, err := folder.ReadState(); err == nil {
		t.Error("half a file was read")
	}
}

func TestFoldersThatCannotBeUsed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	for path, sentence := range map[string]string{
		filepath.Join(file, "data"): "the folder cannot be made (not a directory)",
		filepath.Dir(file):          "other things in it (file)",
	} {
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), sentence) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if info, err := os.Stat(filepath.Dir(file)); err != nil || info.Mode().Perm() == 0o700 {
		t.Errorf("a folder with other things was closed to others (%v)", err)
	}
}

func TestAFullDisk(t *testing.T) {
	folder := open(t, t.TempDir())
	if err := folder.checkSpace(1 << 62); err == nil || !strings.Contains(err.Error(), "free some space") {
		t.Errorf("%v", err)
	}
}
