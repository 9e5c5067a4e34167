package run

import (
	"slices"
	"time"

	"github.com/musterd/muster/agent/shim"
)

// This file measures attached work with each look at it.

// resumeUse takes over the use that an earlier runner has measured.
func (r *Runner) resumeUse(t *task, f *follower) {
	f.noted, _ = t.folder.Attached() // none: nothing was attached before
	use, ok := t.folder.Measured()
	if !ok {
		return
	}
	f.recorded = use
	r.mu.Lock()
	defer r.mu.Unlock()
	t.meter.use, t.meter.has = use, true
}

// spentBefore adds what newly attached processes and cgroups have spent until now to what
// does not count as use of the member.
func (r *Runner) spentBefore(t *task, f *follower, x external) (shim.Spent, error) {
	if !hasMore(f.noted, x.wanted) {
		return x.wanted.Before, nil
	}
	sample, err := r.samples.take(x.changed, true)
	if err != nil {
		return shim.Spent{}, err
	}
	with, without := shim.NewWatch(r.config.BootID).Look(x.wanted, sample), shim.NewWatch(r.config.BootID).Look(f.noted, sample)
	before := x.wanted.Before.Plus(with.Spent.Minus(without.Spent))
	f.noted.Processes, f.noted.Cgroups = x.wanted.Processes, x.wanted.Cgroups
	r.mu.Lock()
	defer r.mu.Unlock()
	t.external.wanted.Before = before
	return before, nil
}

// hasMore reports whether a process or a cgroup was attached since.
func hasMore(before, now shim.Attached) bool {
	return slices.ContainsFunc(now.Processes, func(p shim.Process) bool { return !slices.Contains(before.Processes, p) }) ||
		slices.ContainsFunc(now.Cgroups, func(g shim.Group) bool { return !slices.Contains(before.Cgroups, g) })
}

// noteUse takes the use of a look at what was attached.
func (r *Runner) noteUse(t *task, f *follower, a shim.Attached, look shim.Look) {
	f.noted.Processes, f.noted.Cgroups = look.Roots, a.Cgroups
	r.mu.Lock()
	before := t.external.wanted.Before
	r.mu.Unlock()
	spent := look.Spent.Minus(before)
	if !f.looked { // processes that have ended under an earlier runner count in its record alone
		f.looked = true
		f.carry.CPUMillis = max(f.recorded.CPUMillis-spent.CPUMillis, 0)
		if f.recorded.OOMKills != nil {
			f.carry.OOMKills = max(*f.recorded.OOMKills-spent.OOMKills, 0)
		}
	}
	use := shim.Use{CPUMillis: spent.CPUMillis + f.carry.CPUMillis, MemoryBytes: look.MemoryBytes}
	if look.HasKills {
		kills := spent.OOMKills + f.carry.OOMKills
		use.OOMKills = &kills
	}
	if look.HasPeak && look.Spent.PeakBytes > before.PeakBytes { // else the peak was before
		use.PeakMemoryBytes = look.Spent.PeakBytes
	}
	r.mu.Lock()
	t.meter.use, t.meter.has = t.meter.use.And(use), true
	r.mu.Unlock()
	if time.Since(f.written) >= r.measureEvery {
		r.writeUse(t, f)
	}
}

// writeUse notes the use in the folder, for a later runner.
func (r *Runner) writeUse(t *task, f *follower) {
	f.written = time.Now()
	r.mu.Lock()
	use, has := t.meter.use, t.meter.has
	r.mu.Unlock()
	if !has {
		return
	}
	if err := t.folder.WriteMeasured(use); err != nil {
		r.log.Warn("use_not_written", "tx", string(t.id.tx), "member", t.id.member, "error", err)
	}
}
