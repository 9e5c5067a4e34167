package agent

import (
	"context"
	"slices"
	"time"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/devices/health"
)

// healthMonitor keeps the devices' health, and which devices there are, in step
// with the driver's reports. Package devices/health decides the effect of an
// event; the ledger keeps the resulting health.
type healthMonitor struct {
	agent  *Agent
	policy health.Policy
	states map[string]health.State // by UUID
}

func newHealthMonitor(a *Agent) *healthMonitor {
	return &healthMonitor{agent: a, policy: health.DefaultPolicy(), states: map[string]health.State{}}
}

// run looks after the devices until ctx ends.
func (w *healthMonitor) run(ctx context.Context) {
	if w.agent.deps.Watch == nil && len(w.agent.absent) == 0 {
		return
	}
	v, err := w.agent.view(ctx, nil)
	if err != nil {
		return // only when the agent ends
	}
	for _, g := range v.GPUs { // as the journal remembers them
		w.states[g.UUID] = health.Restored(g.Health, g.Reason, time.Now())
	}
	w.missHeld(v)
	w.publish(ctx)
	if w.agent.deps.Watch == nil {
		return
	}
	changes := make(chan devices.Change)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		err := w.agent.deps.Watch(ctx, v.Host.Inventory(), w.agent.absent, func(c devices.Change) {
			select {
			case changes <- c:
			case <-ctx.Done():
			}
		})
		if err != nil && ctx.Err() == nil {
			w.agent.log.Error("device_watch_ended", "error", err)
		}
	}()
	defer func() { <-watched }()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case c := <-changes:
			w.take(ctx, c)
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		w.publish(ctx)
		if at, ok := w.next(); ok {
			timer.Reset(time.Until(at))
		}
	}
}

// missHeld reports the devices that are held and were not found at the start as
// lost.
func (w *healthMonitor) missHeld(v *ledger.View) {
	why := "not found at the start of the agent"
	switch d := w.agent.deps.Discovered; {
	case d.Hung != "":
		why += ": " + d.Hung
	case d.NoDriver != "":
		why += ": the driver is absent"
	}
	for _, d := range v.Host.Inventory().Devices {
		if slices.Contains(w.agent.absent, d.UUID) {
			w.states[d.UUID] = w.policy.Observe(w.of(d), time.Now(), devices.Event{UUID: d.UUID, Kind: devices.EventLost, Detail: why})
		}
	}
}

// take applies one report of the watch.
func (w *healthMonitor) take(ctx context.Context, c devices.Change) {
	log := w.agent.log
	if c.Inventory != nil || len(c.Running) > 0 {
		w.agent.watched.Store(true)
	}
	if c.Unknown != nil {
		w.agent.unknown.Store(&c.Unknown)
		log.Warn("gpus_unknown", "gpus", len(c.Unknown))
	}
	if c.Hangs != nil {
		w.agent.hangs.Store(c.Hangs)
		if *c.Hangs != "" {
			log.Warn("driver_hangs", "call", *c.Hangs)
		} else {
			log.Warn("driver_answers")
		}
	}
	for _, warning := range c.Warnings {
		log.Warn("host_is_odd", "warning", warning)
	}
	w.agent.sight(c.Running) // before any new device can be granted
	if c.Inventory != nil {
		if err := w.agent.rehost(ctx, c.Inventory); err != nil {
			log.Error("device_change_refused", "error", err, "effect", "the agent keeps the inventory that it had")
		} else {
			log.Warn("devices_changed", "gpus", len(c.Inventory.Devices))
		}
	}
	if len(c.Running) > 0 {
		// Only when the agent ends is there an error.
		_ = w.agent.owner.send(ctx, item{observe: true})
	}
	w.measure(c)
	for _, e := range c.Events {
		w.agent.metrics.events.WithLabelValues(e.Kind.String()).Inc()
		log.Warn("device_event", "event", e.String())
		for _, d := range w.agent.Host().Inventory().Devices {
			if e.UUID == "" || e.UUID == d.UUID {
				w.states[d.UUID] = w.policy.Observe(w.of(d), time.Now(), e)
			}
		}
	}
}

// measure takes over the use of the devices.
func (w *healthMonitor) measure(c devices.Change) {
	if len(c.Events) == 0 && len(c.Use) == 0 && c.Inventory == nil {
		return
	}
	var before uses
	if p := w.agent.uses.Load(); p != nil {
		before = *p
	}
	next := before.after(c, w.agent.Host().Inventory())
	w.agent.uses.Store(&next)
}

// of is the state of a device; one not seen before has the inventory's health.
func (w *healthMonitor) of(d devices.Device) health.State {
	s, known := w.states[d.UUID]
	if !known {
		s = health.Restored(d.Health, "", time.Now())
	}
	return s
}

// publish lets time pass for every device and reports changed health to the
// ledger.
func (w *healthMonitor) publish(ctx context.Context) {
	v, err := w.agent.view(ctx, nil)
	if err != nil {
		return
	}
	for _, d := range v.Host.Inventory().Devices {
		s := w.policy.Tick(w.of(d), time.Now())
		w.states[d.UUID] = s
		known := v.GPUs[d.Index]
		if s.Health == known.Health && s.Reason == known.Reason {
			continue
		}
		if _, err := w.agent.owner.do(ctx, ledger.SetHealth{Device: d.Index, Health: s.Health, Reason: s.Reason}); err != nil {
			return
		}
		w.agent.log.Warn("device_health_changed", "gpu", d.Index, "uuid", d.UUID, "from", known.Health.String(), "to", s.Health.String(), "reason", s.Reason)
	}
}

// next is when the earliest device changes by itself.
func (w *healthMonitor) next() (at time.Time, ok bool) {
	for _, d := range w.agent.Host().Inventory().Devices {
		due, waits := w.policy.Next(w.states[d.UUID])
		if waits && (!ok || due.Before(at)) {
			at, ok = due, true
		}
	}
	return at, ok
}
