package projector_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/projector"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// worker is a grant whose member is measured.
type worker struct {
	id      resource.TxID
	unit    record.Unit
	tx      record.Tx
	counter int64 // milliseconds of processors
}

// work commits grants of one member on node n1.
func (w *world) work(n int) (all []*worker) {
	for i := range n {
		uid := fmt.Sprintf("w%d", i)
		k := &worker{id: resource.TxID(uid + ".2.1.00000000000000000000000000000001")}
		k.unit = record.Unit{
			UID: resource.UnitUID(uid), Kind: record.AllocUnit, Namespace: "ns", Name: uid, Tenant: "t", Phase: "Running", TxID: k.id, Members: 1, Created: stamp(), Started: stamp(),
			Document: []byte(`{"metadata":{"name":"` + uid + `"},"spec":{"resources":{"requests":{"cpu":"1"}}}}`),
		}
		k.tx = record.Tx{
			State: grant.RecordCommitted, Epoch: 2, Unit: k.unit.Path(), UnitUID: k.unit.UID, Tenant: "t", CommittedMillis: time.Now().UnixMilli(),
			Members: []record.Placement{{Node: "n1", Assignment: resource.Assignment{CPUs: []resource.CPUGrant{{ID: i, Milli: 1000}}}}},
		}
		w.write(record.MustPutRecord(k.unit.Path().Key(), k.unit), record.MustPutRecord(record.TxKey(k.id), k.tx))
		all = append(all, k)
	}
	return all
}

// report writes the status of the node, with counters that have grown.
func (w *world) report(workers []*worker) {
	status := record.NodeStatus{HeardAt: stamp()}
	for _, k := range workers {
		if k.tx.State == grant.RecordCommitted {
			k.counter += w.random.Int64N(15_000)
			status.Work = append(status.Work, record.MemberUse{Tx: k.id, Use: record.Use{CPUMillis: k.counter}})
		}
	}
	w.write(record.MustPutRecord(record.NodeStatusKey("n1"), status))
}

// endWork ends a grant with its whole use.
func (w *world) endWork(k *worker) {
	now := time.Now().UnixMilli()
	k.counter += w.random.Int64N(1000)
	k.tx.State, k.tx.EndingMillis, k.tx.EndedMillis, k.tx.Ended = grant.RecordReleased, now, now, stamp()
	k.tx.Outcome = &record.Outcome{Phase: "Succeeded", Exits: []record.Exit{{Reason: "Completed", Use: &record.Use{CPUMillis: k.counter}}}}
	w.write(record.MustPutRecord(record.TxKey(k.id), k.tx))
}

// TestTheMeasuredUseIsWhole: over kills of projectors and hours without the database, with
// the spool of one projector beside another, the slices of a grant cover it once and hold its
// whole use, most of it hour by hour.
func TestTheMeasuredUseIsWhole(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start("c1")
		w.start("c2")
		w.rest(20 * time.Second)
		workers := w.work(6)
		away := false
		for step := range 4 * 60 * 10 { // 10 hours
			w.rest(15 * time.Second)
			w.report(workers)
			switch w.random.IntN(200) {
			case 0:
				name := []string{"c1", "c2"}[w.random.IntN(2)]
				w.kill(name)
				w.start(name)
			case 1:
				if away = !away; away {
					w.history.SetAway(errAway)
				} else {
					w.history.SetAway(nil)
				}
			}
			if step%500 == 400 {
				w.endWork(workers[step/500])
			}
		}
		w.history.SetAway(nil)
		for _, k := range workers {
			if k.tx.State == grant.RecordCommitted {
				w.endWork(k)
			}
		}
		w.rest(5 * time.Minute)
		if r, err := projector.Verify(t.Context(), w.store, w.history, "test", 0); err != nil || len(r.Differences) > 0 {
			t.Errorf("error %v, differences %v", err, r.Differences)
		}
		measured := 0
		for _, k := range workers {
			measured += w.checkWork(t, k)
		}
		if measured < 100 {
			t.Errorf("%d slices have different uses", measured)
		}
	})
}

// checkWork returns the number of the slices of a grant.
func (w *world) checkWork(t *testing.T, k *worker) int {
	t.Helper()
	var all []history.Slice
	for _, s := range w.history.Rows().Slices {
		if s.Tx == k.id && s.To.After(s.From) {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b history.Slice) int { return cmp.Compare(a.From.UnixMilli(), b.From.UnixMilli()) })
	at, used := k.tx.CommittedMillis, int64(0)
	for _, s := range all {
		if s.From.UnixMilli() != at {
			t.Fatalf("%s: a slice from %s, want one from %s", k.id, s.From, time.UnixMilli(at).UTC())
		}
		if at = s.To.UnixMilli(); s.Measured != nil {
			used += *s.Measured
		}
	}
	if at != k.tx.EndedMillis || used != k.counter*1000 {
		t.Errorf("%s: slices up to %s hold %d ms, want %d up to %s", k.id, time.UnixMilli(at).UTC(), used/1000, k.counter, time.UnixMilli(k.tx.EndedMillis).UTC())
	}
	return len(all)
}
