package supervisor

import (
	"bytes"
	"os"
	"sync"
)

const (
	logLimit  = 16 << 20 // bytes in a log before it is turned over; one older file is kept
	tailLines = 12       // lines kept in memory for the message when a component keeps ending
	lineLimit = 1 << 12  // bytes of one line kept in memory
)

// logFile is a component's log on disk, bounded in size, with its last lines at hand.
type logFile struct {
	mu      sync.Mutex
	path    string
	limit   int64
	file    *os.File
	size    int64
	partial []byte
	last    []string
}

func openLog(path string, limit int64) (*logFile, error) {
	l := &logFile{path: path, limit: limit}
	return l, l.open()
}

func (l *logFile) open() error {
	file, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return err
	}
	l.file, l.size = file, info.Size()
	return nil
}

// Write never fails: a full disk must not stop a component by way of its log.
func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remember(p)
	if l.size+int64(len(p)) > l.limit {
		l.turnOver()
	}
	if l.file != nil {
		n, _ := l.file.Write(p)
		l.size += int64(n)
	}
	return len(p), nil
}

func (l *logFile) turnOver() {
	l.file.Close()
	l.file = nil
	if os.Rename(l.path, l.path+".1") == nil {
		_ = l.open() // without a file the lines stay in memory only
	}
}

func (l *logFile) remember(p []byte) {
	for _, line := range bytes.SplitAfter(p, []byte("\n")) {
		l.partial = append(l.partial, line[:min(len(line), lineLimit)]...)
		if !bytes.HasSuffix(line, []byte("\n")) {
			continue
		}
		if text := string(bytes.TrimSpace(l.partial)); text != "" {
			l.last = append(l.last, text)
		}
		l.partial = l.partial[:0]
		l.last = l.last[max(0, len(l.last)-tailLines):]
	}
	l.partial = l.partial[:min(len(l.partial), lineLimit)]
}

// Tail returns the last lines written.
func (l *logFile) Tail() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string{}, l.last...)
}

func (l *logFile) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		l.file.Close()
		l.file = nil
	}
}
