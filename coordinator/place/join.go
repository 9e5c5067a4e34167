package place

import (
	"fmt"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/topology"
	"github.com/musterd/muster/resource"
)

// This file places members that join a gang which has rules about domains, and of which
// other members have places.

// Joining is the gang that the members of a unit join.
type Joining struct {
	Nodes []resource.NodeID // of the members that have places, in the order of their ranks
	// Before is the number of these whose ranks are lower than those of the unit.
	Before int
	// Own are those of the subgroup of a unit of one member, and Missing is the number of
	// the members of the subgroup that have no place, the unit's own among them.
	Own     []resource.NodeID
	Missing int
}

// matesOf are the members that have places on known nodes.
func (d *domains) matesOf(j *Joining) topology.Mates {
	mates := topology.Mates{Missing: j.Missing}
	at := make(map[resource.NodeID]int, len(j.Nodes)) // among the hosts
	for _, id := range j.Nodes {
		at[id] = -1
	}
	for i, n := range d.nodes {
		if _, has := at[n.ID]; has {
			at[n.ID] = i
		}
	}
	mateOn := func(n *cluster.Node) topology.Mate {
		m := topology.Mate{Host: at[n.ID]}
		for _, l := range d.unit.Topology.Levels {
			m.Domains = append(m.Domains, d.state.Topology(l.Key).Of(n))
		}
		return m
	}
	for i, id := range j.Nodes {
		n := d.state.Node(id)
		if n == nil {
			continue
		}
		if i < j.Before {
			mates.Near = len(mates.All)
		}
		mates.All = append(mates.All, mateOn(n))
	}
	for _, id := range j.Own {
		if n := d.state.Node(id); n != nil {
			mates.Own = append(mates.Own, mateOn(n))
		}
	}
	return mates
}

// join places one member beside those that have places.
func (d *domains) join() ([]Choice, bool) {
	mates := d.matesOf(d.unit.Joins)
	if len(mates.All) == 0 && d.unit.Topology.Subgroup == 0 {
		return d.place()
	}
	for {
		at, ok := d.unit.Topology.Join(d.hosts, mates)
		if !ok {
			return nil, false
		}
		if c, ok := take(d.state, d.nodes[at], &d.unit.Request); ok {
			return []Choice{c}, true
		}
		d.hosts[at].Room = 0
	}
}

// joins reports whether the members of a unit join others that have places.
func (u *Unit) joins() bool { return u.Topology != nil && u.Joins != nil && len(u.Joins.Nodes) > 0 }

// joinsAlone reports whether a unit with Topology is one member that joins a gang.
func (u *Unit) joinsAlone() bool {
	return u.Members == 1 && (u.joins() || u.Topology.Subgroup > 0 && u.Joins != nil)
}

// BoundLevel is the narrowest level at which the members of the unit go to one domain, or to
// those of the members that they join; -1 for none.
func (u *Unit) BoundLevel(state *cluster.State) int {
	level, _ := u.bound(state)
	return level
}

// bound is the narrowest level at which other members bind the unit to their domains, -1
// for none, and the nodes of these members: those of its subgroup, or all.
func (u *Unit) bound(state *cluster.State) (level int, nodes []resource.NodeID) {
	level = u.Topology.NarrowestRequired()
	if !u.joins() {
		return level, nil
	}
	if sub := u.Topology.SubgroupLevel; u.joinsAlone() && u.Topology.Subgroup > 0 && sub >= level {
		if own := u.placed(state, u.Joins.Own, sub); len(own) > 0 {
			return sub, own
		}
	}
	return level, u.placed(state, u.Joins.Nodes, level)
}

// placed are those of some nodes that have the labels that the rules need, down to a level.
func (u *Unit) placed(state *cluster.State, nodes []resource.NodeID, level int) []resource.NodeID {
	var placed []resource.NodeID
	for _, id := range nodes {
		if n := state.Node(id); n != nil && u.hasLabels(n, level) {
			placed = append(placed, id)
		}
	}
	return placed
}

// hasLabels reports whether a node has the labels that the rules about domains need, down to
// a level.
func (u *Unit) hasLabels(n *cluster.Node, level int) bool {
	for i, l := range u.Topology.Levels[:level+1] {
		if _, has := n.Labels.Get(l.Key); !has && u.Topology.Needs(i) {
			return false
		}
	}
	return true
}

// explainJoin says that no node beside the other members has room, nil where one has, or
// where rules about domains are not the reason.
func explainJoin(state *cluster.State, u *Unit) *resource.Reason {
	mark := state.Checkpoint()
	defer state.Rollback(mark)
	level, nodes := u.bound(state)
	if _, ok := Place(state, *u); ok || level < 0 || len(nodes) == 0 {
		return nil
	}
	whole := "gang"
	if level > u.Topology.NarrowestRequired() {
		whole = "subgroup"
	}
	key := u.Topology.Levels[level].Key
	value, _ := state.Node(nodes[0]).Labels.Get(key)
	return &resource.Reason{Code: resource.ReasonTopology, Detail: fmt.Sprintf("it has to run in the domain of %s of the other members of its %s, %s=%s, and no node there has room", key, whole, key, value)}
}

// keysOf are the domains of nodes by the topologies of levels from the widest on.
func keysOf(state *cluster.State, nodes []resource.NodeID, levels []*cluster.Topology) map[domainKey]bool {
	keys := map[domainKey]bool{}
	for _, id := range nodes {
		keys[keyOf(state.Node(id), levels)] = true
	}
	return keys
}
