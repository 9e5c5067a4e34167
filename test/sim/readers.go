package sim

import (
	"iter"
	"maps"
	"slices"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/shown"
)

// checkReaders compares the objects that the leader shows with those that every
// coordinator makes of the keys alone (ADR 33), field by field. The place in the
// queue is no fact: it is counted at the read.
func (s *Sim) checkReaders(t *term) {
	keys := objects.New()
	for key := range s.store.keys {
		keys.Touch(key)
	}
	must(keys.Refresh(s.store.keys, s.store.rev, t.now()))
	led := t.Show()
	s.differ(allocationsOf(led), allocationsOf(keys.View(s.store.rev, t.now())))
	s.differ(jobsOf(led), jobsOf(keys.View(s.store.rev, t.now())))
	if len(s.failures) == 0 {
		s.checkTrees(t)
	}
}

// checkTrees compares where the leader counts units with the nodes in the keys, once the
// last moves are written (ADR 46). An attempt of the tick counts for the leader alone.
func (s *Sim) checkTrees(t *term) {
	began := len(t.began)
	if t.tick(); len(t.began) > began {
		return
	}
	led, status := t.ShowTree(treeName)
	if status != nil {
		s.fail("readers", "the leader shows no tree: %s", status.Message)
		return
	}
	keys := objects.New()
	for key := range s.store.keys {
		keys.Touch(key)
	}
	must(keys.Refresh(s.store.keys, s.store.rev, t.now()))
	read, found, err := keys.View(s.store.rev, t.now()).Tree(treeName)
	if must(err); !found {
		s.fail("readers", "the keys have no tree")
		return
	}
	if diff := cmp.Diff(unordered(led.Status), unordered(read.Status)); diff != "" {
		s.fail("readers", "tree %s (-leader +keys):\n%s", treeName, diff)
	}
	s.stats["trees compared"]++
}

// unordered is the status of a tree without the order of the consumers of a node.
func unordered(s api.QuotaTreeStatus) api.QuotaTreeStatus {
	s.Nodes = slices.Clone(s.Nodes)
	for i := range s.Nodes {
		s.Nodes[i].Consumers = slices.Sorted(slices.Values(s.Nodes[i].Consumers))
	}
	return s
}

// differ fails where the leader and the keys show different objects.
func (s *Sim) differ(led, read map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(led)) {
		if diff := cmp.Diff(led[name], read[name]); diff != "" {
			s.fail("readers", "%s (-leader +keys):\n%s", name, diff)
			return
		}
	}
	s.stats["objects compared"] += len(led)
	if len(led) != len(read) {
		s.fail("readers", "the leader shows %d objects, the keys have %d", len(led), len(read))
	}
}

// units are allocations and jobs, as of a lead.Shown or of a view of the keys.
type units interface {
	Member(position string) (shown.Member, bool)
	Members(namespace string) iter.Seq[string]
	Job(position string) (shown.Job, bool)
	Jobs(namespace string) iter.Seq[string]
}

// allocationsOf are all allocations, by name.
func allocationsOf(i units) map[string]any {
	all := map[string]any{}
	for position := range i.Members("") {
		m, _ := i.Member(position)
		a := m.Show()
		a.Status.QueuePosition = 0
		a.Status.Assignment = nil // hosts of the simulation register no topology
		all[position] = a
	}
	return all
}

// jobsOf are all jobs, by name.
func jobsOf(i units) map[string]any {
	all := map[string]any{}
	for position := range i.Jobs("") {
		j, _ := i.Job(position)
		o := j.Show()
		o.Status.QueuePosition = 0
		all[position] = o
	}
	return all
}
