package supervisor

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// keeper keeps one component running.
type keeper struct {
	Component
	log        *logFile
	limits     Limits
	notify     func(Event)
	firstReady chan struct{} // closed when the component is ready for the first time
	ctx        context.Context
	cancel     context.CancelFunc

	mu      sync.Mutex
	begun   bool
	ended   chan struct{} // closed when run has returned
	problem string        // what the last readiness check said
}

func newKeeper(component Component, log *logFile, limits Limits, notify func(Event)) *keeper {
	ctx, cancel := context.WithCancel(context.Background())
	return &keeper{
		Component: component, log: log, limits: limits, notify: notify, ctx: ctx, cancel: cancel,
		firstReady: make(chan struct{}), ended: make(chan struct{}),
	}
}

// run returns nil when it was told to stop, and an error when the component keeps ending.
func (k *keeper) run() error {
	k.mu.Lock()
	k.begun = true
	k.mu.Unlock()
	defer close(k.ended)
	var deaths []time.Time
	delay := k.limits.FirstDelay
	for restarts := 0; ; restarts++ {
		how, lived := k.once(restarts)
		if k.ctx.Err() != nil {
			return nil
		}
		deaths = append(deaths, time.Now())
		deaths = deaths[max(0, len(deaths)-k.limits.Deaths):]
		if len(deaths) == k.limits.Deaths && time.Since(deaths[0]) <= k.limits.Within {
			return k.explain(fmt.Sprintf("ended %d times within %s (%s)", k.limits.Deaths, k.limits.Within, how))
		}
		if lived > k.limits.Within {
			delay = k.limits.FirstDelay
		}
		if !k.pause(delay) {
			return nil
		}
		delay = min(delay*2, k.limits.LongestDelay)
	}
}

// once runs the process from start to end and says how it ended and how long it lived.
func (k *keeper) once(restarts int) (string, time.Duration) {
	begin := time.Now()
	if k.Before != nil {
		if err := k.Before(k.ctx); err != nil {
			return k.note(restarts, fmt.Sprintf("could not be prepared: %v", err)), time.Since(begin)
		}
	}
	process, err := startChild(k.Component, k.log)
	if err != nil {
		return k.note(restarts, fmt.Sprintf("could not be started: %v", err)), time.Since(begin)
	}
	k.notify(Event{What: "started", Component: k.Name, PID: process.pid, Restarts: restarts})
	watching, unwatch := context.WithCancel(k.ctx)
	var wg sync.WaitGroup
	wg.Go(func() { k.awaitReady(watching, process, restarts) })
	select {
	case <-process.done:
	case <-k.ctx.Done():
		process.stop(k.Patience)
	}
	unwatch()
	wg.Wait()
	return k.note(restarts, process.result), time.Since(begin)
}

func (k *keeper) note(restarts int, how string) string {
	k.notify(Event{What: "ended", Component: k.Name, Restarts: restarts, Detail: how})
	return how
}

func (k *keeper) awaitReady(ctx context.Context, process *child, restarts int) {
	for {
		checking, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := k.Ready(checking)
		cancel()
		if ctx.Err() != nil {
			return
		}
		k.mu.Lock()
		k.problem = ""
		if err != nil {
			k.problem = err.Error()
		}
		k.mu.Unlock()
		if err == nil {
			k.notify(Event{What: "ready", Component: k.Name, PID: process.pid, Restarts: restarts})
			k.mu.Lock()
			defer k.mu.Unlock()
			select {
			case <-k.firstReady:
			default:
				close(k.firstReady)
			}
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(k.limits.ReadyEvery):
		}
	}
}

func (k *keeper) pause(d time.Duration) bool {
	select {
	case <-k.ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// stop ends the process, and returns when it is gone.
func (k *keeper) stop() {
	k.cancel()
	k.mu.Lock()
	begun := k.begun
	k.mu.Unlock()
	if begun {
		<-k.ended
	}
}

func (k *keeper) lastProblem() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.problem == "" {
		return "not started yet"
	}
	return k.problem
}

// explain makes the sentence for a person: which component, what it did, its last words and where the rest is.
func (k *keeper) explain(what string) error {
	return fmt.Errorf("%s %s; its last lines (more in %s):\n%s", k.Name, what, k.log.path, indent(k.log.Tail()))
}
