package lead

import (
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/admission"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// ways are how a specification reaches the leader, once it is in the store.
var ways = map[string]func(*Leader, *node, record.KV, record.NodeSpec){
	"written or followed here": func(l *Leader, n *node, kv record.KV, spec record.NodeSpec) { l.takeSpec(n, spec, kv.ModRev) },
	"read after a conflict": func(l *Leader, n *node, kv record.KV, _ record.NodeSpec) {
		answerRead(l, kv, func() { l.readSpec(n, func() {}) })
	},
	"read after a registration elsewhere": func(l *Leader, n *node, kv record.KV, _ record.NodeSpec) {
		n.revision = kv.ModRev
		answerRead(l, kv, func() { l.learnSpec(n) })
	},
}

// answerRead answers the reads that ask leaves behind with what the store has.
func answerRead(l *Leader, kv record.KV, ask func()) {
	for _, e := range l.handle(l.post.Now(), nil, ask) {
		if e.Kind == post.ReadKey && e.Key == kv.Key {
			l.Apply(l.post.Now(), ReadAnswer{e.Token, kv, true, kv.ModRev}, nil)
		}
	}
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
				l, revision := NewLeader(Beginning{Epoch: 1, Now: time.Now()}), resource.Revision(1)
				n := partitioned(t)
				l.nodes["n1"], l.state, l.occupancy = n, n.state, n.occupancy
				written := func(c change) (record.NodeSpec, record.KV) {
					allocatable := n.view.Host.Allocatable()
					spec := record.NodeSpec{Allocatable: allocatable, Capacity: admission.CapacityOf(n.host, allocatable)}
					c(&spec)
					revision++
					return spec, record.KV{Key: record.NodeSpecKey("n1"), Value: record.MustEncode(spec), ModRev: revision}
				}
				before, first := written(c.before)
				n.connected, n.revision = true, first.ModRev
				n.setSpec(before, first.ModRev)
				l.setReady(n)
				after, second := written(c.after)
				l.state.TakeGrown()
				deliver(l, n, second, after)
				if n.specRev != second.ModRev {
					t.Fatalf("the leader has revision %d, want %d", n.specRev, second.ModRev)
				}
				if n.view.Grown() != c.wakes {
					t.Errorf("the node has grown: %t, want %t", n.view.Grown(), c.wakes)
				}
				l.state.TakeGrown()
				if l.takeSpec(n, before, first.ModRev); n.view.Grown() || n.specRev != second.ModRev {
					t.Error("an older specification counts")
				}
			})
		}
	}
}
