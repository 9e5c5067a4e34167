package lead

import (
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// register is the work that a leader knows: units with their jobs, groups, members and
// attempts. The maps are written by the methods of this file alone.
type register struct {
	units    map[string]*unit           // by path
	jobs     map[string]*job            // by namespace/name
	groups   map[string]*group          // by namespace/groupId
	members  map[string]*member         // by namespace/name: all allocations clients see
	attempts map[resource.TxID]*attempt // under way or live
	// dependents are the jobs that wait for others.
	dependents dependents
	// queueNews names the units whose part in a queue may have changed.
	queueNews *queueNews
	// policy is the preemptionPolicy of units without a policy.
	policy string
}

func newRegister(policy string) register {
	return register{
		units: map[string]*unit{}, jobs: map[string]*job{}, groups: map[string]*group{}, members: map[string]*member{}, attempts: map[resource.TxID]*attempt{},
		queueNews: &queueNews{}, policy: policy,
	}
}

// member is one line among the allocations.
type member struct {
	unit  *unit
	index int
}

// insertUnit takes a unit and its members in.
func (r *register) insertUnit(u *unit) {
	r.units[u.path] = u
	u.enter(r.queueNews, r.policy)
	r.mapMembers(u)
	r.joinGroup(u)
}

// deleteUnit takes a unit and its members out.
func (r *register) deleteUnit(u *unit) {
	delete(r.units, u.path)
	r.queueNews.note(u.path)
	r.leaveGroup(u)
	for i := range u.record.Members {
		if name := u.record.Namespace + "/" + u.memberName(i); r.members[name] != nil && r.members[name].unit == u {
			delete(r.members, name)
		}
	}
}

// unitsOf are the units of these paths.
func (r *register) unitsOf(paths []string) []*unit {
	units := make([]*unit, len(paths))
	for i, path := range paths {
		units[i] = r.units[path]
	}
	return units
}

// insertJob takes a job in; its units are added by themselves.
func (r *register) insertJob(j *job) {
	r.jobs[j.position()] = j
	r.dependents.insert(j, r.needsOf(j))
}

// deleteJob takes a job out.
func (r *register) deleteJob(j *job) {
	delete(r.jobs, j.position())
	r.dependents.remove(j)
}

// insertAttempt takes a transaction in that is under way or live.
func (r *register) insertAttempt(tx resource.TxID, a *attempt) { r.attempts[tx] = a }

// deleteAttempt takes a transaction out that has ended, and returns the attempt, nil for none.
func (r *register) deleteAttempt(tx resource.TxID) *attempt {
	a := r.attempts[tx]
	delete(r.attempts, tx)
	return a
}

// mapMembers names the members of a unit among all allocations, as far as no other unit
// has the name.
func (r *register) mapMembers(u *unit) {
	for i := range u.record.Members {
		name := u.record.Namespace + "/" + u.memberName(i)
		if other := r.members[name]; !u.record.HasLost(i) && (other == nil || other.unit.gang() != u) {
			r.members[name] = &member{unit: u, index: i}
		}
	}
}

// unmapMembers forgets the names of some members of a unit.
func (r *register) unmapMembers(u *unit, members []record.LostMember) {
	for _, m := range members {
		name := u.record.Namespace + "/" + u.memberName(m.Member)
		if other := r.members[name]; other != nil && other.unit == u {
			delete(r.members, name)
		}
	}
}
