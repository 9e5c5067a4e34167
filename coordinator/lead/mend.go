package lead

import (
	"cmp"
	"slices"

	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/rendezvous"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file keeps a gang and the units that replace its lost members together: they give
// way, end and are judged as one (ADR 110). All of it follows from the units in the store,
// so each leader goes on with it.

// endReplacements asks for the end of the replacements whose gang does not run any more.
// Those under notice end anyway.
func (l *Leader) endReplacements(j *work.Job) {
	for _, r := range slices.Clone(j.Replacements()) {
		if r.Life.EndAsked() || r.IsWanted() || r.IsLeavingSoon() {
			continue
		}
		asked := txn.ReleaseAsked{Reason: "its gang has ended or waits again"}
		if r.HasWork() {
			asked.GraceSeconds = DefaultGrace
		}
		l.end(r, asked)
	}
}

// evictGang gives notice to the gang of a replacement that has notice, unless the
// replacement's node is dead: then it waits again alone.
func (l *Leader) evictGang(a *work.Attempt, notice txn.EvictAsked) {
	if g := a.Unit.Gang(); g != nil && !a.Lost && a.Unit.IsWanted() && g.Evictable() {
		l.evict(g, notice)
	}
}

// dropReplacement forgets a replacement that has ended, with its key. The gang may be
// tried again after the last one.
func (l *Leader) dropReplacement(r *work.Unit) {
	j, g := r.Job, r.Gang()
	j.DropUnits([]*work.Unit{r})
	l.removeUnit(r)
	l.work.MapMembers(g)
	l.occupancy.noteUnit(g)
	if !g.Life.EndAsked() && g.Attempt == nil && !g.Life.Gone() {
		l.offer(g)
	}
	l.notify(g)
	l.notifyJob(j)
	l.finishJob(j)
}

// keepExit notes how the work of a replacement has ended, before the replacement is
// forgotten.
func (l *Leader) keepExit(r *work.Attempt) {
	g := r.Unit.Gang()
	if g == nil || g.Attempt == nil || g.Attempt.Machine.Undecided() {
		return
	}
	for _, e := range r.Exits() {
		e.Member, e.Tx = r.Unit.Rank(), r.Machine.ID()
		g.Attempt.KeepExit(e)
	}
}

// gangWork is the work that is judged as one: the states by member, and the number of
// members that count.
func (l *Leader) gangWork(a *work.Attempt) (states map[int]grant.WorkState, members int) {
	states, members = map[int]grant.WorkState{}, a.Unit.Record.Held()
	for member, s := range a.Work {
		states[member] = s
	}
	if !a.Unit.IsMended() {
		return states, members
	}
	for _, r := range a.Unit.Job.Replacements() {
		if !r.IsCounted() {
			continue
		}
		members++
		if s, known := r.Attempt.Work[0]; known {
			s.Member = r.Rank()
			states[s.Member] = s
		}
	}
	return states, members
}

// gangHosts are the addresses of the hosts of all members of a unit's gang, by rank; ""
// where a member waits for a place.
func (l *Leader) gangHosts(a *work.Attempt) []string {
	of := a.Judged()
	if of == nil {
		return nil
	}
	hosts := l.hostsOf(of)
	if of.Unit.IsMended() {
		for _, r := range of.Unit.Job.Replacements() {
			if r.IsCounted() {
				hosts[r.Rank()] = l.addressOf(r.Attempt.FirstNode())
			}
		}
	}
	return hosts
}

// gangPort is the port at which the members of a unit's gang meet, on the host of rank 0.
func (l *Leader) gangPort(a *work.Attempt) int {
	of := a.Judged()
	if of == nil {
		return 0
	}
	if of.Unit.IsMended() {
		if r := of.Unit.Job.Replacements()[0]; r.IsCounted() && r.Rank() == 0 && r.Attempt.Port != 0 {
			return r.Attempt.Port
		}
	}
	return cmp.Or(of.Port, rendezvous.Default.Preferred(of.Machine.ID()))
}

// startGang has the work of a gang and of its replacements started where it was not yet:
// a replacement starts once the place of rank 0 is known.
func (l *Leader) startGang(g *work.Unit) {
	if g.Attempt != nil {
		l.startWork(g.Attempt, g.Attempt.Machine.Nodes()...)
	}
	for _, r := range g.Job.Replacements() {
		if r.Attempt != nil {
			l.startWork(r.Attempt, r.Attempt.Machine.Nodes()...)
		}
	}
}

// lostNodes are the nodes whose members a record has lost, ascending.
func lostNodes(r *record.Tx) (nodes []resource.NodeID) {
	for _, m := range r.LostMembers {
		nodes = append(nodes, m.Node)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}
