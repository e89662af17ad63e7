package up

import (
	"encoding/json"
	"os"
	"sync"
	"time"

	"podwarden.io/engine/internal/datadir"
	"podwarden.io/engine/internal/launch"
	"podwarden.io/engine/internal/supervisor"
)

// reporter tells the world what happens: a JSON line on standard output for each event, and engine.json for the present.
type reporter struct {
	mu     sync.Mutex
	folder *datadir.Folder
	begin  time.Time
	now    datadir.State
}

type line struct {
	Event      string  `json:"event"`
	Component  string  `json:"component,omitempty"`
	PID        int     `json:"pid,omitempty"`
	Restarts   int     `json:"restarts,omitempty"`
	Detail     string  `json:"detail,omitempty"`
	Server     string  `json:"server,omitempty"`
	Kubeconfig string  `json:"kubeconfig,omitempty"`
	Seconds    float64 `json:"seconds"`
}

func newReporter(folder *datadir.Folder, layout launch.Layout, versions map[string]string, begin time.Time) *reporter {
	return &reporter{folder: folder, begin: begin, now: datadir.State{
		PID: os.Getpid(), Started: begin.UTC(), Server: layout.Server(), Kubeconfig: folder.Join(adminKubeconfig),
		Ports: layout.Ports, Versions: versions, Components: map[string]datadir.Component{},
	}}
}

// state records that the whole is starting, ready, stopping, stopped or failed.
func (r *reporter) state(name string, reason error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now.State == "stopped" || r.now.State == "failed" {
		return // "stopping" may be reported from beside the end
	}
	r.now.State = name
	event := line{Event: name}
	if reason != nil {
		r.now.Message = reason.Error()
		event.Detail = reason.Error()
	}
	if name == "ready" {
		event.Server, event.Kubeconfig = r.now.Server, r.now.Kubeconfig
	}
	r.publish(event)
}

// component records what happened to one component.
func (r *reporter) component(e supervisor.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now.Components[e.Component] = datadir.Component{PID: e.PID, Restarts: e.Restarts, Ready: e.What == "ready"}
	r.publish(line{Event: "component-" + e.What, Component: e.Component, PID: e.PID, Restarts: e.Restarts, Detail: e.Detail})
}

// publish writes the file first: who reads the line finds the file as the line says. Neither may stop the engine.
func (r *reporter) publish(event line) {
	event.Seconds = float64(time.Since(r.begin).Milliseconds()) / 1000
	if err := r.folder.WriteState(r.now); err != nil {
		event.Detail += " (engine.json: " + err.Error() + ")"
	}
	content, err := json.Marshal(event)
	if err == nil {
		_, _ = os.Stdout.Write(append(content, '\n'))
	}
}
