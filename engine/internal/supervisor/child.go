package supervisor

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// child is one running process of a component.
type child struct {
	pid     int
	started time.Time
	done    chan struct{} // closed when the process has ended and its output is read
	result  string        // valid once done is closed: how it ended, such as "exit status 1"
}

// startChild starts the component's process. The kernel kills it when the supervisor dies, however that happens.
//
// The kernel ties that promise to the thread which started the process, so one goroutine keeps its thread from the start
// to the end of the child. The child has a process group of its own: Ctrl-C reaches the supervisor alone, which then stops
// everything in order.
func startChild(c Component, log *logFile) (*child, error) {
	command := exec.Command(c.Path, c.Args...)
	command.Args[0] = c.Argv0
	command.Dir = c.Dir
	command.Env = c.Env
	command.Stdout = log
	command.Stderr = log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	// A grandchild that keeps the pipes open must not keep the supervisor from noticing the end.
	command.WaitDelay = time.Second

	ch := &child{started: time.Now(), done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := command.Start()
		if err == nil {
			ch.pid = command.Process.Pid
		}
		started <- err
		if err != nil {
			return
		}
		_ = command.Wait()
		ch.result = command.ProcessState.String()
		close(ch.done)
	}()
	return ch, <-started
}

// stop asks the process to end and, after patience, makes it end. It returns when the process is gone.
func (ch *child) stop(patience time.Duration) {
	ch.signal(syscall.SIGTERM)
	select {
	case <-ch.done:
		return
	case <-time.After(patience):
	}
	ch.signal(syscall.SIGKILL)
	<-ch.done
}

// signal does nothing to a process that has ended: its number may belong to another by now.
func (ch *child) signal(s syscall.Signal) {
	select {
	case <-ch.done:
	default:
		if process, err := os.FindProcess(ch.pid); err == nil {
			_ = process.Signal(s)
		}
	}
}
