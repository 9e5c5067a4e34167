package place

import (
	"fmt"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/topology"
	"github.com/musterd/muster/resource"
)

// This file places gangs with rules about domains of nodes at several levels.

// mostPlans bounds the plans that are tried on the room by the nodes' sums. After them
// each node is asked how many members it holds.
const mostPlans = 16

// placeInDomains is Place for a unit with Topology. The ranks of the members follow the
// domains. Nodes that have failed the unit, or are in doubt, are the last choice.
func placeInDomains(state *cluster.State, u *Unit, r *relations) ([]Choice, bool) {
	search := (*domains).place
	if u.joinsAlone() {
		search = (*domains).join
	}
	sure := newDomains(state, u, r, false)
	if members, ok := search(sure); ok || !sure.doubts || u.sure {
		return members, ok
	}
	return search(newDomains(state, u, r, true))
}

// mostRoom bounds the members of a host that are counted as room for members that follow.
const mostRoom = 1 << 12

// domains is one search.
type domains struct {
	state  *cluster.State
	unit   *Unit
	nodes  []*cluster.Node // of the hosts
	hosts  []topology.Host
	doubts bool // nodes are left out that have failed the unit or are in doubt
}

func newDomains(state *cluster.State, u *Unit, r *relations, doubtful bool) *domains {
	d := &domains{state: state, unit: u}
	levels := make([]*cluster.Topology, len(u.Topology.Levels))
	for i, l := range u.Topology.Levels {
		levels[i] = state.Topology(l.Key)
	}
	level, mates := u.bound(state)
	binding := levels[:level+1]
	keys, most := keysOf(state, mates, binding), int64(u.Members)
	if u.joinsAlone() {
		most = mostRoom
	}
	all := state.Nodes()
	numbers := make([]int32, 0, len(all)*len(levels))
	for _, n := range all {
		if !n.Open() || !n.MayFit(&u.Request) || u.Within != nil && !u.Within[n.ID] || !u.AllowsAll(n) || r != nil && !r.admits(n) {
			continue
		}
		if len(keys) > 0 && !keys[keyOf(n, binding)] {
			continue
		}
		if !doubtful && (u.Avoid[n.ID] > 0 || n.Suspect || n.Tripped) {
			d.doubts = true
			continue
		}
		at := len(numbers)
		for _, t := range levels {
			numbers = append(numbers, t.Of(n))
		}
		d.nodes = append(d.nodes, n)
		d.hosts = append(d.hosts, topology.Host{Domains: numbers[at:], Room: int(min(mayHold(n, &u.Request), most))})
	}
	return d
}

// place takes the members' amounts by the first plan that the nodes accept.
func (d *domains) place() ([]Choice, bool) {
	for tried := 0; ; tried++ {
		if tried == mostPlans {
			d.askAll()
		}
		plan, ok := d.unit.Topology.Plan(d.hosts, d.unit.Members)
		if !ok {
			return nil, false
		}
		mark := d.state.Checkpoint()
		members, ok := d.take(plan)
		if ok {
			d.state.Keep(mark)
			return members, true
		}
		d.state.Rollback(mark)
	}
}

// take takes the amounts of a plan. Where nodes refuse, their room is corrected.
func (d *domains) take(plan []topology.Share) ([]Choice, bool) {
	members, good := make([]Choice, 0, d.unit.Members), true
	for _, share := range plan {
		for taken := range share.Members {
			c, ok := take(d.state, d.nodes[share.Host], &d.unit.Request)
			if !ok {
				d.hosts[share.Host].Room, good = taken, false
				break
			}
			c.Index = len(members)
			members = append(members, c)
		}
	}
	return members, good
}

// askAll corrects the room of each node.
func (d *domains) askAll() {
	for i, n := range d.nodes {
		d.hosts[i].Room = d.holds(n, d.hosts[i].Room)
	}
}

// holds is how many members a node holds now, at most so many.
func (d *domains) holds(n *cluster.Node, most int) int {
	if most > 0 && !n.Kind().MayHold(d.unit.Request) {
		return 0
	}
	mark := d.state.Checkpoint()
	defer d.state.Rollback(mark)
	for held := range most {
		if _, ok := take(d.state, n, &d.unit.Request); !ok {
			return held
		}
	}
	return most
}

// explainDomains says how many members the best domain has room for, and why no more.
func explainDomains(state *cluster.State, u *Unit) (fit int, reason *resource.Reason) {
	d := newDomains(state, u, relateMembers(state, u), true)
	d.askAll()
	most, host := u.Topology.Room(d.hosts)
	level := u.Topology.NarrowestRequired()
	detail := ""
	switch key := ""; {
	case level >= 0 && host >= 0:
		key = u.Topology.Levels[level].Key
		value, _ := d.nodes[host].Labels.Get(key)
		detail = fmt.Sprintf("all %d members have to run in one domain of %s, and the best one, %s=%s, has room for %d", u.Members, key, key, value, most)
	case level >= 0:
		key = u.Topology.Levels[level].Key
		detail = fmt.Sprintf("all %d members have to run in one domain of %s, and no node of such a domain has room for one", u.Members, key)
	default:
		detail = fmt.Sprintf("the domains have room for %d of %d members", most, u.Members)
	}
	if r := u.Topology; r.Name != "" {
		detail += fmt.Sprintf(", those of subgroup %q in one domain of %s", r.Name, r.Levels[r.SubgroupLevel].Key)
	} else if r.Subgroup > 0 {
		detail += fmt.Sprintf(", in subgroups of %d, each in one domain of %s", r.Subgroup, r.Levels[r.SubgroupLevel].Key)
	}
	return min(most, u.Members), &resource.Reason{Code: resource.ReasonTopology, Detail: detail}
}
