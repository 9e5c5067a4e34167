package cost_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/events"
	"github.com/musterd/muster/coordinator/history/narrate"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/ratchet"
)

// began is the instant of the first write of each life.
var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// records are those of a running allocation of a GPU.
func records(i int) (record.Unit, record.Tx) {
	name, tx := fmt.Sprintf("a%06d", i), resource.TxID(fmt.Sprintf("u%06d.1.1.%032x", i, i))
	u := record.Unit{
		UID: resource.UnitUID(fmt.Sprintf("u%06d", i)), Kind: record.AllocUnit, Namespace: "team", Name: name, Tenant: "team", Queue: "default",
		Phase: "Running", Members: 1, Sequence: record.Sequence{Epoch: 1, Counter: 1_000_000 + uint64(i)}, TxID: tx, Created: "2026-01-02T03:04:05Z", Started: "2026-01-02T03:04:10Z",
		Document: fmt.Appendf(nil, `{"metadata":{"name":%q},"spec":{"resources":{"requests":{"nvidia.com/gpu":"1","cpu":"4","memory":"16Gi"}}}}`, name),
		Made:     &record.Actor{ID: fmt.Sprintf("946684800000-%06d", i), Person: "ada", RequestID: fmt.Sprintf("r%06d", i)},
	}
	held := record.Tx{State: grant.RecordCommitted, Epoch: 1, Unit: u.Path(), UnitUID: u.UID, Tenant: u.Tenant, Committed: "2026-01-02T03:04:10Z", CommittedMillis: began.UnixMilli() + 5000}
	held.Charges = []record.Charge{{Tree: "namespaces", Group: "team", Request: resource.Vector{resource.GPU: 1000, resource.CPU: 4000, resource.Memory: 16 << 30}}}
	held.Members = []record.Placement{{Node: "n1", Incarnation: resource.Incarnation{JournalID: "journal", BootID: "boot"}, Assignment: resource.Assignment{
		GPUs:   []resource.GPUGrant{{Index: 1, UUID: "GPU-00000000-0000-0000-0000-000000000001", Milli: 1000}},
		CPUs:   []resource.CPUGrant{{ID: 1, Milli: 1000}, {ID: 2, Milli: 1000}, {ID: 3, Milli: 1000}, {ID: 4, Milli: 1000}},
		Memory: []resource.MemoryGrant{{Node: 0, Bytes: 16 << 30}},
	}}}
	return u, held
}

// order is the place of a unit that waits.
func order(u record.Unit) record.Order {
	return record.Order{UnitUID: u.UID, Waiting: &record.Waiting{Code: "WaitingForResources", Message: "no place now", SinceMillis: began.UnixMilli() + 1000}}
}

// life is the writes of a whole life, a revision each: submitted, waiting with a reason,
// committed, ready, ending, ended, and collected.
func life(i int) [][]record.Op {
	running, held := records(i)
	u, millis := running, began.UnixMilli()
	u.Phase, u.TxID, u.Started = "Pending", "", ""
	place, tx := u.Order().Key(), record.TxKey(running.TxID)
	ending, releasing := running, held
	ending.Phase, releasing.State, releasing.EndingMillis, releasing.Reason = "Terminating", grant.RecordReleasing, millis+60_000, "deleted"
	released := releasing
	released.State, released.EndedMillis, released.Ended = grant.RecordReleased, millis+65_000, "2026-01-02T03:05:10Z"
	return [][]record.Op{
		{record.MustPutRecord(u.Path().Key(), u), record.MustPutRecord(place, record.Order{UnitUID: u.UID})},
		{record.MustPutRecord(place, order(u))},
		{record.MustPutRecord(u.Path().Key(), running), record.MustPutRecord(tx, held), record.Delete(place)},
		{record.MustPutRecord(record.ReadyKey(running.TxID), record.Ready{AtMillis: millis + 6000})},
		{record.MustPutRecord(u.Path().Key(), ending), record.MustPutRecord(tx, releasing)},
		{record.Delete(u.Path().Key()), record.MustPutRecord(tx, released)},
		{record.Delete(tx), record.Delete(record.ReadyKey(running.TxID))},
	}
}

// follow makes the revisions of a life, as a watch has them, from a revision on.
func follow(writes [][]record.Op, at resource.Revision) []record.Batch {
	created := map[string]resource.Revision{}
	batches := make([]record.Batch, len(writes))
	for i, ops := range writes {
		at++
		batches[i].Revision = at
		for _, op := range ops {
			e := record.Event{KV: record.KV{Key: op.Key, Value: op.Value, ModRev: at}}
			if op.Delete {
				e.Type = record.EventDelete
				delete(created, op.Key)
			} else if created[op.Key] == 0 {
				created[op.Key] = at
			}
			e.KV.CreateRev = created[op.Key]
			batches[i].Events = append(batches[i].Events, e)
		}
	}
	return batches
}

// encoded counts the two directions of a record.
func encoded[R record.Type](t *testing.T, m *meter, name, of string, r R) []ratchet.Figure {
	value, err := record.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	encode := m.leastOf(rounds, func(int) { _, err = record.Encode(r) })
	decode := m.leastOf(rounds, func(int) { _, err = record.Decode[R]("key", value) })
	if err != nil {
		t.Fatal(err)
	}
	figures := append(encode.figures("record/encode-"+name, "the record of "+of+", encoded"), decode.figures("record/decode-"+name, "the record of "+of+", decoded")...)
	return append(figures, ratchet.Figure{Name: "record/size-" + name, Value: int64(len(value)), Unit: "bytes", Means: "the record of " + of + " in the store"})
}

func TestRecordsAreWrittenAndRead(t *testing.T) {
	m := newMeter(t)
	m.settle(t)
	u, held := records(1)
	figures := encoded(t, m, "unit", "a unit", u)
	figures = append(figures, encoded(t, m, "transaction", "a transaction", held)...)
	figures = append(figures, encoded(t, m, "place", "a place in the order", order(u))...)
	figures = append(figures, encoded(t, m, "readiness", "readiness", record.Ready{AtMillis: began.UnixMilli()})...)
	hold(t, "record", figures)
}

func TestALifeIsNarrated(t *testing.T) {
	m := newMeter(t)
	m.settle(t)
	n := narrate.New("prod")
	least := most
	rows := 0
	for i := range rounds {
		batches := follow(life(i), n.Revision())
		least = least.least(m.count(func() {
			for _, b := range batches {
				n.Follow(b)
			}
			rows = n.Rows()
			n.Take()
		}))
	}
	if faults := n.Faults(); len(faults) > 0 {
		t.Fatal(faults)
	}
	hold(t, "history", least.figures("history/life", "the four rows of a life in the history, from seven revisions"))
	if rows != 4 {
		t.Fatalf("a life has %d rows, want the allocation, its grant, its wait and its entry of the audit", rows)
	}
}

// projection is the objects of a coordinator with some allocations that run.
type projection struct {
	*objects.Cache
	t   *testing.T
	kvs map[string]record.KV
	at  resource.Revision
}

func newProjection(t *testing.T, running int) *projection {
	p := &projection{Cache: objects.New(), t: t, kvs: map[string]record.KV{}, at: 1}
	for i := range running {
		p.write(life(1000 + i)[2], nil)
	}
	p.KeepEvents(events.New(events.Default, began), "c1", p.at, began)
	return p
}

// write makes a revision. know is called for each record before the objects are made
// anew.
func (p *projection) write(ops []record.Op, know func(record.Op)) {
	p.at++
	for _, op := range ops {
		if op.Delete {
			delete(p.kvs, op.Key)
		} else {
			kv := record.KV{Key: op.Key, Value: op.Value, ModRev: p.at, CreateRev: p.at}
			if before, there := p.kvs[op.Key]; there {
				kv.CreateRev = before.CreateRev
			}
			p.kvs[op.Key] = kv
		}
		p.Touch(op.Key)
		if know != nil && op.Of != nil {
			know(op)
		}
	}
	if err := p.Refresh(p.kvs, p.at, began); err != nil {
		p.t.Fatal(err)
	}
}

func TestALifeIsProjected(t *testing.T) {
	m := newMeter(t)
	m.settle(t)
	var figures []ratchet.Figure
	for _, c := range []struct {
		name, means string
		knows       bool
	}{
		{"life-leader", "a life with its events in the projection of the coordinator that leads", true},
		{"life-follower", "a life with its events in the projection of a follower", false},
	} {
		p := newProjection(t, 64)
		know := func(op record.Op) {
			if c.knows {
				p.Know(op.Key, op.Of)
			}
		}
		least := most
		for i := range rounds {
			writes := life(i)
			least = least.least(m.count(func() {
				for _, ops := range writes {
					p.write(ops, know)
				}
			}))
		}
		figures = append(figures, least.figures("objects/"+c.name, c.means)...)
	}
	figures = append(figures, rendered(t, m)...)
	hold(t, "objects", figures)
}

// rendered counts the answer for an allocation: found, rendered and encoded.
func rendered(t *testing.T, m *meter) []ratchet.Figure {
	p := newProjection(t, 64)
	u, _ := records(1001)
	view, length := p.View(p.at, began), 0
	least := m.leastOf(rounds, func(int) {
		item, found := view.Get(objects.Named(objects.Allocations, u.Namespace+"/"+u.Name))
		if !found {
			t.Fatal("the allocation is not in the view")
		}
		a := item.Object()
		if a.(*api.Allocation).Status.Phase != api.Running {
			t.Fatalf("%+v", a)
		}
		length = len(objects.Encode(a))
	})
	figures := least.figures("objects/document", "one allocation, rendered as JSON")
	return append(figures, ratchet.Figure{Name: "objects/size", Value: int64(length), Unit: "bytes", Means: "the JSON of one allocation"})
}
