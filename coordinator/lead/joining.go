package lead

import (
	"cmp"
	"slices"

	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// This file finds the members beside which a unit is placed that joins a gang with rules
// about domains: a member beyond minMembers, or one in place of a lost member (ADR 114).

// mayJoin reports whether the unit is one of several of a gang with rules about domains.
func (u *unit) mayJoin() bool {
	return u.Demand.Topology != nil && (u.record.Kind == record.AllocUnit || u.record.N > 0 || u.job != nil && len(u.job.units) > 1)
}

// isNeighbour reports whether other units decide on the place of the unit.
func (u *unit) isNeighbour() bool { return u.Demand.Subject.Relations != nil || u.mayJoin() }

// joins reports whether other units of its gang have started.
func (u *unit) joins() bool { return u.mayJoin() && !u.gathers() }

// demand is the demand of the unit as it is now.
func (u *unit) demand() place.Unit {
	demand := u.Demand
	if u.joins() {
		demand.Joins = u.joining()
	}
	return demand
}

// mates are the units of the gang that a unit belongs to.
func (u *unit) mates() []*unit {
	switch {
	case u.job != nil:
		return u.job.units
	case u.group != nil:
		return u.group.units
	}
	return nil
}

// seated is a member of a gang that has a place. rank is its index in the job; the members
// of a group are in the order of their arrival.
type seated struct {
	unit *unit
	rank int
	node resource.NodeID
}

func (a seated) compare(b seated) int {
	if a.unit.job == nil {
		return a.unit.key.Compare(b.unit.key)
	}
	return cmp.Compare(a.rank, b.rank)
}

// joining is the gang of the unit: its members that have a place, or are about to, and do
// not leave.
func (u *unit) joining() *place.Joining {
	var list []seated
	for _, o := range u.mates() {
		if o == u || o.attempt == nil || o.attempt.machine == nil || o.isLeavingSoon() {
			continue
		}
		if o.attempt.machine.Undecided() { // such a unit has one member
			for _, id := range o.attempt.machine.Nodes() {
				list = append(list, seated{o, o.record.FirstMember, id})
			}
			continue
		}
		for i, p := range o.placements() {
			if p.Node != "" && !o.record.HasLost(i) {
				list = append(list, seated{o, o.record.FirstMember + i, p.Node})
			}
		}
	}
	slices.SortStableFunc(list, seated.compare)
	own, subgroup := seated{unit: u, rank: u.record.FirstMember}, u.subgroup()
	j := &place.Joining{Nodes: make([]resource.NodeID, len(list))}
	for i, s := range list {
		if j.Nodes[i] = s.node; s.compare(own) < 0 {
			j.Before = i + 1
		}
		if subgroup.has(s.rank) || u.sharesName(s.unit) {
			j.Own = append(j.Own, s.node)
		}
	}
	if j.Missing = subgroup.end - subgroup.first - len(j.Own); u.subgroupName() != "" {
		j.Missing = u.missing()
	}
	return j
}

// subgroupName is the subgroup that an allocation of a group names, "" for none.
func (u *unit) subgroupName() string {
	if u.Demand.Topology == nil {
		return ""
	}
	return u.Demand.Topology.Name
}

// subgroupKey is the label that names the domains of the unit's subgroup, "" for none.
func (u *unit) subgroupKey() string {
	if u.subgroupName() == "" {
		return ""
	}
	return u.Demand.Topology.Levels[u.Demand.Topology.SubgroupLevel].Key
}

// sharesName reports whether another allocation of the group names the same subgroup.
func (u *unit) sharesName(o *unit) bool {
	return u.subgroupName() != "" && o.subgroupName() == u.subgroupName()
}

// missing counts the allocations of a unit's named subgroup that wait for a place, itself
// among them.
func (u *unit) missing() (n int) {
	for _, o := range u.mates() {
		if o == u || u.sharesName(o) && o.waiting() && o.attempt == nil && !o.life.EndAsked() && !o.isSuspended() {
			n++
		}
	}
	return n
}

// ranks are those from first on, without end.
type ranks struct{ first, end int }

func (r ranks) has(rank int) bool { return r.first <= rank && rank < r.end }

// subgroup are the ranks of the subgroup of a unit of one member; none without subgroups,
// and of other units.
func (u *unit) subgroup() ranks {
	if u.job == nil || u.Demand.Topology == nil || u.Demand.Topology.Subgroup == 0 || u.record.Members > 1 {
		return ranks{}
	}
	size := u.Demand.Topology.Subgroup
	first := u.record.FirstMember / size * size
	return ranks{first, max(u.record.FirstMember+1, min(first+size, u.job.doc.Members()))}
}
