package lead

import (
	"fmt"
	"iter"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/coordinator/why"
	"github.com/musterd/muster/resource"
)

// The values of preemptionPolicy beside api.PreemptOwnQuota, which is that of a unit
// without one.
const (
	preemptLower = api.PreemptLowerPriority
	preemptNever = api.PreemptNever
)

// isSuspended reports whether the owner keeps the unit from running. The document is
// the one that the store has.
func (u *unit) isSuspended() bool {
	switch {
	case u.job != nil:
		return u.job.doc != nil && u.job.doc.IsSuspended()
	case u.allocation != nil:
		return u.allocation.IsSuspended()
	}
	return false
}

// evictable reports whether a unit may be chosen to give way: it runs, its owner
// has not asked for its end, and it gives way to nobody yet.
func (u *unit) evictable() bool {
	return u.attempt != nil && u.attempt.machine.State() == txn.Committed && !u.life.EndAsked() && u.attempt.preemptor == nil
}

// isLeavingSoon reports whether a unit that still holds something is on its way
// out.
func (u *unit) isLeavingSoon() bool {
	return u.attempt != nil && !u.attempt.machine.Undecided() && u.attempt.machine.State() > txn.Claimed
}

// gathers reports whether the unit belongs to a group that has not started yet.
func (u *unit) gathers() bool { return u.group != nil && !u.group.hasFormed() }

// awaitsMembers reports whether too few units of the group have arrived.
func (u *unit) awaitsMembers() bool {
	return u.gathers() && u.group.arrived() < u.group.rule.MinMembers
}

// gangName is the name of the unit's group, or of its gang with replacements, among
// occupants, "" for none.
func (u *unit) gangName() string {
	switch {
	case u.record.Replaces || u.isMended():
		return fmt.Sprintf("job %s/%s %s", u.record.Namespace, u.record.Name, u.job.record.UID)
	case u.group == nil:
		return ""
	}
	return fmt.Sprintf("%s %d.%d", groupKey(u.record.Namespace, u.group.id), u.group.first.Epoch, u.group.first.Counter)
}

// version is the newest revision of the unit's keys, 0 while it is not stored.
func (u *unit) version() resource.Revision {
	if u.stored == 0 {
		return 0
	}
	newest := u.stored
	if u.attempt != nil {
		newest = max(newest, u.attempt.ready.Revision)
	}
	if u.queued {
		newest = max(newest, u.told.revision)
	}
	if u.job != nil {
		newest = max(newest, u.job.stored)
	}
	return newest
}

// eachSet yields the number of the members of each set that the unit has not lost, and
// their request.
func (u *unit) eachSet() iter.Seq2[int, *resource.Request] {
	return func(yield func(int, *resource.Request) bool) {
		first := 0
		for members, r := range u.Demand.EachSet() {
			held, end := members, first+members
			for _, lost := range u.record.Lost {
				if first <= lost && lost < end {
					held--
				}
			}
			if !yield(held, r) {
				return
			}
			first = end
		}
	}
}

// gpus are those of all members that the unit has not lost.
func (u *unit) gpus() resource.Milli {
	var sum resource.Milli
	for members, r := range u.eachSet() {
		sum += r.GPUMilli() * resource.Milli(members)
	}
	return sum
}

// placements are those of a unit's attempt, by the members' index. They are
// final once the attempt has been committed.
func (u *unit) placements() []shown.Place {
	a := u.attempt
	if a.places != nil {
		return a.places
	}
	places := make([]shown.Place, u.record.Members)
	for _, node := range a.machine.Nodes() {
		v, _ := a.machine.Vote(node)
		for _, m := range v.Members {
			if m.Index < len(places) { // as every record of a leader's
				places[m.Index] = shown.Place{Node: node, Assignment: m.Assignment}
			}
		}
	}
	if !a.machine.Undecided() {
		a.keepPlaces(places)
	}
	return places
}

// work is the specification of the unit's work; nil where the unit has none.
func (u *unit) work() *api.AllocationSpec {
	if u.job == nil || u.job.doc == nil || !u.job.doc.Spec.Template.Spec.HasWork() {
		return nil
	}
	return &u.job.doc.Spec.Template.Spec
}

// hasWork reports whether processes of the unit may run that its agents follow: those of
// its command, and those that launchers have attached.
func (u *unit) hasWork() bool { return u.work() != nil || u.attempt != nil && len(u.attempt.work) > 0 }

// hasWorkEnded reports whether a unit of a job has ended with its work, or with its time.
// A unit that has failed because it did not start in time has not.
func hasWorkEnded(u *unit) bool {
	return u.phase() == api.Succeeded || u.phase() == api.Failed && u.record.Started != ""
}

// isOverdueEnd reports whether a unit has failed because it has not started by its time.
func isOverdueEnd(u *unit) bool {
	end := u.record.EndedBy()
	return end == record.GangTimeout || end == record.WaitTimeout
}

// preempting reports whether others are making room for a unit.
func (u *unit) preempting() bool {
	return u.attempt != nil && u.attempt.isPreempting() && u.waiting()
}

// right is whom the unit may have evicted. Until it is stored it only waits: an
// eviction takes a while, and the next leader must know for whom it was.
func (u *unit) right() sched.Right {
	switch {
	case u.stored == 0 || u.policy == preemptNever:
		return sched.Nobody
	case u.policy == preemptLower:
		return sched.Lower
	}
	return sched.OwnQuota
}

// isSurplus reports whether the unit is beyond the number of members that its job
// wants.
func (u *unit) isSurplus() bool {
	return u.job != nil && u.record.N > 0 && u.record.FirstMember >= u.job.doc.Members()
}

// leaving reports whether the unit's end has been asked for.
func (u *unit) leaving() bool {
	return u.life.EndAsked() || u.job != nil && u.job.record.Cancelled != nil
}

// endsWithItsTime reports whether an allocation is on its way out because of its ttl, and
// stays to be seen after its end.
func (u *unit) endsWithItsTime() bool {
	return u.job == nil && u.life.EndAsked() && u.attempt != nil && u.attempt.outcome != nil
}

// isAtRest reports whether no Txn that writes the unit is under way, nor can be
// begun without the leader noticing: a change of its document is then not
// overwritten by one that was made before.
func (u *unit) isAtRest() bool {
	if u.stored == 0 || u.life.Writing() != work.NoWrite || u.adopting != "" {
		return false
	}
	if u.attempt == nil {
		return true
	}
	switch u.attempt.machine.State() {
	case txn.Committed:
		return u.attempt.preemptor == nil
	case txn.Evicting, txn.Releasing: // a suspended unit is stopping
		return u.record.Requeues && u.attempt.machine.By() == ""
	}
	return false
}

// tolerations are those of the unit's document.
func (u *unit) tolerations() []api.Toleration {
	if u.job != nil {
		return u.job.doc.Spec.Template.Spec.Scheduling.Tolerations
	}
	return u.allocation.Spec.Scheduling.Tolerations
}

// wanted is the unit as decisions see it. Its charges are up to date: see bind.
func (u *unit) wanted() *sched.Unit {
	key := u.key
	key.Path, key.Priority = u.path, u.record.Priority
	return &sched.Unit{Key: key, Demand: u.demand(), Avoid: u.avoid, Right: u.right(), Charge: u.Charge, Charges: u.charges}
}

// unitWaiting reports whether a unit, or any unit of its job's first gang, is
// still to be placed.
func unitWaiting(u *unit) bool { return u.waiting() && !u.life.EndAsked() }

func workOf(u *unit) why.Work {
	return why.Work{
		Unit: u.path, Namespace: u.record.Namespace, Priority: u.record.Priority, Members: u.record.Held(),
		GPUs: u.gpus(),
	}
}

// creating is the creation of a unit.
func (u *unit) creating() post.Creating {
	key := u.record.Path().Key()
	return post.Creating{What: u.path, UID: u.record.UID, Key: key, Mine: func(value []byte) bool {
		rec, err := record.Decode[record.Unit](key, value)
		return err == nil && rec.UID == u.record.UID
	}}
}
