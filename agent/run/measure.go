package run

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file adds up the use of members while they run. All members are measured by one
// look at the host's processes.

// measureEvery is the time between two samples.
const measureEvery = 10 * time.Second

// mostCounted bounds the time that one sample of a device stands for: after a longer
// gap, as after a restart of the agent, nobody knows how busy the device was.
const mostCounted = 3 * measureEvery

// DeviceNow is the present use of one device or MIG instance, and its users.
type DeviceNow struct {
	devices.Use
	// PIDs are the processes on the device; none where the driver does not report them.
	PIDs []int
	// Sharers are the members of grants that have the device or a part of it.
	Sharers int
}

// meter is the measurement of one task; Runner.mu guards it.
type meter struct {
	shim    shim.Process // zero until the work runs
	cgroup  string
	devices []string
	use     shim.Use
	has     bool      // use has a measurement
	at      time.Time // of the last sample of the devices
}

// begin takes over the spec of work that runs, and the measurements of an earlier agent.
func (m *meter) begin(spec shim.Spec, use shim.Use, ok bool, p shim.Process) {
	m.shim, m.cgroup, m.devices = p, spec.Cgroup, spec.Devices
	if ok {
		m.use, m.has = m.use.And(use), true
	}
}

// end takes over the sums of the shim.
func (m *meter) end(use shim.Use, ok bool) {
	if ok {
		m.use, m.has = m.use.And(use), true
	}
	m.use.MemoryBytes = 0
	m.use.Devices = slices.Clone(m.use.Devices)
	for i := range m.use.Devices {
		m.use.Devices[i].MemoryBytes = 0
	}
}

// state is the use as the leader takes it; nil where nothing was measured.
func (m *meter) state() *grant.WorkUse {
	if !m.has {
		return nil
	}
	u := &grant.WorkUse{
		CPU: time.Duration(m.use.CPUMillis) * time.Millisecond, Memory: resource.Bytes(m.use.MemoryBytes), PeakMemory: resource.Bytes(m.use.PeakMemoryBytes), OOMKills: grant.UnknownKills,
	}
	if m.use.OOMKills != nil {
		u.OOMKills = int(min(*m.use.OOMKills, grant.MaxKills))
	}
	for _, d := range m.use.Devices {
		u.Devices = append(u.Devices, grant.DeviceUse{
			UUID: d.UUID, Busy: time.Duration(d.BusyMillis) * time.Millisecond, Measured: time.Duration(d.MeasuredMillis) * time.Millisecond, Memory: resource.Bytes(d.MemoryBytes), PeakMemory: resource.Bytes(d.PeakMemoryBytes),
		})
	}
	return u
}

// measureUntil measures at each tick until ctx ends. It has a goroutine of its own: a
// slow driver or disk delays neither a start nor an end.
func (r *Runner) measureUntil(ctx context.Context) {
	ticks := time.NewTicker(r.measureEvery)
	defer ticks.Stop()
	for {
		select {
		case now := <-ticks.C:
			r.Measure(ctx, now)
		case <-ctx.Done():
			return
		}
	}
}

// Measure samples all members that run. It reads the processes of the host, writes one
// small file for each member, and waits for Config.Devices. A member that has ended
// meanwhile keeps the sums of its end.
func (r *Runner) Measure(ctx context.Context, now time.Time) {
	running := r.running()
	if len(running) == 0 {
		return
	}
	sample, err := shim.TakeSample()
	if err != nil {
		r.log.Warn("work_not_measured", "error", err)
		return
	}
	var present map[string]DeviceNow
	if r.config.Devices != nil {
		present = r.config.Devices(ctx)
	}
	for _, t := range running {
		r.mu.Lock()
		m := t.meter
		r.mu.Unlock()
		use, pids, ok := sample.UseOf(m.shim, m.cgroup)
		if !ok {
			continue // it has just ended; its shim has the sums
		}
		r.noteSignal(ctx, t)
		use.Devices = m.sumDevices(pids, present, now)
		use = m.use.And(use)
		if err := t.folder.WriteMeasured(use); err != nil {
			r.log.Warn("use_not_written", "tx", string(t.id.tx), "member", t.id.member, "error", err)
		}
		r.mu.Lock()
		if t.phase == grant.WorkRunning {
			t.meter.use, t.meter.has, t.meter.at = t.meter.use.And(use), true, now
		}
		r.mu.Unlock()
	}
}

// noteSignal reports a member that has got the signal that announces its end.
func (r *Runner) noteSignal(ctx context.Context, t *task) {
	if _, err := t.folder.Noticed(); err != nil {
		return
	}
	r.mu.Lock()
	news := !t.signaled
	t.signaled = true
	r.mu.Unlock()
	if news {
		r.log.Info("work_signaled", "tx", string(t.id.tx), "member", t.id.member)
		r.config.Changed(ctx, t.id.tx)
	}
}

func (r *Runner) running() []*task {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []*task
	for _, tasks := range r.tasks {
		for _, t := range tasks {
			if t.phase == grant.WorkRunning && t.meter.shim.PID != 0 {
				list = append(list, t)
			}
		}
	}
	return list
}

// sumDevices adds the present use of the member's devices to the sums. The use of a
// device counts for a member that is alone on the device, and for no other member: drivers
// do not divide the use among processes.
func (m *meter) sumDevices(pids []int, present map[string]DeviceNow, now time.Time) []shim.DeviceUse {
	var list []shim.DeviceUse
	for _, uuid := range m.devices {
		sum := shim.DeviceUse{UUID: uuid}
		if at := slices.IndexFunc(m.use.Devices, func(d shim.DeviceUse) bool { return d.UUID == uuid }); at >= 0 {
			sum = m.use.Devices[at]
		}
		sum.MemoryBytes = 0
		if d, ok := present[uuid]; ok && d.isAlone(pids) {
			if d.Percent >= 0 && !m.at.IsZero() {
				span := min(max(now.Sub(m.at), 0), mostCounted)
				sum.BusyMillis += span.Milliseconds() * int64(d.Percent) / 100
				sum.MeasuredMillis += span.Milliseconds()
			}
			sum.MemoryBytes = max(int64(d.Memory), 0)
			sum.PeakMemoryBytes = max(sum.PeakMemoryBytes, sum.MemoryBytes)
		}
		if sum != (shim.DeviceUse{UUID: uuid}) || present[uuid].UUID != "" {
			list = append(list, sum)
		}
	}
	slices.SortFunc(list, func(a, b shim.DeviceUse) int { return cmp.Compare(a.UUID, b.UUID) })
	return slices.CompactFunc(list, func(a, b shim.DeviceUse) bool { return a.UUID == b.UUID })
}

// isAlone reports whether no other process than these uses the device. Where no process is
// reported, the device must have no second member of a grant.
func (d DeviceNow) isAlone(pids []int) bool {
	if len(d.PIDs) == 0 {
		return d.Sharers <= 1
	}
	return !slices.ContainsFunc(d.PIDs, func(pid int) bool { return !slices.Contains(pids, pid) })
}
