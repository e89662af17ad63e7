// Package supervisor keeps a set of child processes running: it starts them in order, restarts the ones that end, gives up
// when one keeps ending, and stops them in reverse order.
package supervisor

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Component describes one process.
type Component struct {
	Name  string
	Path  string
	Argv0 string
	Args  []string
	Env   []string
	Dir   string
	// Stage orders the start: a stage begins when all components of the stages before it are ready.
	Stage int
	// Before runs before each start of the process. Nil does nothing.
	Before func(context.Context) error
	// Ready returns nil once the process does its work.
	Ready func(context.Context) error
	// Patience is how long a stop may take before the process is killed.
	Patience time.Duration
}

// Event is something that happened to a component: "started", "ready", "ended".
type Event struct {
	What      string
	Component string
	PID       int
	Restarts  int
	Detail    string
}

// Limits say how often a component may end and how restarts are spaced.
type Limits struct {
	Deaths       int           // this many ends ...
	Within       time.Duration // ... in this time stop the whole
	FirstDelay   time.Duration // pause before the first restart, doubled each time
	LongestDelay time.Duration
	ReadyEvery   time.Duration // pause between two readiness checks
	StartTimeout time.Duration // time for the whole to become ready
}

// DefaultLimits suit the engine's components.
func DefaultLimits(startTimeout time.Duration) Limits {
	return Limits{
		Deaths: 5, Within: time.Minute, FirstDelay: 200 * time.Millisecond, LongestDelay: 5 * time.Second,
		ReadyEvery: 50 * time.Millisecond, StartTimeout: startTimeout,
	}
}

// Supervisor runs components until its context ends or one of them fails for good.
type Supervisor struct {
	limits Limits
	logDir string
	notify func(Event)
	keeps  []*keeper
	failed chan error
	wg     sync.WaitGroup
}

// New prepares a supervisor. notify is called for each event, one at a time for each component.
func New(components []Component, logDir string, limits Limits, notify func(Event)) (*Supervisor, error) {
	s := &Supervisor{limits: limits, logDir: logDir, notify: notify, failed: make(chan error, len(components))}
	for _, component := range components {
		log, err := openLog(filepath.Join(logDir, component.Name+".log"), logLimit)
		if err != nil {
			return nil, fmt.Errorf("the log of %s cannot be opened: %w", component.Name, err)
		}
		s.keeps = append(s.keeps, newKeeper(component, log, limits, notify))
	}
	return s, nil
}

// Run starts everything, calls ready once, and returns nil after ctx ended, or the reason why it had to stop. Either way
// no child is left when it returns.
func (s *Supervisor) Run(ctx context.Context, ready func()) error {
	running, cancel := context.WithCancel(ctx)
	err := s.start(running)
	if err == nil {
		ready()
		select {
		case <-ctx.Done():
		case err = <-s.failed:
		}
	} else if ctx.Err() != nil {
		err = nil
	}
	cancel()
	s.stop()
	return err
}

func (s *Supervisor) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.limits.StartTimeout)
	defer cancel()
	for stage := 0; ; stage++ {
		members, more := s.stage(stage)
		if len(members) == 0 && !more {
			return nil
		}
		for _, keep := range members {
			s.wg.Go(func() {
				if err := keep.run(); err != nil {
					s.failed <- err
				}
			})
		}
		for _, keep := range members {
			select {
			case <-keep.firstReady:
			case err := <-s.failed:
				return err
			case <-ctx.Done():
				return keep.explain(fmt.Sprintf("was not ready within %s (%s)", s.limits.StartTimeout, keep.lastProblem()))
			}
		}
	}
}

func (s *Supervisor) stage(number int) (members []*keeper, more bool) {
	for _, keep := range s.keeps {
		switch {
		case keep.Stage == number:
			members = append(members, keep)
		case keep.Stage > number:
			more = true
		}
	}
	return members, more
}

// stop ends the stages from last to first, the components of a stage together.
func (s *Supervisor) stop() {
	last := 0
	for _, keep := range s.keeps {
		last = max(last, keep.Stage)
	}
	for stage := last; stage >= 0; stage-- {
		members, _ := s.stage(stage)
		var wg sync.WaitGroup
		for _, keep := range members {
			wg.Go(keep.stop)
		}
		wg.Wait()
	}
	s.wg.Wait()
	for _, keep := range s.keeps {
		keep.log.Close()
	}
}

func indent(lines []string) string {
	if len(lines) == 0 {
		return "  (it wrote nothing)"
	}
	return "  " + strings.Join(lines, "\n  ")
}
