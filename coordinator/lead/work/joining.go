package work

import (
	"cmp"
	"slices"

	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// This file finds the members beside which a joining unit is placed. The unit joins a gang with
// rules about domains, as a member beyond minMembers or in place of a lost member (ADR 114).

// mayJoin reports whether the unit is among several units of a gang with rules about domains.
func (u *Unit) mayJoin() bool {
	return u.Demand.Topology != nil && (u.Record.Kind == record.AllocUnit || u.Record.N > 0 || u.Job != nil && len(u.Job.Units) > 1)
}

// IsNeighbour reports whether other units decide on the place of the unit.
func (u *Unit) IsNeighbour() bool { return u.Demand.Subject.Relations != nil || u.mayJoin() }

// Joins reports whether other units of the unit's gang have started.
func (u *Unit) Joins() bool { return u.mayJoin() && !u.Gathers() }

// DemandNow is the present demand of the unit.
func (u *Unit) DemandNow() place.Unit {
	demand := u.Demand
	if u.Joins() {
		demand.Joins = u.joining()
	}
	return demand
}

// mates returns the units of the unit's gang, the unit among them.
func (u *Unit) mates() []*Unit {
	switch {
	case u.Job != nil:
		return u.Job.Units
	case u.Group != nil:
		return u.Group.Units
	}
	return nil
}

// seated is a member of a gang with a place. rank is the member's index in the job; the members
// of a group are in the order of their arrival.
type seated struct {
	unit *Unit
	rank int
	node resource.NodeID
}

func (a seated) compare(b seated) int {
	if a.unit.Job == nil {
		return a.unit.Key.Compare(b.unit.Key)
	}
	return cmp.Compare(a.rank, b.rank)
}

// joining is the gang of the unit: the members that have a place, or are about to have a place,
// and do not leave.
func (u *Unit) joining() *place.Joining {
	var list []seated
	for _, o := range u.mates() {
		if o == u || o.Attempt == nil || o.Attempt.Machine == nil || o.IsLeavingSoon() {
			continue
		}
		if o.Attempt.Machine.Undecided() { // such a unit has a single member
			for _, id := range o.Attempt.Machine.Nodes() {
				list = append(list, seated{o, o.Record.FirstMember, id})
			}
			continue
		}
		for i, p := range o.Placements() {
			if p.Node != "" && !o.Record.HasLost(i) {
				list = append(list, seated{o, o.Record.FirstMember + i, p.Node})
			}
		}
	}
	slices.SortStableFunc(list, seated.compare)
	own, subgroup := seated{unit: u, rank: u.Record.FirstMember}, u.Subgroup()
	j := &place.Joining{Nodes: make([]resource.NodeID, len(list))}
	for i, s := range list {
		if j.Nodes[i] = s.node; s.compare(own) < 0 {
			j.Before = i + 1
		}
		if subgroup.has(s.rank) || u.SharesName(s.unit) {
			j.Own = append(j.Own, s.node)
		}
	}
	if j.Missing = subgroup.End - subgroup.First - len(j.Own); u.SubgroupName() != "" {
		j.Missing = u.missing()
	}
	return j
}

// SubgroupName is the subgroup named by an allocation of a group, "" for none.
func (u *Unit) SubgroupName() string {
	if u.Demand.Topology == nil {
		return ""
	}
	return u.Demand.Topology.Name
}

// SubgroupKey is the label for the domains of the unit's subgroup, "" for none.
func (u *Unit) SubgroupKey() string {
	if u.SubgroupName() == "" {
		return ""
	}
	return u.Demand.Topology.Levels[u.Demand.Topology.SubgroupLevel].Key
}

// SharesName reports whether another allocation of the group names the same subgroup.
func (u *Unit) SharesName(o *Unit) bool {
	return u.SubgroupName() != "" && o.SubgroupName() == u.SubgroupName()
}

// missing counts the allocations of the unit's named subgroup waiting for a place, the unit
// among them.
func (u *Unit) missing() (n int) {
	for _, o := range u.mates() {
		if o == u || u.SharesName(o) && o.Waiting() && o.Attempt == nil && !o.Life.EndAsked() && !o.IsSuspended() {
			n++
		}
	}
	return n
}

// Ranks are the ranks from First on, without End.
type Ranks struct{ First, End int }

func (r Ranks) has(rank int) bool { return r.First <= rank && rank < r.End }

// Subgroup returns the ranks of the subgroup of a unit with a single member; no ranks without
// subgroups, and for other units.
func (u *Unit) Subgroup() Ranks {
	if u.Job == nil || u.Demand.Topology == nil || u.Demand.Topology.Subgroup == 0 || u.Record.Members > 1 {
		return Ranks{}
	}
	size := u.Demand.Topology.Subgroup
	first := u.Record.FirstMember / size * size
	return Ranks{first, max(u.Record.FirstMember+1, min(first+size, u.Job.Doc.Members()))}
}
