package projector_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/mem"
	"github.com/musterd/muster/coordinator/history/narrate"
	"github.com/musterd/muster/coordinator/history/projector"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	storemem "github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// world is a store in which units live, a history, and projectors.
type world struct {
	cluster string
	t       *testing.T
	random  *rand.Rand
	store   *storemem.Store
	history *mem.History
	live    []*life
	made    int
	running map[string]*running
	dirs    map[string]string
	// spoolBytes is the size of the spools; 0 is the default.
	spoolBytes int64
	// oracle follows every change of the store; it is the naive projector.
	oracle  *mem.History
	told    *narrate.Narrator
	changes <-chan record.Batch
}

type life struct {
	unit  record.Unit
	tx    record.Tx
	id    resource.TxID
	steps int
}

type running struct {
	p     *projector.Projector
	stop  context.CancelFunc
	ended chan struct{}
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{
		t: t, random: rand.New(rand.NewPCG(seed, 0)), store: storemem.Open(storemem.Options{}), history: mem.New(), running: map[string]*running{},
		dirs: map[string]string{}, oracle: mem.New(), told: narrate.New("test"), cluster: "test",
	}
	w.changes = w.store.Watch(t.Context(), record.Root, store.WatchOptions{From: 1})
	t.Cleanup(func() {
		for name := range w.running {
			w.kill(name)
		}
	})
	return w
}

// start runs a projector, which has the spool of the same name as before.
func (w *world) start(name string) *projector.Projector {
	w.t.Helper()
	if w.dirs[name] == "" {
		w.dirs[name] = w.t.TempDir()
	}
	r := &running{ended: make(chan struct{})}
	r.p = projector.New(projector.Config{Name: name, Cluster: w.cluster, Store: w.store, Warehouse: w.history, SpoolDir: w.dirs[name], SpoolBytes: w.spoolBytes, Logger: logger(w.t, name)})
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() {
		defer close(r.ended)
		if err := r.p.Run(ctx); err != nil {
			w.t.Errorf("projector %s: %v", name, err)
		}
	}()
	w.running[name] = r
	return r.p
}

func (w *world) kill(name string) {
	r := w.running[name]
	delete(w.running, name)
	r.stop()
	<-r.ended
}

func (w *world) write(ops ...record.Op) {
	w.t.Helper()
	result, err := w.store.Txn(w.t.Context(), record.Txn{Then: ops})
	if err != nil || !result.Succeeded {
		w.t.Fatal(result, err)
	}
}

// step has a unit take the next step of its life, or begins one.
func (w *world) step() {
	if len(w.live) < 5 || w.random.IntN(4) == 0 && len(w.live) < 30 {
		w.made++
		uid := fmt.Sprintf("u%d", w.made)
		u := record.Unit{
			UID: resource.UnitUID(uid), Kind: record.AllocUnit, Namespace: "ns", Name: uid, Tenant: "t", Phase: "Pending", Members: 1, Created: stamp(),
			Document: []byte(`{"metadata":{"name":"` + uid + `"},"spec":{"resources":{"requests":{"cpu":"2"}}}}`),
		}
		w.write(record.MustPutRecord(u.Path().Key(), u), record.MustPutRecord(u.Order().Key(), record.Order{UnitUID: u.UID}))
		w.live = append(w.live, &life{unit: u})
		return
	}
	at := w.random.IntN(len(w.live))
	l := w.live[at]
	l.steps++
	u, key := &l.unit, l.unit.Path().Key()
	now := time.Now().UnixMilli()
	switch l.steps {
	case 1:
		w.write(record.MustPutRecord(u.Order().Key(), record.Order{UnitUID: u.UID, Waiting: &record.Waiting{Code: "WaitingForResources", SinceMillis: now}}))
	case 2:
		l.id = resource.TxID(fmt.Sprintf("%s.2.1.00000000000000000000000000000001", u.UID))
		l.tx = record.Tx{
			State: grant.RecordCommitted, Epoch: 2, Unit: u.Path(), UnitUID: u.UID, Tenant: "t", CommittedMillis: now,
			Members: []record.Placement{{Node: "n1", Assignment: resource.Assignment{CPUs: []resource.CPUGrant{{ID: w.random.IntN(64), Milli: 1000}}}}},
		}
		u.Phase, u.TxID, u.Started = "Running", l.id, stamp()
		w.write(record.MustPutRecord(key, *u), record.MustPutRecord(record.TxKey(l.id), l.tx), record.Delete(u.Order().Key()))
	case 3:
		w.write(record.MustPutRecord(record.ReadyKey(l.id), record.Ready{AtMillis: now}))
	case 4:
		u.Phase, l.tx.State, l.tx.EndingMillis = "Terminating", grant.RecordReleasing, now
		w.write(record.MustPutRecord(key, *u), record.MustPutRecord(record.TxKey(l.id), l.tx))
	case 5:
		l.tx.State, l.tx.EndedMillis, l.tx.Ended = grant.RecordReleased, now, stamp()
		w.write(record.Delete(key), record.MustPutRecord(record.TxKey(l.id), l.tx))
	default:
		w.write(record.Delete(record.TxKey(l.id)), record.Delete(record.ReadyKey(l.id)))
		w.live = slices.Delete(w.live, at, at+1)
	}
}

func stamp() string { return time.Now().UTC().Format(time.RFC3339) }

// live lets units live for a time, a step every 100 ms.
func (w *world) pass(d time.Duration) {
	for until := time.Now().Add(d); time.Now().Before(until); {
		w.step()
		time.Sleep(100 * time.Millisecond)
	}
}

// rest lets nothing happen for a time.
func (w *world) rest(d time.Duration) { time.Sleep(d) }

// compact forgets the store's past before the position, as leaders do.
func (w *world) compact() {
	w.t.Helper()
	if err := w.store.Compact(w.t.Context(), w.position().Revision); err != nil {
		w.t.Fatal(err)
	}
}

// judge holds that the history is what a narrator makes that has missed nothing.
func (w *world) judge() {
	w.t.Helper()
	for {
		select {
		case b := <-w.changes:
			if b.Err != nil {
				w.t.Fatal(b.Err)
			}
			w.told.Follow(b)
			continue
		case <-time.After(time.Second): // that was all
		}
		break
	}
	if err := w.oracle.Write(w.t.Context(), w.told.Take()); err != nil {
		w.t.Fatal(err)
	}
	if diff := cmp.Diff(plain(w.oracle.Rows()), plain(w.history.Rows())); diff != "" {
		w.t.Fatalf("(-want +got):\n%s", diff)
	}
}

// plain leaves out what the oracle does not make.
func plain(r mem.Rows) mem.Rows {
	r.Slots, r.Slices = nil, nil
	maps.DeleteFunc(r.Units, func(_ string, k mem.Kept[history.Unit]) bool { return k.Reverted })
	maps.DeleteFunc(r.Grants, func(_ string, k mem.Kept[history.Grant]) bool { return k.Reverted })
	maps.DeleteFunc(r.Waits, func(_ string, k mem.Kept[history.Wait]) bool { return k.Reverted })
	return r
}

// position is the store's key.
func (w *world) position() record.HistoryPosition {
	w.t.Helper()
	kv, found, _, err := w.store.Get(w.t.Context(), record.HistoryPositionKey)
	if err != nil || !found {
		w.t.Fatal(found, err)
	}
	p, err := record.Decode[record.HistoryPosition](kv.Key, kv.Value)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

func clone(lives []*life) (list []*life) {
	for _, l := range lives {
		c := *l
		list = append(list, &c)
	}
	return list
}

// reopen goes on with the store that was restored: the oracle has seen nothing else.
func (w *world) reopen() {
	_, _, _, err := w.store.Get(w.t.Context(), record.ClusterKey)
	var back *record.WentBackError
	if errors.As(err, &back) {
		w.store.Acknowledge(back)
	}
	w.oracle, w.told = mem.New(), narrate.New("test")
	w.changes = w.store.Watch(w.t.Context(), record.Root, store.WatchOptions{From: 1})
}
