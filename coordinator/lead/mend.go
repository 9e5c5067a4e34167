package lead

import (
	"cmp"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/rendezvous"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file keeps a gang and the units that replace its lost members together: they give
// way, end and are judged as one (ADR 110). All of it follows from the units in the store,
// so each leader goes on with it.

// mendsGang reports whether the job is a gang that goes on without members whose nodes
// are lost.
func (j *job) mendsGang() bool { return j.gang && j.doc != nil && j.doc.Spec.ReplacesLost() }

// replacements are the units that replace lost members of the gang, ascending.
func (j *job) replacements() []*unit {
	at := slices.IndexFunc(j.units, func(u *unit) bool { return u.record.Replaces })
	if at < 0 {
		return nil
	}
	return j.units[at:]
}

// ownUnits are the units of the submission and those that a change has added.
func (j *job) ownUnits() []*unit { return j.units[:len(j.units)-len(j.replacements())] }

// gang is the unit of which this one replaces a member, nil for another unit.
func (u *unit) gang() *unit {
	if !u.record.Replaces {
		return nil
	}
	return u.job.units[0]
}

// rank is the index in the gang of the member that the unit replaces.
func (u *unit) rank() int { return u.record.FirstMember - u.gang().record.FirstMember }

// isWanted reports whether the gang of a replacement runs without the member.
func (u *unit) isWanted() bool {
	g := u.gang()
	return g.record.UID == u.record.Parent && g.phase() == api.Running && g.record.HasLost(u.rank())
}

// isMending reports whether a gang that waits again is to wait for the end of units that
// have replaced its members.
func (u *unit) isMending() bool {
	return u.job != nil && u.record.N == 0 && u.waiting() && len(u.job.replacements()) > 0
}

// isMended reports whether other units replace members of this one.
func (u *unit) isMended() bool {
	return u.job != nil && u.record.N == 0 && len(u.job.replacements()) > 0
}

// endReplacements asks for the end of the replacements whose gang does not run any more.
// Those under notice end anyway.
func (l *Leader) endReplacements(j *job) {
	for _, r := range slices.Clone(j.replacements()) {
		if r.life.EndAsked() || r.isWanted() || r.isLeavingSoon() {
			continue
		}
		asked := txn.ReleaseAsked{Reason: "its gang has ended or waits again"}
		if r.hasWork() {
			asked.GraceSeconds = DefaultGrace
		}
		l.end(r, asked)
	}
}

// evictGang gives notice to the gang of a replacement that has notice, unless the
// replacement's node is dead: then it waits again alone.
func (l *Leader) evictGang(a *attempt, notice txn.EvictAsked) {
	if g := a.unit.gang(); g != nil && !a.lost && a.unit.isWanted() && g.evictable() {
		l.evict(g, notice)
	}
}

// dropReplacement forgets a replacement that has ended, with its key. The gang may be
// tried again after the last one.
func (l *Leader) dropReplacement(r *unit) {
	j, g := r.job, r.gang()
	j.dropUnits([]*unit{r})
	l.removeUnit(r)
	l.work.mapMembers(g)
	l.occupancy.noteUnit(g)
	if !g.life.EndAsked() && g.attempt == nil && !g.life.Gone() {
		l.offer(g)
	}
	l.notify(g)
	l.notifyJob(j)
	l.finishJob(j)
}

// isCounted reports whether a replacement's work counts for its gang: the unit has a
// place, and keeps it.
func (u *unit) isCounted() bool {
	return u.phase() == api.Running && u.attempt != nil && !u.attempt.lost
}

// keepExit notes how the work of a replacement has ended, before the replacement is
// forgotten.
func (l *Leader) keepExit(r *attempt) {
	g := r.unit.gang()
	if g == nil || g.attempt == nil || g.attempt.machine.Undecided() {
		return
	}
	for _, e := range r.exits() {
		e.Member, e.Tx = r.unit.rank(), r.machine.ID()
		g.attempt.keepExit(e)
	}
}

// exitsElsewhere are the ends of members that other transactions have or had.
func (a *attempt) exitsElsewhere() (list []record.Exit) {
	known := map[int]bool{}
	if a.unit.isMended() {
		for _, r := range a.unit.job.replacements() {
			if r.attempt == nil || r.attempt.machine.Undecided() {
				continue
			}
			for _, e := range r.attempt.exits() {
				e.Member, e.Tx = r.rank(), r.attempt.machine.ID()
				known[e.Member] = true
				list = append(list, e)
			}
		}
	}
	for member, e := range a.elsewhere {
		if !known[member] {
			list = append(list, e)
		}
	}
	return list
}

// gangWork is the work that is judged as one: the states by member, and the number of
// members that count.
func (l *Leader) gangWork(a *attempt) (states map[int]grant.WorkState, members int) {
	states, members = map[int]grant.WorkState{}, a.unit.record.Held()
	for member, s := range a.work {
		states[member] = s
	}
	if !a.unit.isMended() {
		return states, members
	}
	for _, r := range a.unit.job.replacements() {
		if !r.isCounted() {
			continue
		}
		members++
		if s, known := r.attempt.work[0]; known {
			s.Member = r.rank()
			states[s.Member] = s
		}
	}
	return states, members
}

// judged is the attempt by which the work of a unit is judged: for a replacement that of
// its gang. nil where there is none.
func (a *attempt) judged() *attempt {
	if g := a.unit.gang(); g != nil {
		return g.attempt
	}
	return a
}

// gangHosts are the addresses of the hosts of all members of a unit's gang, by rank; ""
// where a member waits for a place.
func (l *Leader) gangHosts(a *attempt) []string {
	of := a.judged()
	if of == nil {
		return nil
	}
	hosts := l.hostsOf(of)
	if of.unit.isMended() {
		for _, r := range of.unit.job.replacements() {
			if r.isCounted() {
				hosts[r.rank()] = l.addressOf(r.attempt.firstNode())
			}
		}
	}
	return hosts
}

// gangPort is the port at which the members of a unit's gang meet, on the host of rank 0.
func (l *Leader) gangPort(a *attempt) int {
	of := a.judged()
	if of == nil {
		return 0
	}
	if of.unit.isMended() {
		if r := of.unit.job.replacements()[0]; r.isCounted() && r.rank() == 0 && r.attempt.port != 0 {
			return r.attempt.port
		}
	}
	return cmp.Or(of.port, rendezvous.Default.Preferred(of.machine.ID()))
}

// startGang has the work of a gang and of its replacements started where it was not yet:
// a replacement starts once the place of rank 0 is known.
func (l *Leader) startGang(g *unit) {
	if g.attempt != nil {
		l.startWork(g.attempt, g.attempt.machine.Nodes()...)
	}
	for _, r := range g.job.replacements() {
		if r.attempt != nil {
			l.startWork(r.attempt, r.attempt.machine.Nodes()...)
		}
	}
}

// mayMend reports whether the commit of a unit may be sent: that of a replacement while its
// gang runs without the member.
func (a *attempt) mayMend() bool {
	g := a.unit.gang()
	return g == nil || a.unit.isWanted() && g.attempt != nil && !g.life.EndAsked()
}

// gangCompares are the compares by which the gang of a replacement still is COMMITTED
// without the member, none for another unit. model: mutant MEND_WITHOUT_PARENT
func (a *attempt) gangCompares() []record.Compare {
	g := a.unit.gang()
	if g == nil {
		return nil
	}
	return []record.Compare{record.ModRevIs(record.TxKey(g.attempt.machine.ID()), g.attempt.machine.Revision())}
}

// lostNodes are the nodes whose members a record has lost, ascending.
func lostNodes(r *record.Tx) (nodes []resource.NodeID) {
	for _, m := range r.LostMembers {
		nodes = append(nodes, m.Node)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}
