package lead

import (
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// preemptor begins b, which needs the node of a, of lower priority.
func (x *scene) preemptor() (a, b *work.Unit) {
	a = x.running("a", 8, "")
	x.running("c", 8, `"priority":9,`)
	return a, x.accepted("b", 8, preempting)
}

// claimed is preemptor where the victim has notice.
func (x *scene) claimed() (a, b *work.Unit) {
	a, b = x.preemptor()
	x.settles(b, grant.Waiting)
	return a, b
}

// TestEachWriteComparesWhatItWasJudgedBy: a write lands only if all is as it was
// when the leader decided. Each case leads to one write.
func TestEachWriteComparesWhatItWasJudgedBy(t *testing.T) {
	ends := txn.ReleaseAsked{GraceSeconds: 1, Reason: "UserRequested"}
	cases := map[string]struct {
		lead func(*scene)
		want string
	}{
		"the commit of a new allocation": {
			func(x *scene) { x.says(x.submit("a", 2, ""), grant.Reserved) },
			"nodes/n1/identity unchanged, tx/a absent, units/default/alloc/a/0 absent",
		},
		"the commit of a new job": {
			func(x *scene) { x.says(x.submitJob("a", 2, 1), grant.Reserved) },
			"jobs/default/a absent, nodes/n1/identity unchanged, tx/a absent, units/default/job/a/0 absent",
		},
		"the commit of a unit that has waited": {
			func(x *scene) {
				x.running("c", 8, "")
				x.running("d", 8, "")
				a := x.accepted("a", 8, "")
				x.finish(func() { x.end(x.work.Units["default/alloc/c/0"], ends) })
				x.settles(x.work.Units["default/alloc/c/0"], grant.Tombstone)
				x.says(a, grant.Reserved)
			},
			"nodes/n1/identity unchanged, tx/a absent, units/default/alloc/a/0 unchanged",
		},
		"a new unit that waits": {
			func(x *scene) { x.submit("a", 9, "") },
			"tx/of nobody absent, units/default/alloc/a/0 absent",
		},
		"a job of several units": {
			func(x *scene) { x.submitJob("a", 3, 1) },
			"jobs/default/a absent, tx/of nobody absent, units/default/job/a/0 absent, units/default/job/a/1 absent",
		},
		"the fence of an attempt": {
			func(x *scene) { u := x.submit("a", 2, ""); x.do(func() { x.end(u, ends) }) },
			"tx/a absent",
		},
		"a release": {
			func(x *scene) { a := x.running("a", 2, ""); x.do(func() { x.end(a, ends) }) },
			"tx/a unchanged",
		},
		"the end of a release": {
			func(x *scene) {
				a := x.running("a", 2, "")
				x.finish(func() { x.end(a, ends) })
				x.says(a, grant.Tombstone)
			},
			"tx/a unchanged",
		},
		"the end of what a dead node held": {
			func(x *scene) {
				x.running("a", 2, "")
				x.dies("n1")
				x.answer() // EVICTING
				x.answer() // RELEASING
			},
			"nodes/n1/identity unchanged, tx/a unchanged",
		},
		"an eviction for nobody": {
			func(x *scene) {
				a := x.running("a", 2, "")
				x.do(func() { x.evict(a, txn.EvictAsked{Reason: "drained"}) })
			},
			"tx/a unchanged",
		},
		"the evictions of a preemptor": {
			func(x *scene) { _, b := x.preemptor(); x.says(b, grant.Waiting) },
			"nodes/n1/identity unchanged, tx/a unchanged, tx/b absent, units/default/alloc/a/0 unchanged",
		},
		"the commit of a preemptor": {
			func(x *scene) {
				a, b := x.claimed()
				x.says(a, grant.Tombstone)
				x.says(b, grant.Reserved)
			},
			"nodes/n1/identity unchanged, tx/a unchanged, tx/b absent, units/default/alloc/b/0 unchanged",
		},
		"the wish to end a victim": {
			func(x *scene) { a, _ := x.claimed(); x.do(func() { x.end(a, ends) }) },
			"units/default/alloc/a/0 unchanged",
		},
		"the end of a unit that waits": {
			func(x *scene) { a := x.submit("a", 9, ""); x.answers(); x.do(func() { x.end(a, ends) }) },
			"units/default/alloc/a/0 unchanged",
		},
		"the end of a job": {
			func(x *scene) {
				a := x.submitJob("a", 17, 1)
				x.answers()
				x.settles(a, grant.No)
				x.do(func() {
					x.cancelJob(a.Job, record.Cancellation{Reason: ends.Reason, GraceSeconds: ends.GraceSeconds, Remove: true}, func(*api.Status) {})
				})
				for x.compares() != "jobs/default/a unchanged" || len(x.asked[0].Write.Ops) == 1 {
					x.answer()
				}
			},
			"jobs/default/a unchanged",
		},
		"a promise that nobody drives": {
			func(x *scene) {
				x.hear(grant.Occupied{Node: "n1", Occupancy: grant.Occupancy{Grants: []grant.Grant{{Tx: transaction(1), State: grant.Waiting}}}})
			},
			"tx/of nobody absent",
		},
		"the fence of a node": {
			func(x *scene) {
				x.hear(grant.Disconnected{Node: "n1"})
				x.give(ClientRequest{1, FenceNode{Node: "n1"}})
				x.answer()
				x.answer()
			},
			"nodes/n1/identity unchanged, nodes/n1/lease absent",
		},
		"the fence of a node that is heard": {
			func(x *scene) {
				x.put(record.NodeLeaseKey("n1"), record.MustEncode(record.NodeLease{Coordinator: "c2"}))
				x.give(ClientRequest{1, FenceNode{"n1", api.FenceOptions{Force: true}}})
				x.answer()
				x.answer()
			},
			"nodes/n1/identity unchanged, nodes/n1/lease unchanged",
		},
		"the deletion of a node": {
			func(x *scene) {
				x.hear(grant.Disconnected{Node: "n1"})
				x.give(ClientRequest{1, DeleteNode{Node: "n1"}})
				x.tells("n1", record.Enrolled{Keys: []string{"k"}})
			},
			"certificate unchanged, nodes/n1/identity unchanged, nodes/n1/lease absent, nodes/n1/spec unchanged",
		},
		"a cordon": {
			func(x *scene) {
				yes := true
				x.give(ClientRequest{1, PatchNode{"n1", api.NodePatch{Unschedulable: &yes}}})
			},
			"nodes/n1/spec unchanged",
		},
		"an isolation": {
			func(x *scene) { x.hear(grant.Disconnected{Node: "n1", Broken: true}) },
			"nodes/n1/spec unchanged",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			x := newScene(t)
			c.lead(x)
			if got := x.compares(); got != c.want {
				t.Errorf("the write compares\n%s, want\n%s", got, c.want)
			}
		})
	}
}

// TestOnlyAFenceIsWrittenInAnyEpoch: a leader that has lost its key may still say
// that a transaction is ABORTED, and nothing else.
func TestOnlyAFenceIsWrittenInAnyEpoch(t *testing.T) {
	x := newScene(t)
	a := x.submit("a", 2, "")
	x.says(a, grant.Reserved)
	if x.asked[0].Write.AnyEpoch {
		t.Error("a commit is")
	}
	x = newScene(t)
	a = x.submit("a", 2, "")
	if x.says(a, grant.No); !x.asked[0].Write.AnyEpoch {
		t.Error("a fence is not")
	}
}

// TestARecordIsMadeAgainOnlyOfWhatWasRead: the same of a reconciliation.
func TestARecordIsMadeAgainOnlyOfWhatWasRead(t *testing.T) {
	for mode, want := range map[string]string{
		api.ReconcileAdopt:   "nodes/n1/identity unchanged, nodes/n1/spec unchanged, tx/of nobody absent, tx/of nobody absent, units/default/alloc/lost/0 absent",
		api.ReconcileRelease: "tx/of nobody absent",
	} {
		p := newPlay(t)
		p.run(`
			> n1 connects in quarantine: lost 0
			> ` + mode + ` n1
			> the store answers
			> the store answers
			> n1 tells all
			> the store answers
			> the store answers
		`)
		x := &scene{Leader: p.l, t: t, kv: p.store, asked: p.questions}
		if got := x.compares(); got != want {
			t.Errorf("to %s compares\n%s, want\n%s", mode, got, want)
		}
	}
}

// dies has a node leave and fenced as dead.
func (x *scene) dies(id resource.NodeID) {
	x.t.Helper()
	x.hear(grant.Disconnected{Node: id})
	x.give(ClientRequest{99, FenceNode{id, api.FenceOptions{ConfirmDead: true}}})
	for range 3 {
		x.answer()
	}
}

// tells answers the reading of a node's keys.
func (x *scene) tells(id resource.NodeID, certificate record.Enrolled) {
	x.t.Helper()
	e := x.next()
	var kvs []record.KV
	for _, key := range []string{record.NodeIdentityKey(id), record.NodeLeaseKey(id), record.NodeSpecKey(id)} {
		kv, found, _, err := x.kv.Get(x.t.Context(), key)
		if err != nil {
			x.t.Fatal(err)
		}
		if found {
			kvs = append(kvs, kv)
		}
	}
	kv := record.KV{Key: "certificate", Value: record.MustEncode(certificate)}
	kv.ModRev = x.put(kv.Key, kv.Value)
	x.give(NodeReadAnswer{e.Token, kvs, kv, nil})
}
