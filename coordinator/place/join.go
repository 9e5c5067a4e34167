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
}

// matesOf are the members that have places on known nodes, and the position of the one
// whose rank is next to the unit's.
func (d *domains) matesOf(j *Joining) (mates []topology.Mate, near int) {
	at := make(map[resource.NodeID]int, len(j.Nodes)) // among the hosts
	for _, id := range j.Nodes {
		at[id] = -1
	}
	for i, n := range d.nodes {
		if _, has := at[n.ID]; has {
			at[n.ID] = i
		}
	}
	for i, id := range j.Nodes {
		n := d.state.Node(id)
		if n == nil {
			continue
		}
		m := topology.Mate{Host: at[id]}
		for _, l := range d.unit.Topology.Levels {
			m.Domains = append(m.Domains, d.state.Topology(l.Key).Of(n))
		}
		if i < j.Before {
			near = len(mates)
		}
		mates = append(mates, m)
	}
	return mates, near
}

// join places one member beside those that have places.
func (d *domains) join() ([]Choice, bool) {
	mates, near := d.matesOf(d.unit.Joins)
	if len(mates) == 0 {
		return d.place()
	}
	for {
		at, ok := d.unit.Topology.Join(d.hosts, mates, near)
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

// explainJoin says that no node beside the other members has room, nil where one has, or
// where rules about domains are not the reason.
func explainJoin(state *cluster.State, u *Unit) *resource.Reason {
	mark := state.Checkpoint()
	defer state.Rollback(mark)
	level := u.Topology.NarrowestRequired()
	if _, ok := Place(state, *u); ok || level < 0 {
		return nil
	}
	key := u.Topology.Levels[level].Key
	for _, id := range u.Joins.Nodes {
		if n := state.Node(id); n != nil {
			if value, has := n.Labels.Get(key); has {
				return &resource.Reason{Code: resource.ReasonTopology, Detail: fmt.Sprintf("it has to run in the domain of %s of the other members of its gang, %s=%s, and no node there has room", key, key, value)}
			}
		}
	}
	return nil
}

// keysOfMates are the domains of the members that a unit joins, by the topologies of levels
// from the widest on; of those alone whose nodes have the labels that the rules need.
func keysOfMates(state *cluster.State, u *Unit, levels []*cluster.Topology) map[domainKey]bool {
	if !u.joins() || len(levels) == 0 {
		return nil
	}
	keys := map[domainKey]bool{}
	for _, id := range u.Joins.Nodes {
		n := state.Node(id)
		if n == nil {
			continue
		}
		key, has := keyOf(n, levels), true
		for i := range levels {
			has = has && (key[i] != cluster.NoDomain || !u.Topology.Needs(i))
		}
		if has {
			keys[key] = true
		}
	}
	return keys
}
