package coordinator

import (
	"testing"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/rpc"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/resource"
)

// ways are how a specification reaches the leader, once it is in the store.
var ways = map[string]func(*term, *node, record.NodeSpec, resource.Revision){
	"written or followed here": func(l *term, n *node, spec record.NodeSpec, rev resource.Revision) { l.takeSpec(n, spec, rev) },
	"read after a conflict": func(l *term, n *node, _ record.NodeSpec, _ resource.Revision) {
		l.turn(func() { l.readSpec(n, func() {}) })
		(<-l.inbox)()
	},
	"read after a registration elsewhere": func(l *term, n *node, _ record.NodeSpec, rev resource.Revision) {
		n.revision = rev
		l.turn(func() { l.learnSpec(n) })
		(<-l.inbox)()
	},
}

// Whichever way a specification reaches the leader, it wakes what waits where
// it changes which units may go to the node, and only there (Q9).
func TestASpecificationWakesWhatWaits(t *testing.T) {
	type change func(*record.NodeSpec)
	none := func(*record.NodeSpec) {}
	tainted := func(value string) change {
		return func(s *record.NodeSpec) {
			s.Taints = []record.Taint{{Key: "team", Value: value, Effect: "NoSchedule"}}
		}
	}
	cases := map[string]struct {
		before, after change
		wakes         bool
	}{
		"a taint is gone":             {tainted("vision"), none, true},
		"a taint has another value":   {tainted("vision"), tainted("nlp"), true},
		"the cordon is gone":          {func(s *record.NodeSpec) { s.Unschedulable = true }, none, true},
		"an agent's label is new":     {none, func(s *record.NodeSpec) { s.Labels = map[string]string{"zone": "b"} }, true},
		"an operator's label is gone": {func(s *record.NodeSpec) { s.OperatorLabels = map[string]string{"zone": "b"} }, none, true},
		"capacity is registered":      {func(s *record.NodeSpec) { s.Capacity, s.Allocatable = nil, nil }, none, true},
		"capacity is approved":        {func(s *record.NodeSpec) { s.Approved = &record.Capacity{} }, none, true},
		"an annotation is new":        {none, func(s *record.NodeSpec) { s.Annotations = map[string]string{"owner": "ml"} }, false},
		"a label is hidden": {
			func(s *record.NodeSpec) { s.OperatorLabels = map[string]string{"zone": "a"} },
			func(s *record.NodeSpec) {
				s.OperatorLabels, s.Labels = map[string]string{"zone": "a"}, map[string]string{"zone": "b"}
			}, false,
		},
	}
	for name, c := range cases {
		for way, deliver := range ways {
			t.Run(name+", "+way, func(t *testing.T) {
				l := loop()
				l.store, l.ctx = mem.Open(mem.Options{}), t.Context()
				l.commit = newCommitter(l.store, record.Compare{}, nil, l.post)
				n := partitioned(t)
				l.nodes["n1"], l.order = n, append(l.order, &n.view)
				write := func(c change) (record.NodeSpec, resource.Revision) {
					allocatable := n.view.Host.Allocatable()
					spec := record.NodeSpec{Allocatable: allocatable, Capacity: rpc.CapacityOf(n.host, allocatable)}
					c(&spec)
					r, err := l.store.Txn(t.Context(), record.Txn{Then: []record.Op{record.Put(record.NodeSpecKey("n1"), record.MustEncode(spec))}})
					if err != nil || !r.Succeeded {
						t.Fatalf("%+v, %v", r, err)
					}
					return spec, r.Revision
				}
				before, first := write(c.before)
				n.connected, n.revision = true, first
				n.setSpec(before, first)
				after, second := write(c.after)
				generation := l.generation
				deliver(l, n, after, second)
				if n.specRev != second {
					t.Fatalf("the leader has revision %d, want %d", n.specRev, second)
				}
				if woken := l.generation > generation; woken != c.wakes {
					t.Errorf("woken: %t, want %t", woken, c.wakes)
				}
				generation = l.generation
				if l.takeSpec(n, before, first); l.generation != generation || n.specRev != second {
					t.Error("an older specification counts")
				}
			})
		}
	}
}
