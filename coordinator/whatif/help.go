package whatif

import (
	"cmp"
	"maps"
	"slices"

	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/resource"
)

// mostTrials bounds the changes that are tried out for one answer.
const mostTrials = 160

// maxPriority is the greatest priority of a unit, as package api has it.
const maxPriority = 1_000_000_000

// helper looks for hints for one unit.
type helper struct {
	*World
	unit  *Unit
	hints []Hint
	of    changing
	// trials are those so far; cut: there would have been more.
	trials int
	cut    bool
}

// Help returns the changes that would let a unit start which waits, or have others
// evicted: see the package comment. Each was tried out. trials counts the changes
// that were tried out; cut: the bound on them was met.
func (w *World) Help(u *Unit) (hints []Hint, trials int, cut bool) {
	w.Evictable = w.AllEvictable()
	defer func() { w.Evictable = nil }()
	h := helper{World: w, unit: u}
	h.eachSet(h.conditions)
	h.rights()
	h.eachSet(h.amounts)
	h.nodes()
	h.quotas()
	h.ends()
	return h.hints, h.trials, h.cut
}

// mayTry counts a trial, and reports whether the bound allows it.
func (h *helper) mayTry() bool {
	if h.trials >= mostTrials {
		h.cut = true
		return false
	}
	h.trials++
	return true
}

// starts reports whether a unit would start at once. Nobody is evicted for it.
func (h *helper) starts(u Unit) bool {
	if !h.mayTry() {
		return false
	}
	u.Right = min(u.Right, sched.OwnQuota)
	return h.Try(&u).Action == sched.Start
}

// startsNow is starts for the unit itself, after a change of the world.
func (h *helper) startsNow() bool { return h.starts(*h.unit) }

// add adds a hint after which the unit starts.
func (h *helper) add(hint Hint) {
	hint.Then = sched.Start
	h.hints = append(h.hints, hint)
}

// conditions drops conditions that the unit sets itself.
func (h *helper) conditions() {
	r := h.request()
	for _, policy := range []resource.NUMAPolicy{resource.NUMARestricted, resource.NUMABestEffort} {
		looser := r
		if looser.NUMA = policy; strictness(policy) < strictness(r.NUMA) && h.starts(h.with(h.members(), looser)) {
			h.add(Hint{Code: LooserNUMA, NUMA: policy})
			break
		}
	}
	for link := int(r.Link) - 1; link >= 0; link-- {
		looser := r
		if looser.Link = resource.LinkRequirement(link); h.starts(h.with(h.members(), looser)) {
			h.add(Hint{Code: LooserLink, Link: looser.Link})
			break
		}
	}
	if r.GPUModel != "" {
		h.models()
	}
	h.constraints()
}

// strictness orders the policies.
func strictness(p resource.NUMAPolicy) int {
	switch p {
	case resource.NUMASingleNode:
		return 3
	case resource.NUMARestricted:
		return 2
	case resource.NUMABestEffort, resource.NUMANone:
	}
	return 1
}

// models looks for GPUs of another model.
func (h *helper) models() {
	any := h.request()
	own := any.GPUModel
	if any.GPUModel = ""; !h.starts(h.with(h.members(), any)) {
		return
	}
	h.add(Hint{Code: AnyModel})
	seen := map[string]bool{own: true}
	for _, n := range h.State.Nodes() {
		if n.Host == nil {
			continue
		}
		for _, d := range n.Host.Inventory().Devices {
			if seen[d.Model] {
				continue
			}
			seen[d.Model] = true
			other := any
			if other.GPUModel = d.Model; h.starts(h.with(h.members(), other)) {
				h.add(Hint{Code: OtherModel, Model: d.Model})
			}
		}
	}
}

// rights has others evicted for the unit.
func (h *helper) rights() {
	u := *h.unit
	if u.Right != sched.Lower && h.preempts(MayPreempt, u.withPriority(u.Key.Priority)) {
		return
	}
	above := map[int32]bool{} // the least that is above each unit that is not lower
	for o := range h.State.Occupants() {
		if o.Priority >= u.Key.Priority && !o.Pinned && o.Priority < maxPriority {
			above[o.Priority+1] = true
		}
	}
	levels := slices.Sorted(maps.Keys(above))
	least := halve(len(levels), func(i int) bool { return h.preempts("", u.withPriority(levels[i])) })
	if least < len(levels) {
		h.preempts(HigherPriority, u.withPriority(levels[least]))
	}
}

// preempts reports whether others would be evicted for the unit, or whether it would
// start; with a code, that becomes a hint.
func (h *helper) preempts(code HintCode, u Unit) bool {
	if !h.mayTry() {
		return false
	}
	o := h.Try(&u)
	if o.Action == sched.Wait {
		return false
	}
	if code != "" {
		h.hints = append(h.hints, Hint{Code: code, Then: o.Action, Victims: o.Victims, From: int64(h.unit.Key.Priority), To: int64(u.Key.Priority)})
	}
	return true
}

// halve returns the least of n for which holds is true, where it is true of all that
// are greater; n where it is true of none. The last call of holds may be any.
func halve(n int, holds func(int) bool) int {
	if n == 0 || !holds(n-1) {
		return n
	}
	low, high := 0, n-1
	for low < high {
		middle := (low + high) / 2
		if holds(middle) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low
}

// amounts asks for less, the smallest share given up first.
func (h *helper) amounts() {
	from := len(h.hints)
	h.fewerGPUs()
	h.fewerMembers()
	h.less(LessCPU)
	h.less(LessMemory)
	slices.SortStableFunc(h.hints[from:], func(a, b Hint) int { return cmp.Compare((a.From-a.To)*1000/a.From, (b.From-b.To)*1000/b.From) })
}

// fewerGPUs looks for the most whole devices of each member with which it starts.
func (h *helper) fewerGPUs() {
	r := h.request()
	for n := r.GPUs - 1; n > 0; n-- {
		fewer := r
		if fewer.GPUs = n; h.starts(h.with(h.members(), fewer)) {
			h.add(Hint{Code: FewerGPUs, Resource: resource.GPU, From: int64(r.GPUs) * int64(resource.WholeDevice), To: int64(n) * int64(resource.WholeDevice)})
			return
		}
	}
}

// fewerMembers looks for the most members that start at once. Members are placed one
// after the other, so fewer always have a place where more have.
func (h *helper) fewerMembers() {
	members, r := h.members(), h.request()
	dropped := 1 + halve(members-1, func(i int) bool { return h.starts(h.with(members-1-i, r)) })
	if dropped < members {
		h.add(Hint{Code: FewerMembers, From: int64(members), To: int64(members - dropped)})
	}
}

// less looks for the most CPUs, cores or memory of each member with which it starts,
// by halving.
func (h *helper) less(code HintCode) {
	r := h.request()
	name, have, step := resource.CPU, int64(r.CPU), int64(resource.WholeCPU)
	set := func(to *resource.Request, amount int64) { to.CPU = resource.Millicores(amount) }
	switch {
	case code == LessMemory:
		name, have, step = resource.Memory, int64(r.Memory), 1<<30
		set = func(to *resource.Request, amount int64) { to.Memory = resource.Bytes(amount) }
	case r.Cores > 0:
		name, have, step = resource.Cores, int64(r.Cores), 1
		set = func(to *resource.Request, amount int64) { to.Cores = int(amount) }
	}
	steps := int((have - 1) / step) // that leave something
	amount := func(i int) int64 { return (int64(steps) - int64(i)) * step }
	change := func(i int) Unit {
		less := r
		set(&less, amount(i))
		return h.with(h.members(), less)
	}
	if i := halve(steps, func(i int) bool { return h.starts(change(i)) }); i < steps && h.starts(change(i)) {
		h.add(Hint{Code: code, Resource: name, From: have, To: amount(i)})
	}
}
