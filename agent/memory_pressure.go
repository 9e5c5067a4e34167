package agent

import (
	"context"
	"time"

	"github.com/musterd/muster/agent/pressure"
	"github.com/musterd/muster/agent/rpc"
)

const (
	// memoryEvery is the time between two looks at the memory. The kernel renews
	// its averages every two seconds.
	memoryEvery = 2 * time.Second
	// memoryShown is the time between two changes of the shown numbers alone: each
	// change of a condition is a write of the store.
	memoryShown = time.Minute
)

// Bounds of Config.MemoryPressure.
const (
	MinStall       = pressure.Percent(100)
	MaxStall       = pressure.Percent(10000)
	MinAvailable   = pressure.Percent(100)
	MaxAvailable   = pressure.Percent(4000) // a shortage ends above twice as much
	MinClearMemory = time.Second
	MaxClearMemory = time.Hour
)

func validMemoryPolicy(p pressure.Policy) bool {
	return p.Stall >= MinStall && p.Stall <= MaxStall && p.Available >= MinAvailable && p.Available <= MaxAvailable &&
		p.Clear >= MinClearMemory && p.Clear <= MaxClearMemory
}

// memoryWatch keeps the ledger from taking new work while the host is short of
// memory. Its goroutine owns the state; others read the copy in Agent.memory.
type memoryWatch struct {
	agent *Agent
	state pressure.State
	shown time.Time // when Agent.memory was replaced last
	deaf  bool      // the last look failed
}

// watchMemory looks at the memory until ctx ends.
func (a *Agent) watchMemory(ctx context.Context) {
	if a.deps.Memory == nil || a.config.MemoryPressure == (pressure.Policy{}) {
		return
	}
	w := &memoryWatch{agent: a}
	for {
		if err := w.look(ctx); err != nil {
			return // only when the agent ends
		}
		if !pause(ctx, memoryEvery) {
			return
		}
	}
}

// look takes one reading. A failed one changes nothing: the state that was found
// last stays.
func (w *memoryWatch) look(ctx context.Context) error {
	a := w.agent
	reading, err := a.deps.Memory()
	if deaf := err != nil; deaf != w.deaf {
		w.deaf = deaf
		a.log.Warn("memory_readable_changed", "readable", !deaf, "error", err)
	}
	if err != nil {
		return nil
	}
	was, now := w.state.Short, time.Now()
	w.state = a.config.MemoryPressure.Observe(w.state, now, reading)
	state := w.state
	if state.Short != was || now.Sub(w.shown) >= memoryShown {
		a.memory.Store(&state)
		w.shown = now
	}
	if !state.Short && !was {
		return nil
	}
	why := ""
	if state.Short {
		why = a.config.MemoryPressure.Explain(state)
	}
	changed := state.Short != was
	if changed {
		a.log.Warn("memory_pressure_changed", "memory_pressure", state.Short, "stall", state.Last.Stall.String(),
			"available_bytes", int64(state.Last.Available), "total_bytes", int64(state.Last.Total), "reason", why)
	}
	err = a.owner.send(ctx, item{memory: &why})
	if changed {
		wake(a.dirty)
	}
	return err
}

// setMemory takes over why the host is short of memory, and lets the leader know
// when a shortage begins or ends.
func (o *owner) setMemory(why string) {
	was := o.memory != ""
	o.memory = why
	o.ledger.SetMemoryPressure(why)
	if (why != "") != was {
		o.tell(o.health())
	}
}

// memoryPressure is the node's condition; ok is false where nothing was read
// yet.
func (a *Agent) memoryPressure() (c rpc.Condition, ok bool) {
	state := a.memory.Load()
	if state == nil {
		return rpc.Condition{}, false
	}
	c = rpc.Condition{Type: "MemoryPressure", True: state.Short, Reason: state.Reason()}
	if state.Short {
		c.Message = a.config.MemoryPressure.Explain(*state)
	}
	return c, true
}
