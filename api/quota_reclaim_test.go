package api

import "testing"

func TestAReclaimInOneSentence(t *testing.T) {
	over := func(names ...string) (list []QuotaOverdraft) {
		for _, name := range names {
			list = append(list, QuotaOverdraft{Node: name})
		}
		return list
	}
	unit := func(kinds ...string) (list []QuotaReclaimed) {
		for _, kind := range kinds {
			list = append(list, QuotaReclaimed{Kind: kind})
		}
		return list
	}
	for want, r := range map[string]QuotaReclaim{
		"no node of quota tree T is over its quota: nothing has to end": {},
		"quota tree T: node a is over quota; 1 job would end":           {DryRun: true, Nodes: over("a"), Units: unit("Job")},
		"quota tree T: nodes a, b are over quota; 2 jobs and 1 allocation told to end": {
			Nodes: over("a", "b"), Units: unit("Job", "Allocation", "Job"),
		},
		"quota tree T: node a is over quota; what is ending already makes room enough": {Nodes: over("a")},
		"quota tree T: nodes a, b are over quota; 2 allocations told to end; node b stays so, held there by what must not be evicted": {
			Nodes: over("a", "b"), Units: unit("Allocation", "Allocation"), Remaining: over("b"),
		},
		"quota tree T: nodes a, b, c, d, e and 2 more are over quota; nodes a, b stay so, held there by what must not be evicted": {
			Nodes: over("a", "b", "c", "d", "e", "f", "g"), Remaining: over("a", "b"),
		},
	} {
		r.Tree = "T"
		if got := r.Summarize(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
