package lead

import (
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// TestWhichFencesOfAgentsAreCollected: those of which this leader knows nothing.
func TestWhichFencesOfAgentsAreCollected(t *testing.T) {
	tx := transaction(1)
	for name, known := range map[string]func(*scene){
		"its unit is there":   func(x *scene) { x.work.Units["u"] = &work.Unit{Record: record.Unit{UID: "u"}} },
		"it is collected":     func(x *scene) { x.retired.terminal = []terminalRecord{{tx: tx}} },
		"a node has to tell":  func(x *scene) { x.retired.unheard[tx] = map[resource.NodeID]bool{"n1": true} },
		"it is taken over":    func(x *scene) { x.adoptions[tx] = &adoption{tx: tx} },
		"a Txn is in doubt":   func(x *scene) { x.retired.doubtful[tx] = true },
		"it is driven":        func(x *scene) { x.work.Attempts[tx] = &work.Attempt{} },
		"nothing is known":    func(*scene) {},
		"another unit exists": func(x *scene) { x.work.Units["v"] = &work.Unit{Record: record.Unit{UID: "v"}} },
	} {
		x := newScene(t)
		known(x)
		before := len(x.retired.terminal)
		x.Leader.handle(x.clock, nil, func() { x.retireFences([]Fenced{{tx, "u"}}) })
		want := name == "nothing is known" || name == "another unit exists"
		if got := len(x.retired.terminal) > before; got != want {
			t.Errorf("%s: collected %t", name, got)
		}
	}
}

func TestFencesOfAgentsAreLookedForOncePerRetention(t *testing.T) {
	x := newScene(t)
	for i, c := range []struct {
		after time.Duration
		looks bool
	}{{0, true}, {x.rules.RecordRetention - 1, false}, {1, true}} {
		x.clock = x.clock.Add(c.after)
		x.clear()
		if x.give(SecondPassed{}); x.did(post.ReadFenceKeys) != c.looks {
			t.Errorf("step %d: looks %t", i, !c.looks)
		}
	}
}
