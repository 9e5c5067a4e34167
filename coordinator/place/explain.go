package place

import (
	"slices"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/resource"
)

// Explanation says how far a unit is from fitting.
type Explanation struct {
	// Set is the number of the set that the rest is about, of a unit whose members differ,
	// and Members are those of the set; of another unit 0 and all its members.
	Set, Members int
	Fit          int // of these members that would fit at once
	// Shortages are over all nodes that are ready and allowed: what all members
	// want against what is free. Empty when only fragmentation, NUMA or links
	// are in the way; the nodes' reasons then say so.
	Shortages []resource.Reason
	Nodes     []NodeExplanation
	// Domain is why the members have no place though the nodes together have: rules about
	// domains. nil where that is not the reason.
	Domain *resource.Reason
}

// NodeExplanation is one node's answer to one member.
type NodeExplanation struct {
	Node    resource.NodeID
	Fit     int // members that would fit there now
	Reasons []resource.Reason
}

// Explain tells for each node, in the order of their IDs, how many members fit
// and why no more do. Of a unit whose members differ it is about the first set that has no
// place. The State is afterwards as it was.
func Explain(state *cluster.State, u Unit) Explanation {
	if u.Sets != nil {
		return explainSets(state, &u)
	}
	e := Explanation{Members: u.Members}
	free := resource.Vector{}
	relations := relateMembers(state, &u)
	nodes, mark := state.Nodes(), state.Checkpoint()
	for _, n := range nodes {
		reasons := n.WhyClosed()
		if reasons == nil {
			if r := u.Constraints.Refusal(n.Labels); r != nil {
				reasons = []resource.Reason{*r}
			} else if r := relations.refusal(n); r != nil {
				reasons = []resource.Reason{*r}
			}
		}
		if reasons != nil {
			e.Nodes = append(e.Nodes, NodeExplanation{Node: n.ID, Reasons: reasons})
			continue
		}
		free.Add(n.FreeFor(&u.Request))
		here := 0
		var closes *resource.Reason
		for e.Fit+here < u.Members && closes == nil && n.MayFit(&u.Request) {
			if _, ok := take(state, n, &u.Request); !ok {
				break
			}
			here++
			relations.settleOn(n)
			closes = relations.refusal(n)
		}
		e.Fit += here
		// The reasons are those of one more member than fits.
		if reasons = state.Explain(n, &u.Request); closes != nil {
			reasons = []resource.Reason{*closes}
		}
		e.Nodes = append(e.Nodes, NodeExplanation{Node: n.ID, Fit: here, Reasons: reasons})
	}
	state.Rollback(mark)
	total := u.Request.Vector().Scaled(int64(u.Members))
	if u.Request.Cores > 0 {
		delete(total, resource.CPU) // what a core is charged; how many threads it takes is the node's
	}
	for _, name := range total.Names() {
		if total[name] > free[name] {
			e.Shortages = append(e.Shortages, resource.Reason{Code: resource.ReasonInsufficient, Resource: name, Want: total[name], Have: free[name]})
		}
	}
	slices.SortStableFunc(e.Shortages, func(a, b resource.Reason) int {
		return shortFraction(b) - shortFraction(a)
	})
	switch {
	case u.Topology == nil || e.Fit < u.Members:
	case u.joins():
		if e.Domain = explainJoin(state, &u); e.Domain != nil {
			e.Fit = 0
		}
	default:
		if fit, reason := explainDomains(state, &u); fit < u.Members {
			e.Fit, e.Domain = fit, reason
		}
	}
	return e
}

// shortFraction is how much of the want is missing, in thousandths.
func shortFraction(r resource.Reason) int {
	if r.Want == 0 {
		return 0
	}
	return int(r.Short() / max(1, r.Want/1000))
}
