package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/preempt"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// This file is coordinator/{evict,nominate,displace}.go: units that give way.
// Quota is not claimed back here. Every unit is like a job's: what was evicted
// waits anew.

// Times of an eviction, as the leader is told by configuration.
const (
	evictionGrace = 5 * time.Second
	waitingTTL    = evictionGrace + 15*time.Second
	longestTTL    = max(reservationTTL, waitingTTL)
)

// planEvictions draws, from numbers of its own, whether units are evicted. They
// are not in a run with a restored store.
func (s *Sim) planEvictions(o Options) {
	rng := rand.New(rand.NewPCG(o.Seed, 0x6576696374))
	switch {
	case o.Calm || s.restoreAt > 0:
	case o.Bug >= EvictBeforeAllWait:
		s.evictions = true
	case o.Bug == NoBug:
		s.evictions = rng.IntN(3) > 0
	}
}

// actEvict lets an operator evict what runs.
func (s *Sim) actEvict() bool {
	return s.withTerm(nil, func(t *term) {
		names := slices.Sorted(maps.Keys(t.units))
		if len(names) == 0 {
			return
		}
		u := t.units[pick(s, names)]
		if u.attempt == nil || u.ending != nil || u.attempt.machine.Undecided() {
			return
		}
		s.logf("%s: an operator evicts %s", t.name, u.client.name)
		s.asked[u.attempt.machine.ID()] = true
		t.step(u.attempt, txn.EvictAsked{GraceSeconds: int64(s.rng.IntN(10)), Reason: "an operator's wish"})
		t.schedule()
	})
}

// evictable reports whether a unit may be chosen to give way.
func (u *unit) evictable() bool {
	return u.attempt != nil && u.attempt.machine.State() == txn.Committed && u.ending == nil && u.attempt.prey == nil
}

// leavesSoon reports whether a unit that holds something is on its way out.
func (u *unit) leavesSoon() bool {
	return u.attempt != nil && !u.attempt.machine.Undecided() && u.attempt.machine.State() > txn.Claimed
}

// mayEvict reports whether others may be evicted for a unit: not before it is
// stored, for the next leader must know for whom it was.
func (t *term) mayEvict(u *unit) bool { return u.stored != 0 && u.client.lower }

// preempts starts a preemption for a unit that was admitted and has no place.
func (t *term) preempts(u *unit) bool {
	if !t.mayEvict(u) || u.helpless == t.generation {
		return false
	}
	u.helpless = t.generation
	if leaving := t.leaving(); len(leaving) > 0 {
		if _, ok := preempt.With(t.order, u.client.demand, leaving); ok {
			return false // it has room then
		}
	}
	plan, ok := preempt.Find(t.order, u.client.demand, u.client.priority, t.preemptible(u))
	if !ok || len(plan.Victims) == 0 {
		return false
	}
	var victims []*attempt
	for _, name := range plan.Victims {
		victims = append(victims, t.units[name].attempt)
	}
	slices.SortFunc(victims, byTx)
	t.preempt(u, plan.Members, victims)
	return true
}

func (t *term) preempt(u *unit, plan []place.Member, victims []*attempt) {
	t.sim.stats["preemptions begun"]++
	t.start(u, plan, victims)
	a := u.attempt
	for _, v := range victims {
		v.prey = a
	}
	for _, n := range a.machine.Nodes() {
		t.nodes[n].rebuild()
	}
}

// preemptible are the units that may give way for one.
func (t *term) preemptible(u *unit) []preempt.Holder {
	var all []preempt.Holder
	for _, name := range slices.Sorted(maps.Keys(t.units)) {
		v := t.units[name]
		if less := v.client.priority < u.client.priority; v.evictable() && (less || t.sim.bug == EvictEquals && v.client.priority == u.client.priority) {
			h := v.holder(v.client.priority)
			if !less {
				h.Priority--
			}
			all = append(all, h)
		}
	}
	return all
}

func (u *unit) holder(priority int32) preempt.Holder {
	h := preempt.Holder{Unit: u.client.name, Priority: priority, Started: int64(u.attempt.committed)}
	for _, node := range u.attempt.machine.Nodes() {
		v, _ := u.attempt.machine.Vote(node)
		for _, m := range v.Members {
			h.Parts = append(h.Parts, preempt.Part{Node: node, Assignment: m.Assignment})
		}
	}
	return h
}

// leaving are the units that are on their way out, and make room for nobody in
// particular.
func (t *term) leaving() []preempt.Holder {
	var all []preempt.Holder
	for _, name := range slices.Sorted(maps.Keys(t.units)) {
		u := t.units[name]
		away := func(n resource.NodeID) bool { return !t.nodes[n].view.Ready }
		if u.leavesSoon() && u.attempt.prey == nil && u.attempt.machine.By() == "" && !slices.ContainsFunc(u.attempt.machine.Nodes(), away) {
			all = append(all, u.holder(0))
		}
	}
	return all
}

// writeEvictions asks for the Txn that evicts all victims at once.
func (t *term) writeEvictions(a *attempt) {
	tx := a.machine.ID()
	d := decision{what: "evictions for " + short(tx), delicate: true}
	if t.sim.bug != EvictForDecided {
		d.compares = append(d.compares, store.Absent(txKey(tx)))
	}
	for _, node := range a.machine.Nodes() {
		if v, _ := a.machine.Answer(node); t.sim.bug != EvictWithoutIncarnations {
			d.compares = append(d.compares, store.ModRevIs(identityKey(node), v.Revision))
		}
	}
	for _, v := range a.victims {
		if v.machine.State() != txn.Committed || v.unit.ending != nil || v.prey != a {
			t.step(a, txn.EvictionsAnswered{Outcome: txn.Conflict}) // nothing was sent
			return
		}
		d.compares = append(d.compares, store.ModRevIs(txKey(v.machine.ID()), v.machine.Revision()),
			store.ModRevIs(unitKey(v.unit.client.name), v.unit.stored))
		d.ops = append(d.ops, t.evictingOps(v, a.noticeOf(), tx)...)
	}
	for _, v := range a.victims {
		t.step(v, txn.VictimClaimed{By: tx})
	}
	if t.sim.mishap(30) {
		h := t.sim.host(pick(t.sim, a.machine.Nodes()))
		h.reboot() // the worst moment: what waits is lost
		h.startAgent()
		d.slow = true
	}
	d.done = func(o txn.Outcome, rev resource.Revision) {
		t.step(a, txn.EvictionsAnswered{Outcome: o, Revision: rev})
	}
	t.submit(d)
}

// noticeOf is what an attempt's victims are told.
func (a *attempt) noticeOf() txn.EvictAsked {
	return txn.EvictAsked{GraceSeconds: int64(evictionGrace / time.Second), Reason: "gives way to " + a.unit.client.name}
}

func (t *term) evictingOps(a *attempt, notice txn.EvictAsked, by resource.TxID) []op {
	record := t.recordOf(a, store.TxEvicting)
	record.By, record.Reason, record.GraceSeconds, record.Evicted = by, notice.Reason, notice.GraceSeconds, true
	r := a.unit.record
	r.phase = terminating
	return []op{{txKey(a.machine.ID()), record}, {unitKey(a.unit.client.name), r}}
}

// writeEvicting asks for COMMITTED → EVICTING, for no preemptor.
func (t *term) writeEvicting(a *attempt, e txn.WriteEvicting) {
	tx := a.machine.ID()
	t.submit(decision{
		what: "eviction of " + short(tx), compares: []store.Compare{store.ModRevIs(txKey(tx), a.machine.Revision())},
		ops:  t.evictingOps(a, txn.EvictAsked(e), ""),
		done: func(o txn.Outcome, rev resource.Revision) { t.step(a, txn.EvictingAnswered{Outcome: o, Revision: rev}) },
	})
}

// victimsNoticed tells the victims that they are EVICTING.
func (t *term) victimsNoticed(a *attempt, revision resource.Revision) {
	notice := a.noticeOf()
	for _, v := range a.victims {
		t.step(v, txn.Evicted{GraceSeconds: notice.GraceSeconds, Reason: notice.Reason, Revision: revision})
	}
	a.budget = true
	if t.sim.mishap(20) { // the worst moment: the next leader has to go on with it
		t.sim.expire(t.key)
		t.sim.depose(t, "its process is killed")
		return
	}
	if t.sim.bug == SwapBeforeFreed {
		for _, v := range a.victims {
			t.step(a, txn.VictimFreed{Tx: v.machine.ID()})
		}
	}
}

// underNotice makes a unit Terminating: its eviction is durable.
func (t *term) underNotice(a *attempt, e txn.AckEvicting) {
	a.notice = &txn.EvictAsked{GraceSeconds: e.GraceSeconds, Reason: e.Reason}
	if by := a.machine.By(); by != "" {
		a.by = by
	}
	a.unit.record.phase, a.unit.stored = terminating, e.Revision
}

// mayDisplace reports whether the commit of a preemptor may be sent.
func (t *term) mayDisplace(a *attempt) bool {
	return !slices.ContainsFunc(a.victims, func(v *attempt) bool {
		freed := v.machine.Freed() || t.sim.bug == SwapBeforeFreed
		return v.machine.State() != txn.Evicting || v.machine.By() != a.machine.ID() || !freed
	})
}

// displaced ends the victims of a unit that has committed.
func (t *term) displaced(a *attempt, revision resource.Revision) {
	if len(a.victims) > 0 {
		t.sim.stats["preemptions"]++
	}
	for _, v := range a.victims {
		t.step(v, txn.Displaced{Revision: revision})
	}
}

// letGo takes back the victims of an attempt that will never commit.
func (t *term) letGo(a *attempt) {
	for _, v := range a.victims {
		v.prey = nil
		t.step(v, txn.PreemptorAborted{By: a.machine.ID(), InDoubt: a.machine.EvictionsInDoubt() && t.sim.bug != VictimsNotRead})
	}
}

// collectable reports whether an aborted attempt's record may be deleted.
func (t *term) collectable(a *attempt) bool {
	switch {
	case a.machine.CommitInDoubt():
		return t.sim.bug == CollectInDoubt
	case a.machine.EvictionsInDoubt():
		return t.sim.bug == CollectEvictionInDoubt
	}
	return true
}

// unitEnd is what becomes of a unit when its transaction is RELEASED. It is
// fixed with the first Txn that writes it.
type unitEnd struct {
	record   unitRecord
	requeued bool // it was evicted; else it is gone
}

func (t *term) releasedOps(a *attempt) []op {
	u, tx := a.unit, a.machine.ID()
	if a.closing == nil {
		a.closing = a.endOfUnit()
	}
	ops := []op{{txKey(tx), t.recordOf(a, store.TxReleased)}}
	for _, node := range a.machine.Nodes() {
		ops = append(ops, op{indexKey(node, tx), nil})
	}
	if !a.closing.requeued {
		return append(ops, op{unitKey(u.client.name), nil})
	}
	return append(ops, op{unitKey(u.client.name), a.closing.record}, op{orderKey(u.client.name), u.record.uid})
}

func (a *attempt) endOfUnit() *unitEnd {
	e := &unitEnd{record: a.unit.record, requeued: a.unit.ending == nil && a.notice != nil}
	e.record.phase, e.record.tx = pending, ""
	return e
}

// leave takes over what became of a unit whose transaction is RELEASED.
func (t *term) leave(a *attempt) {
	u, e := a.unit, a.closing
	if e == nil {
		e = a.endOfUnit()
	}
	if !e.requeued {
		t.forget(u)
		return
	}
	t.sim.stats["requeued"]++
	u.record, u.stored, u.queued, u.failed = e.record, a.machine.Revision(), true, 0
	if u.ending != nil { // asked for in the meantime
		t.endQueued(u)
		return
	}
	t.queue.Push(u.key)
}

// patience says how rarely the timer of an attempt fires: that of one whose
// victims are leaving is long.
func (a *attempt) patience() int {
	if a.machine.State() == txn.Displacing {
		return 48
	}
	return 6
}

// ttl is how long an agent keeps what it promised without hearing more.
func (a *attempt) ttl() time.Duration {
	if len(a.victims) > 0 {
		return waitingTTL
	}
	return reservationTTL
}

func byTx(a, b *attempt) int {
	if a.machine.ID() < b.machine.ID() {
		return -1
	}
	return 1
}

func idsOf(attempts []*attempt) []resource.TxID {
	var list []resource.TxID
	for _, a := range attempts {
		list = append(list, a.machine.ID())
	}
	return list
}

func after(victims []*attempt) string {
	s := ""
	for _, v := range victims {
		s += fmt.Sprintf(" after %s (%s)", v.unit.client.name, short(v.machine.ID()))
	}
	return s
}

// devicesOf lists the devices that an assignment is from, ascending.
func devicesOf(a resource.Assignment) []int {
	var list []int
	for _, g := range a.GPUs {
		list = append(list, g.Index)
	}
	slices.Sort(list)
	return list
}
