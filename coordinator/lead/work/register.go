package work

import (
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// Register is the work known to a leader: units with their jobs, groups, members and attempts.
// The methods of Register alone write the maps.
type Register struct {
	Units    map[string]*Unit           // by path
	Jobs     map[string]*Job            // by namespace/name
	Groups   map[string]*Group          // by namespace/groupId
	Members  map[string]*Member         // by namespace/name: all allocations clients see
	Attempts map[resource.TxID]*Attempt // under way or live
	// Dependents are the jobs waiting for other jobs.
	Dependents Dependents
	// QueueNews names the units whose part in a queue may have changed.
	QueueNews *QueueNews
	// policy is the preemptionPolicy of units without a policy.
	policy string
}

// NewRegister returns an empty register; policy is the preemptionPolicy by default.
func NewRegister(policy string) Register {
	return Register{
		Units: map[string]*Unit{}, Jobs: map[string]*Job{}, Groups: map[string]*Group{}, Members: map[string]*Member{}, Attempts: map[resource.TxID]*Attempt{},
		QueueNews: &QueueNews{}, policy: policy,
	}
}

// Member is a line in the list of allocations.
type Member struct {
	Unit  *Unit
	Index int
}

// InsertUnit takes in a unit and the unit's members.
func (r *Register) InsertUnit(u *Unit) {
	r.Units[u.Path] = u
	u.enter(r.QueueNews, r.policy)
	r.MapMembers(u)
	r.joinGroup(u)
}

// DeleteUnit takes out a unit and the unit's members.
func (r *Register) DeleteUnit(u *Unit) {
	delete(r.Units, u.Path)
	r.QueueNews.Note(u.Path)
	r.leaveGroup(u)
	for i := range u.Record.Members {
		if name := u.Record.Namespace + "/" + u.MemberName(i); r.Members[name] != nil && r.Members[name].Unit == u {
			delete(r.Members, name)
		}
	}
}

// UnitsOf returns the units of the paths.
func (r *Register) UnitsOf(paths []string) []*Unit {
	units := make([]*Unit, len(paths))
	for i, path := range paths {
		units[i] = r.Units[path]
	}
	return units
}

// InsertJob takes in a job; the job's units are added separately.
func (r *Register) InsertJob(j *Job) {
	r.Jobs[j.Position()] = j
	r.Dependents.insert(j, r.needsOf(j))
}

// DeleteJob takes out a job.
func (r *Register) DeleteJob(j *Job) {
	delete(r.Jobs, j.Position())
	r.Dependents.remove(j)
}

// InsertAttempt takes in a transaction under way or live.
func (r *Register) InsertAttempt(tx resource.TxID, a *Attempt) { r.Attempts[tx] = a }

// DeleteAttempt takes out an ended transaction, and returns the attempt, nil for none.
func (r *Register) DeleteAttempt(tx resource.TxID) *Attempt {
	a := r.Attempts[tx]
	delete(r.Attempts, tx)
	return a
}

// MapMembers names the members of a unit among all allocations, except lost members and members
// whose name a replacement has.
func (r *Register) MapMembers(u *Unit) {
	for i := range u.Record.Members {
		name := u.Record.Namespace + "/" + u.MemberName(i)
		if other := r.Members[name]; !u.Record.HasLost(i) && (other == nil || other.Unit.Gang() != u) {
			r.Members[name] = &Member{Unit: u, Index: i}
		}
	}
}

// UnmapMembers forgets the names of some members of a unit.
func (r *Register) UnmapMembers(u *Unit, members []record.LostMember) {
	for _, m := range members {
		name := u.Record.Namespace + "/" + u.MemberName(m.Member)
		if other := r.Members[name]; other != nil && other.Unit == u {
			delete(r.Members, name)
		}
	}
}
