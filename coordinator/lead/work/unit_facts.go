package work

import (
	"fmt"
	"iter"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/coordinator/why"
	"github.com/musterd/muster/resource"
)

// Consumer describes a unit to the trees named by the charges.
func (u *Unit) Consumer(charges []record.Charge) quota.ConsumerSpec {
	c := quota.ConsumerSpec{ID: u.Path, Owner: string(u.Record.Tenant)}
	for _, charge := range charges {
		if charge.Tree != quota.Tree {
			c.Demands = append(c.Demands, quota.Demand{
				Tree: charge.Tree, Group: charge.Group, Request: charge.Request,
				Priority: int(u.Record.Priority), Type: u.Groups.Type, Unpreemptable: u.Groups.Unpreemptable,
			})
		}
	}
	return c
}

// MovingOps returns the writes that give a waiting unit a place in the queue of a record. The
// place among the units of all queues stays.
func (u *Unit) MovingOps(to record.Unit) []record.Op {
	from, at := u.Record.Order().Key(), to.Order().Key()
	if !u.Queued || from == at {
		return nil
	}
	return []record.Op{
		record.Delete(from),
		record.Put(at, record.MustEncode(record.Order{UnitUID: u.Record.UID, Waiting: u.Wait.Told.Waiting})),
	}
}

// Holding returns the amounts held by the unit now; none while the unit waits.
func (u *Unit) Holding() resource.Vector {
	if u.Attempt == nil || u.Attempt.Machine.Undecided() {
		return nil
	}
	return u.Charge.Request
}

// Kind is the kind of the unit's object.
func (u *Unit) Kind() string {
	if u.Job != nil {
		return api.KindJob
	}
	return api.KindAllocation
}

// The values of preemptionPolicy beside api.PreemptOwnQuota, the policy by default.
const (
	preemptLower = api.PreemptLowerPriority
	PreemptNever = api.PreemptNever
)

// IsSuspended reports whether the owner keeps the unit from running, according to the stored
// document.
func (u *Unit) IsSuspended() bool {
	switch {
	case u.Job != nil:
		return u.Job.Doc != nil && u.Job.Doc.IsSuspended()
	case u.Allocation != nil:
		return u.Allocation.IsSuspended()
	}
	return false
}

// Evictable reports whether the unit may be chosen as a victim: the unit runs, the owner has
// not asked for the end, and the unit is not a victim yet.
func (u *Unit) Evictable() bool {
	return u.Attempt != nil && u.Attempt.Machine.State() == txn.Committed && !u.Life.EndAsked() && u.Attempt.Preemptor == nil
}

// IsLeavingSoon reports whether the unit still holds something, and is on the way out.
func (u *Unit) IsLeavingSoon() bool {
	return u.Attempt != nil && !u.Attempt.Machine.Undecided() && u.Attempt.Machine.State() > txn.Claimed
}

// Gathers reports whether the unit belongs to a group not started yet.
func (u *Unit) Gathers() bool { return u.Group != nil && !u.Group.HasFormed() }

// AwaitsMembers reports whether too few units of the group have arrived.
func (u *Unit) AwaitsMembers() bool {
	return u.Gathers() && u.Group.Arrived() < u.Group.Rule.MinMembers
}

// GangName is the name, among occupants, of the unit's group, or of the unit's gang with
// replacements, "" for none.
func (u *Unit) GangName() string {
	switch {
	case u.Record.Replaces || u.IsMended():
		return fmt.Sprintf("job %s/%s %s", u.Record.Namespace, u.Record.Name, u.Job.Record.UID)
	case u.Group == nil:
		return ""
	}
	return fmt.Sprintf("%s %d.%d", GroupKey(u.Record.Namespace, u.Group.ID), u.Group.First.Epoch, u.Group.First.Counter)
}

// Version is the newest revision of the unit's keys, 0 while the unit is not stored.
func (u *Unit) Version() resource.Revision {
	if u.Stored == 0 {
		return 0
	}
	newest := u.Stored
	if u.Attempt != nil {
		newest = max(newest, u.Attempt.Ready.Revision)
	}
	if u.Queued {
		newest = max(newest, u.Wait.Told.Revision)
	}
	if u.Job != nil {
		newest = max(newest, u.Job.Stored)
	}
	return newest
}

// EachSet yields, for each set of members, the number of members not lost, and their request.
func (u *Unit) EachSet() iter.Seq2[int, *resource.Request] {
	return func(yield func(int, *resource.Request) bool) {
		first := 0
		for members, r := range u.Demand.EachSet() {
			held, end := members, first+members
			for _, lost := range u.Record.Lost {
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

// GPUs is the sum of the GPUs of all members not lost.
func (u *Unit) GPUs() resource.Milli {
	var sum resource.Milli
	for members, r := range u.EachSet() {
		sum += r.GPUMilli() * resource.Milli(members)
	}
	return sum
}

// Placements returns the placements in the unit's attempt, by the members' index. The
// placements are final once the attempt has been committed.
func (u *Unit) Placements() []shown.Place {
	a := u.Attempt
	if a.places != nil {
		return a.places
	}
	places := make([]shown.Place, u.Record.Members)
	for _, node := range a.Machine.Nodes() {
		v, _ := a.Machine.Vote(node)
		for _, m := range v.Members {
			if m.Index < len(places) { // as in every record written by a leader
				places[m.Index] = shown.Place{Node: node, Assignment: m.Assignment}
			}
		}
	}
	if !a.Machine.Undecided() {
		a.keepPlaces(places)
	}
	return places
}

// Work is the specification of the unit's work; nil for a unit without work.
func (u *Unit) Work() *api.AllocationSpec {
	if u.Job == nil || u.Job.Doc == nil || !u.Job.Doc.Spec.Template.Spec.HasWork() {
		return nil
	}
	return &u.Job.Doc.Spec.Template.Spec
}

// HasWork reports whether agents may follow processes of the unit: the processes of the unit's
// command, and processes attached by launchers.
func (u *Unit) HasWork() bool { return u.Work() != nil || u.Attempt != nil && len(u.Attempt.Work) > 0 }

// hasWorkEnded reports whether a unit of a job has ended with the unit's work, or with the
// unit's time. A unit that has failed because it did not start in time does not count.
func hasWorkEnded(u *Unit) bool {
	return u.Phase() == api.Succeeded || u.Phase() == api.Failed && u.Record.Started != ""
}

// IsOverdueEnd reports whether a unit has failed because the unit did not start in time.
func IsOverdueEnd(u *Unit) bool {
	end := u.Record.EndedBy()
	return end == record.GangTimeout || end == record.WaitTimeout
}

// Preempting reports whether other units are making room for the unit.
func (u *Unit) Preempting() bool {
	return u.Attempt != nil && u.Attempt.IsPreempting() && u.Waiting()
}

// Right is the right of the unit to have other units evicted. A unit not stored yet only waits:
// an eviction takes a while, and the next leader must know the preemptor.
func (u *Unit) Right() sched.Right {
	switch {
	case u.Stored == 0 || u.Policy == PreemptNever:
		return sched.Nobody
	case u.Policy == preemptLower:
		return sched.Lower
	}
	return sched.OwnQuota
}

// IsSurplus reports whether the unit is beyond the number of members wanted by the job.
func (u *Unit) IsSurplus() bool {
	return u.Job != nil && u.Record.N > 0 && u.Record.FirstMember >= u.Job.Doc.Members()
}

// Leaving reports whether the unit's end has been asked for.
func (u *Unit) Leaving() bool {
	return u.Life.EndAsked() || u.Job != nil && u.Job.Record.Cancelled != nil
}

// EndsWithItsTime reports whether an allocation is on the way out because of the ttl, and stays
// visible after the end.
func (u *Unit) EndsWithItsTime() bool {
	return u.Job == nil && u.Life.EndAsked() && u.Attempt != nil && u.Attempt.Outcome != nil
}

// IsAtRest reports whether no Txn under way writes the unit, and no such Txn can begin
// unnoticed by the leader. Then no older write overwrites a change of the unit's document.
func (u *Unit) IsAtRest() bool {
	if u.Stored == 0 || u.Life.Writing() != NoWrite || u.Adopting != "" {
		return false
	}
	if u.Attempt == nil {
		return true
	}
	switch u.Attempt.Machine.State() {
	case txn.Committed:
		return u.Attempt.Preemptor == nil
	case txn.Evicting, txn.Releasing: // a suspended unit is stopping
		return u.Record.Requeues && u.Attempt.Machine.By() == ""
	}
	return false
}

// Tolerations returns the tolerations in the unit's document.
func (u *Unit) Tolerations() []api.Toleration {
	if u.Job != nil {
		return u.Job.Doc.Spec.Template.Spec.Scheduling.Tolerations
	}
	return u.Allocation.Spec.Scheduling.Tolerations
}

// Wanted is the unit in the form for decisions. The charges are up to date: see Leader.bind.
func (u *Unit) Wanted() *sched.Unit {
	key := u.Key
	key.Path, key.Priority = u.Path, u.Record.Priority
	return &sched.Unit{Key: key, Demand: u.DemandNow(), Avoid: u.Wait.Avoid, Right: u.Right(), Charge: u.Charge, Charges: u.Charges}
}

// UnitWaiting reports whether a unit is still to be placed.
func UnitWaiting(u *Unit) bool { return u.Waiting() && !u.Life.EndAsked() }

// WorkOf describes the unit's work for an explanation.
func WorkOf(u *Unit) why.Work {
	return why.Work{
		Unit: u.Path, Namespace: u.Record.Namespace, Priority: u.Record.Priority, Members: u.Record.Held(),
		GPUs: u.GPUs(),
	}
}

// Creating is the creation of a unit.
func (u *Unit) Creating() post.Creating {
	key := u.Record.Path().Key()
	return post.Creating{What: u.Path, UID: u.Record.UID, Key: key, Mine: func(value []byte) bool {
		rec, err := record.Decode[record.Unit](key, value)
		return err == nil && rec.UID == u.Record.UID
	}}
}
