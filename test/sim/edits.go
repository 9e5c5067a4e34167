package sim

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/lead/charges"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
)

// This file changes what clients have submitted, and the limits of the quota tree.

// nth is the path of a unit of the client's job.
func (c *client) nth(n int) record.UnitPath {
	path := c.path()
	path.N = n
	return path
}

// mostUnits bounds the units of a job: the gang, and members that came later.
const mostUnits = 3

// actEdit lets a client change what it has.
func (s *Sim) actEdit() bool {
	var fit []*client
	for _, c := range s.live {
		if c.acked != "" && !c.ends {
			fit = append(fit, c)
		}
	}
	if len(fit) == 0 {
		return false
	}
	return s.withTerm(nil, func(t *term) {
		c, n := pick(s, fit), s.rng.IntN(7)
		if grow := slices.DeleteFunc(fit, func(c *client) bool { return c.subgroup == 0 }); len(grow) > 0 && s.rng.IntN(2) == 0 {
			c, n = pick(s, grow), 5 // another number of members
		}
		spec := ""
		switch {
		case n == 6 && c.kind == record.JobUnit:
			s.boost(t, c)
			return
		case n < 2:
			spec = `{"suspend": true}`
			s.checker.SuspensionAsked(c.namespace, c.name)
		case n < 4:
			spec = `{"suspend": null}`
		case n == 4 || c.kind == record.AllocUnit || c.differs: // its number of members stays
			spec = fmt.Sprintf(`{"queue": %q}`, pick(s, queues[1:]))
		default:
			units := 1 + s.rng.IntN(mostUnits)
			spec = fmt.Sprintf(`{"parallelism": %d}`, c.demand.Members+units-1)
			for ; c.units < mostUnits; c.units++ { // any of them may end when others are no longer wanted
				if c.units > 0 {
					s.checker.Demanded(c.nth(c.units), c.wants(1))
					s.checker.EndAsked(c.nth(c.units))
				}
			}
		}
		s.logf("client %s: asks %s for %s", c.name, t.name, spec)
		patch := api.WorkPatch{Spec: json.RawMessage(spec)}
		var r lead.Request = lead.PatchJob{Namespace: c.namespace, Name: c.name, Patch: patch}
		if c.kind == record.AllocUnit {
			r = lead.PatchAllocation{Namespace: c.namespace, Name: c.name, Patch: patch}
		}
		t.ask("the change of "+c.name, r, func(e effect) {
			if e.Status == nil {
				s.stats["edits"]++
			}
		})
	})
}

// boost lets a client ask for a greater priority of its job, for some seconds.
func (s *Sim) boost(t *term, c *client) {
	o := api.BoostOptions{NewPriority: int32(1 + s.rng.IntN(12)), Duration: fmt.Sprintf("%ds", 1+s.rng.IntN(60))}
	s.logf("client %s: asks %s for priority %d for %s", c.name, t.name, o.NewPriority, o.Duration)
	t.ask("the boost of "+c.name, lead.BoostJob{Namespace: c.namespace, Name: c.name, Boost: o}, func(e effect) {
		if e.Status == nil {
			s.stats["boosts"]++
		}
	})
}

// treeOf is the quota tree with these limits.
func (s *Sim) treeOf(root, a, b int64) *api.QuotaTree {
	type node struct {
		Parent string            `json:"parent"`
		Quota  map[string]string `json:"quota"`
		Hard   bool              `json:"hard,omitempty"`
	}
	of := func(n int64) map[string]string { return map[string]string{"nvidia.com/gpu": amountOf(s.gpus(n))} }
	spec := encoded(map[string]any{"resourceNames": []string{"nvidia.com/gpu"}, "nodes": map[string]node{
		"root": {"nil", of(root), false}, "a": {"root", of(a), false}, "b": {"root", of(b), true},
	}})
	return &api.QuotaTree{APIVersion: api.APIVersion, Kind: api.KindQuotaTree, Metadata: api.ObjectMeta{Name: treeName}, Spec: spec}
}

// actTree has an operator change the limits of the tree.
func (s *Sim) actTree() bool {
	return s.withTerm(nil, func(t *term) {
		tree := s.treeOf(6+int64(s.rng.IntN(8)), 2+int64(s.rng.IntN(5)), 2+int64(s.rng.IntN(5)))
		spec, status := charges.SpecOf(*tree)
		mustTake(status)
		s.logf("%s: an operator sets the tree to %v", t.name, quotasOf(spec))
		t.ask("the limits of the tree", lead.PutQuotaTree{Object: tree, Spec: spec}, func(e effect) {
			if e.Status == nil {
				s.stats["trees"]++
			}
		})
	})
}

// quotasOf are the limits of a tree, for the transcript.
func quotasOf(spec quota.TreeSpec) string {
	return fmt.Sprint(spec.Nodes["root"].Quota, spec.Nodes["a"].Quota, spec.Nodes["b"].Quota)
}
