package sim

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file is rules about other units: a rule selects the units of the client's own
// team, or those of its own job. Two of the hosts are in one rack.

// rule is the rule that a client's units have.
type rule int

const (
	noRule     rule = iota
	apart           // no two of a team on a host
	together        // those of a team in one rack
	even            // those of a team on as many hosts as may be
	members         // no two members on a host
	preferably      // away from the team, where there is room elsewhere
)

// drawnRules are the rules as clients draw them.
var drawnRules = []rule{noRule, noRule, apart, together, even, members, preferably}

const (
	hostLabel = "kubernetes.io/hostname"
	rackLabel = "rack"
)

func rackOf(node resource.NodeID) string {
	return map[bool]string{true: "far", false: "near"}[node == "n3"]
}

// team is the label of a client's units; no team is one of two.
func (c *client) team() string { return []string{"red", "blue"}[c.index%2] }

// labels are those of a client's object. Without rules there are none.
func (c *client) labels() map[string]string {
	if c.rule == noRule {
		return nil
	}
	return map[string]string{"team": c.team()}
}

// scheduling is the rule as a document has it.
func (r rule) scheduling(team string) (s api.Scheduling) {
	mates := &api.LabelSelector{MatchLabels: map[string]string{"team": team}}
	switch r {
	case noRule:
	case apart:
		s.Affinity = &api.Affinity{PodAntiAffinity: &api.PodAffinity{Required: []api.PodAffinityTerm{{TopologyKey: hostLabel, LabelSelector: mates}}}}
	case together:
		s.Affinity = &api.Affinity{PodAffinity: &api.PodAffinity{Required: []api.PodAffinityTerm{{TopologyKey: rackLabel, LabelSelector: mates}}}}
	case even:
		s.TopologySpreadConstraints = []api.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: hostLabel, LabelSelector: mates}}
	case members:
		s.Affinity = &api.Affinity{PodAntiAffinity: &api.PodAffinity{Required: []api.PodAffinityTerm{{TopologyKey: hostLabel}}}}
	case preferably:
		s.Affinity = &api.Affinity{PodAntiAffinity: &api.PodAffinity{Preferred: []api.WeightedPodAffinityTerm{
			{Weight: 50, PodAffinityTerm: api.PodAffinityTerm{TopologyKey: hostLabel, LabelSelector: mates}},
		}}}
	}
	return s
}

// checkRules verifies that required anti-affinity holds among all that runs, and that
// gangs and subgroups run in one rack that have to. After a
// restored store, and of what a liar claims to hold, units run that no leader has placed.
func (s *Sim) checkRules() {
	if !s.rules && !s.domains || s.restored || s.liar.host != nil {
		return
	}
	running := map[*client]map[resource.NodeID]int{} // members by host
	racks := map[string]resource.NodeID{}            // by gang in one rack: a host of it
	for _, kv := range s.store.all(record.TxPrefix) {
		r := s.store.txs.of(kv)
		c := s.clientOf(record.UnitPath{Namespace: r.Unit.Namespace, Kind: r.Unit.Kind, Name: r.Unit.Name}.String())
		if c == nil || r.State != grant.RecordCommitted {
			continue
		}
		if running[c] == nil {
			running[c] = map[resource.NodeID]int{}
		}
		for _, m := range r.Members {
			running[c][m.Node]++
			if !c.inRack {
				continue
			}
			gang := cmp.Or(c.gang, c.name) + c.part
			if c.subgroup > 0 {
				gang += fmt.Sprintf(", subgroup %d", (s.store.units.of(s.store.keys[r.Unit.Key()]).FirstMember+m.Member)/c.subgroup)
			}
			if other := racks[gang]; other != "" && rackOf(m.Node) != rackOf(other) {
				s.fail("rules", "members of %s run on %s and on %s, and it wants one rack", gang, other, m.Node)
			}
			racks[gang] = m.Node
		}
	}
	for _, c := range s.clients {
		for _, h := range s.hosts {
			if on := running[c][h.node]; on > 1 && (c.rule == members || c.rule == apart) {
				s.fail("rules", "%d members of %s run on %s, which its rule forbids", on, c.name, h.node)
			}
			if c.rule != apart || running[c][h.node] == 0 {
				continue
			}
			if i := slices.IndexFunc(s.clients, func(o *client) bool {
				return o != c && o.namespace == c.namespace && o.rule != noRule && o.team() == c.team() && running[o][h.node] > 0
			}); i >= 0 {
				s.fail("rules", "%s and %s run on %s, which the rule of %s forbids", c.name, s.clients[i].name, h.node, c.name)
			}
		}
	}
}
