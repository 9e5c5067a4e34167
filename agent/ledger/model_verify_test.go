package ledger_test

import (
	"maps"
	"reflect"
	"slices"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// verify makes the cheap comparisons, and now and then all.
func (w *world) verify(what any) {
	if w.replica.Hash() != w.ledger.Hash() || w.replica.Len() != w.ledger.Len() {
		w.t.Fatalf("%+v: the replica has %d grants with hash %x, the ledger %d with %x", what, w.replica.Len(), w.replica.Hash(), w.ledger.Len(), w.ledger.Hash())
	}
	for tx, want := range w.state {
		if g, _ := w.ledger.Lookup(tx); g.State != want {
			w.t.Fatalf("%+v: %s is %s, the model says %s", what, tx, g.State, want)
		}
	}
	if w.ledger.Len() != len(w.state) {
		w.t.Fatalf("%+v: %d grants, the model has %d", what, w.ledger.Len(), len(w.state))
	}
	if w.rng.IntN(24) == 0 {
		w.verifyAll(what)
	}
}

// verifyAll compares the free resources with the owners' maps, and the ledger
// with itself and with its replica.
func (w *world) verifyAll(what any) {
	if err := w.ledger.Check(); err != nil {
		w.t.Fatalf("%+v: %v", what, err)
	}
	view := w.ledger.Snapshot()
	got, err := offered(view)
	if err != nil {
		w.t.Fatalf("%+v: %v", what, err)
	}
	want := w.owners.free(w.hosts[w.host])
	if !maps.Equal(got, want) {
		w.t.Fatalf("%+v: on host %d, free (-owners +ledger): %s", what, w.host, cmp.Diff(want, got, cmp.AllowUnexported(thing{})))
	}
	for i, d := range w.hosts[w.host].Inventory().Devices {
		told, ok := w.health[d.UUID]
		if !ok {
			told.Health = d.Health
		}
		if g := view.GPUs[i]; g.Health != told.Health || g.Reason != told.Reason || view.Free.Unhealthy>>i&1 == 1 != !told.Health.Allocatable() {
			w.t.Fatalf("%+v: GPU %s is shown as %+v, it is %+v", what, d.UUID, g, told)
		}
	}
	w.same(what, view, w.replica.Snapshot())
	if diff := cmp.Diff(w.ledger.SnapshotEvents()[0], w.replica.SnapshotEvents()[0]); diff != "" {
		w.t.Fatalf("%+v: %s", what, diff)
	}
	if view.Heard > max(w.latest, resource.Revision(w.epoch)) {
		w.t.Fatalf("%+v: heard of revision %d, the store is at %d", what, view.Heard, w.latest)
	}
}

// same compares two views.
func (w *world) same(what any, want, got *ledger.View) {
	if sameView(want, got) {
		return
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(sameFree), cmp.Comparer(sameHost)); diff != "" {
		w.t.Fatalf("%v: %s", what, diff)
	}
}

// sameView is cmp.Diff without its words, and many times as fast; it may say
// no of equal times.
func sameView(a, b *ledger.View) bool {
	x, y := *a, *b
	x.Free, y.Free = nil, nil
	return sameFree(a.Free, b.Free) && a.Host == b.Host && reflect.DeepEqual(x, y)
}

func sameHost(a, b *fit.Host) bool { return a == b }

func sameFree(a, b *fit.Free) bool {
	return slices.Equal(a.CPU, b.CPU) && slices.Equal(a.Memory, b.Memory) && slices.Equal(a.Hugepages, b.Hugepages) &&
		slices.Equal(a.GPU, b.GPU) && slices.Equal(a.MIG, b.MIG) && a.Unhealthy == b.Unhealthy
}
