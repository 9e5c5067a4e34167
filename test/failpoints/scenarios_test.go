package failpoints_test

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/test/rig"
)

// scenarios take a cluster of two agents and two coordinators, of which c1
// leads, through what clusters do. Each begins after the nodes are ready, and
// between them they take every step there is.
var scenarios = map[string]func(*client){
	"plain": func(w *client) {
		w.create(rig.Submission{Name: "a", GPUs: 4})
		w.runs("a")
		w.create(rig.Submission{Name: "g", GPUs: 4, Members: 2, Gang: 2})
		w.runs("g")
		w.end("g")
		w.end("a")
		pass(2 * retention)
	},
	"queue": func(w *client) {
		w.create(rig.Submission{Name: "f", GPUs: 8, Members: 2, Gang: 2})
		w.runs("f")
		w.create(rig.Submission{Name: "b", GPUs: 8})
		w.create(rig.Submission{Name: "c", GPUs: 8})
		w.create(rig.Submission{Name: "j", GPUs: 8, Members: 3, Gang: 2})
		w.end("j")
		w.end("c")
		w.end("f")
		w.runs("b")
	},
	"an agent that is silent once": func(w *client) {
		var lost atomic.Bool
		w.c.Tap(func(m rig.Message) bool { return m.ToAgent.GetReserve() == nil || m.Node != "n2" || lost.Swap(true) })
		w.create(rig.Submission{Name: "g", GPUs: 8, Members: 2, Gang: 2})
		w.runs("g")
		w.c.Tap(nil)
	},
	"a leader that dies after the votes": func(w *client) {
		w.create(rig.Submission{Name: "a", GPUs: 2})
		w.runs("a")
		k := w.c.Leader()
		choose, _ := rig.Once(rig.CrashBefore, func(t record.Txn) bool { return rig.Writes(t, grant.RecordCommitted) })
		k.Gate.OnTxn(choose)
		w.create(rig.Submission{Name: "g", GPUs: 6, Members: 2, Gang: 2})
		w.runs("g")
	},
	"a hand-over": func(w *client) {
		w.create(rig.Submission{Name: "a", GPUs: 8})
		w.runs("a")
		w.c.Leader().Stop()
		w.end("a")
	},
	"a wiped disk and a power cut": func(w *client) {
		w.create(rig.Submission{Name: "g", GPUs: 8, Members: 2, Gang: 2})
		w.runs("g")
		w.c.Agent("n1").Replace()
		w.c.Agent("n2").PowerCycle()
		w.runs("g")
	},
	"a cordon": func(w *client) {
		for _, cordoned := range []bool{true, false} {
			w.insist("cordon n2", func(ctx context.Context, k *rig.Coordinator) error {
				_, err := k.SetUnschedulable(ctx, "n2", cordoned)
				return err
			})
			pass(30 * time.Second) // what had no answer has landed, or never will
		}
	},
	"an eviction by an operator": func(w *client) {
		w.create(rig.Submission{Name: "g", GPUs: 8, Members: 2, Gang: 2})
		w.runs("g")
		grace := int64(5)
		w.insist("evict g-0", func(ctx context.Context, k *rig.Coordinator) error {
			_, _, err := k.Evict(ctx, lead.EvictOptions{Namespace: rig.Namespace, Name: "g-0", GraceSeconds: &grace})
			if rig.Code(err) == 409 || rig.Code(err) == 404 {
				return nil // it has left already
			}
			return err
		})
		pass(2 * time.Second)
		w.runs("g") // it goes back to the queue
	},
	"a suspension": func(w *client) {
		w.create(rig.Submission{Name: "g", GPUs: 8, Members: 2, Gang: 2})
		w.runs("g")
		w.patch("g", `{"suspend":true}`)
		w.stops("g")
		w.patch("g", `{"suspend":false}`)
		w.runs("g")
	},
	"a job that is resized": func(w *client) {
		w.create(rig.Submission{Name: "g", GPUs: 2, Members: 2, Gang: 2})
		w.runs("g")
		pass(2 * time.Second) // what is written of g for readers would share the patch's Txn
		w.patch("g", `{"parallelism":3}`)
		w.objects["g"].submission.Members = 3
		w.runs("g")
		w.patch("g", `{"parallelism":2}`)
		w.objects["g"].submission.Members = 2
		w.c.Eventually("g has two members", func() bool {
			units, _, err := w.c.Store.Range(w.t.Context(), record.UnitsPrefix, store.RangeOptions{})
			return err == nil && len(units) == 1 // the gang's
		})
		w.runs("g")
	},
	"a drain": func(w *client) {
		w.create(rig.Submission{Name: "g", GPUs: 4, Members: 2, Gang: 2})
		w.runs("g")
		grace := int64(1)
		w.insist("drain n1", func(ctx context.Context, k *rig.Coordinator) error {
			_, err := k.DrainNode(ctx, "n1", api.DrainOptions{GracePeriodSeconds: &grace})
			return err
		})
		w.runs("g")            // on n2
		pass(30 * time.Second) // what had no answer has landed, or never will
		w.insist("uncordon n1", func(ctx context.Context, k *rig.Coordinator) error {
			_, err := k.SetUnschedulable(ctx, "n1", false)
			return err
		})
	},
	"a dead node": func(w *client) {
		w.create(rig.Submission{Name: "g", GPUs: 8, Members: 2, Gang: 2})
		w.runs("g")
		w.c.Agent("n2").Crash()
		w.insist("fence n2", func(ctx context.Context, k *rig.Coordinator) error {
			_, err := k.FenceNode(ctx, "n2", api.FenceOptions{ConfirmDead: true, Force: true})
			if err != nil && strings.Contains(err.Error(), "it is back") {
				return nil
			}
			return err
		})
		w.c.Agent("n2").PowerCycle()
		w.end("g")
	},
	"a deleted node": func(w *client) {
		w.create(rig.Submission{Name: "g", GPUs: 8, Members: 2, Gang: 2})
		w.runs("g")
		w.end("g")
		w.c.Eventually("g is gone", func() bool {
			units, _, err := w.c.Store.Range(w.t.Context(), record.UnitsPrefix, store.RangeOptions{})
			return err == nil && len(units) == 0
		})
		w.c.Agent("n2").Crash()
		w.c.Eventually("n2 is not heard", func() bool {
			_, heard, _, err := w.c.Store.Get(w.t.Context(), record.NodeLeaseKey("n2"))
			return err == nil && !heard
		})
		w.insist("delete n2", func(ctx context.Context, k *rig.Coordinator) error {
			_, err := k.DeleteNode(ctx, "n2", api.Preconditions{})
			if rig.Code(err) == 404 || err != nil && strings.Contains(err.Error(), "is alive") {
				return nil // it was deleted without an answer, or is back already
			}
			return err
		})
		w.c.Agent("n2").Start()
		w.create(rig.Submission{Name: "h", GPUs: 8, Members: 2, Gang: 2})
		w.runs("h")
	},
	"a preemption": func(w *client) {
		w.create(rig.Submission{Name: "low", GPUs: 8, Members: 2, Gang: 2, Priority: 1})
		w.runs("low")
		w.create(rig.Submission{Name: "high", GPUs: 6, Members: 2, Gang: 2, Priority: 9, Policy: "PreemptLowerPriority"})
		w.runs("high")
		w.end("high")
		w.runs("low")
	},
	"a claim-back": func(w *client) {
		w.tree("Lab", "all nil 16", "a all 8", "b all 8")
		w.create(rig.Submission{Name: "guest", GPUs: 8, Members: 2, Gang: 2, Quota: &api.QuotaDemand{Groups: map[string]string{"Lab": "b"}}})
		w.runs("guest")
		w.create(rig.Submission{Name: "owner", GPUs: 4, Members: 2, Gang: 2, Quota: &api.QuotaDemand{Groups: map[string]string{"Lab": "a"}}})
		w.runs("owner")
	},
	"an eviction that is asked for at a node": func(w *client) {
		w.create(rig.Submission{Name: "g", GPUs: 8, Members: 2, Gang: 2})
		w.runs("g")
		w.c.Eventually("an agent answers", func() bool {
			ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
			defer cancel()
			_, err := w.c.Evict(ctx, "n2", rig.Namespace+"/g-1", 5*time.Second)
			return err == nil // a refusal too: it has left already
		})
		pass(2 * time.Second)
		w.runs("g") // it goes back to the queue
	},
	"a store that lost what runs": func(w *client) {
		w.restore(func() {
			w.create(rig.Submission{Name: "lost", GPUs: 4, Members: 2, Gang: 2})
			w.runs("lost")
		})
		w.reconcile("n1", api.ReconcileAdopt)
		w.reconcile("n2", api.ReconcileAdopt)
		w.runs("kept")
		w.runs("lost")
	},
	"a store in which is back what had ended": func(w *client) {
		w.create(rig.Submission{Name: "back", GPUs: 2})
		w.runs("back")
		w.restore(func() {
			w.end("back")
			// One member on each node: an agent learns the revision of the store from a Commit,
			// and not from the Release of what has ended.
			w.create(rig.Submission{Name: "lost", GPUs: 5, Members: 2, Gang: 2})
			w.runs("lost")
		})
		w.objects["lost"].ended = true // an operator's word
		w.reconcile("n2", api.ReconcileRelease)
		w.reconcile("n1", api.ReconcileRelease)
		w.runs("kept")
	},
	"a node that is assumed dead": func(w *client) {
		const limit = time.Minute
		w.optIn("n2", limit)
		w.c.Eventually("the store knows", func() bool { return w.identity("n2").AssumeDeadMillis > 0 })
		w.c.AwaitReady(2)
		w.create(rig.Submission{Name: "g", GPUs: 4, Members: 2, Gang: 2})
		w.create(rig.Submission{Name: "h", GPUs: 4, Members: 2, Gang: 2})
		w.runs("g")
		w.runs("h") // one of them at least has a member on n2
		w.watch(func(s rig.Step) {
			if assigned := w.c.Agent("n2").Assigned(); s.Name == "txn assumed death" && len(assigned) > 0 {
				w.t.Errorf("n2 counts as dead, and %v may run there", assigned)
			}
		})
		w.apart("n2", true)
		w.c.Eventually("n2 is dead", func() bool { return w.identity("n2").ConfirmedDead })
		w.end("h")
		w.runs("g") // on n1
		w.apart("n2", false)
	},
	"a promise that its leader forgot": func(w *client) {
		w.promise("n2")
		w.create(rig.Submission{Name: "g", GPUs: 8, Members: 2, Gang: 2})
		w.runs("g")
	},
	"a journal that fails": func(w *client) {
		w.fail("journal append")
		w.create(rig.Submission{Name: "g", GPUs: 8, Members: 2, Gang: 2})
		w.runs("g")
	},
	"a creation without an answer": func(w *client) {
		w.create(rig.Submission{Name: "f", GPUs: 8, Members: 2, Gang: 2})
		w.runs("f")
		k := w.c.Leader()
		choose, _ := rig.Once(rig.Lost, func(t record.Txn) bool { return rig.Touches(t, record.OrderPrefix) })
		k.Gate.OnTxn(choose)
		w.create(rig.Submission{Name: "b", GPUs: 8})
	},
	"an answer that is lost": func(w *client) {
		var lost atomic.Bool
		w.c.Tap(func(m rig.Message) bool { return m.FromAgent.GetReply() == nil || m.Node != "n2" || lost.Swap(true) })
		w.create(rig.Submission{Name: "g", GPUs: 8, Members: 2, Gang: 2})
		w.runs("g")
		w.c.Tap(nil)
	},
}

// retention is how long terminal records are kept here.
const retention = 10 * time.Second
