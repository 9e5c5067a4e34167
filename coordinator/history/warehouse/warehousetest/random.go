package warehousetest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/mem"
	"github.com/musterd/muster/coordinator/history/warehouse"
	"github.com/musterd/muster/resource"
)

// Random draws batches of a few keys, so that rows meet each other often. Revisions
// grow within a batch; some rows repeat older revisions.
type Random struct {
	*rand.Rand
	// Position is the revision that the next batch follows.
	Position resource.Revision
}

// NewRandom returns a Random at position 0.
func NewRandom(r *rand.Rand) *Random { return &Random{Rand: r} }

func (r *Random) id(kind string, n int) string { return fmt.Sprintf("%s%d", kind, r.IntN(n)) }

func (r *Random) instant() time.Time {
	if r.IntN(4) == 0 {
		return time.Time{}
	}
	return time.UnixMilli(1_780_000_000_000 + r.Int64N(200*24*3600_000)).UTC()
}

// key is an instant of a key: one of few, none of them zero.
func (r *Random) key() time.Time {
	return time.UnixMilli(1_780_000_000_000 + 86_400_000*r.Int64N(40)).UTC()
}

func (r *Random) vector() resource.Vector {
	v := resource.Vector{}
	for _, name := range []resource.Name{"cpu", "memory", "nvidia.com/gpu", "example.com/fpga"} {
		if r.IntN(2) == 0 {
			v[name] = 1 + r.Int64N(1<<40)
		}
	}
	return v
}

func (r *Random) document() []byte {
	if r.IntN(2) == 0 {
		return nil
	}
	return fmt.Appendf(nil, `{"n": %d}`, r.IntN(100))
}

// revision is one of the batch's, or an older one.
func (r *Random) revision(b *history.Batch) resource.Revision {
	if r.IntN(5) == 0 {
		return 1 + resource.Revision(r.Int64N(int64(b.Upto)))
	}
	b.Upto++
	return b.Upto
}

// Batch draws the next batch, and moves Position behind it.
func (r *Random) Batch() history.Batch {
	b := history.Batch{After: r.Position, Upto: r.Position + 1, At: r.key(), Mark: r.id("mark", 9), Repair: r.IntN(4) == 0}
	for range 1 + r.IntN(12) {
		r.add(&b)
	}
	r.Position = b.Upto
	return b
}

func (r *Random) add(b *history.Batch) {
	switch r.IntN(8) {
	case 0:
		b.Nodes = append(b.Nodes, history.Node{ID: resource.NodeID(r.id("n", 3)), Hostname: r.id("h", 3), Labels: map[string]string{"zone": r.id("z", 2)},
			Capacity: r.vector(), Allocatable: r.vector(), Registered: r.instant(), Deleted: r.instant(), Cordoned: r.IntN(2) == 0, Revision: r.revision(b)})
	case 1:
		b.Jobs = append(b.Jobs, history.Job{UID: r.id("j", 4), Phase: r.id("phase", 3), Document: r.document(), Created: r.instant(), Ended: r.instant(), Revision: r.revision(b)})
	case 2, 3:
		u := history.Unit{UID: resource.UnitUID(r.id("u", 5)), State: r.id("state", 4), Requests: r.vector(), Limits: r.vector(), Priority: r.Int32N(9) - 4,
			Created: r.instant(), Ended: r.instant(), TTL: time.Duration(r.IntN(3)) * time.Second, Affinity: r.document(), TimeLimited: r.IntN(2) == 0}
		b.Upto++
		u.Revision = b.Upto
		u.Scheduled, u.Started = r.instant(), r.instant()
		b.Units = append(b.Units, u)
	case 4:
		g := history.Grant{Tx: resource.TxID(r.id("t", 5)), Unit: resource.UnitUID(r.id("u", 5)), State: r.id("state", 4), Committed: r.instant(), Ended: r.instant(),
			Signaled: r.instant(), Evicted: r.IntN(2) == 0, Exits: r.document(), Revision: r.revision(b)}
		for i := range r.IntN(3) {
			g.Members = append(g.Members, history.Member{Index: i, Node: resource.NodeID(r.id("n", 3)), Devices: []string{"GPU-a"}[:r.IntN(2)],
				Requested: r.vector(), Allocated: r.vector(), Limits: r.vector(), Ended: r.instant()})
		}
		b.Grants = append(b.Grants, g)
	case 5:
		b.Waits = append(b.Waits, history.Wait{Unit: resource.UnitUID(r.id("u", 5)), Since: r.key(), Until: r.instant(), Code: r.id("c", 3), NextTry: r.instant(), Revision: r.revision(b)})
	case 6:
		b.Quotas = append(b.Quotas, history.Quota{Namespace: r.id("ns", 2)[:r.IntN(2)*3], Name: r.id("q", 2), Slot: "cpu", From: r.key(), To: r.instant(), Hard: resource.Unlimited,
			Soft: r.Int64N(9), Scoped: r.IntN(2) == 0, Revision: r.revision(b)})
	case 7:
		b.Preemptions = append(b.Preemptions, history.Preemption{Tx: resource.TxID(r.id("t", 5)), Nodes: []resource.NodeID{"a", "b"}[:1+r.IntN(2)], Freed: r.vector(),
			Initiated: r.key(), Grace: time.Duration(r.IntN(9)) * time.Second, Outcome: r.id("o", 3), Revision: r.revision(b)})
		b.Conditions = append(b.Conditions, history.Condition{Node: resource.NodeID(r.id("n", 3)), Type: "Ready", New: "True", At: r.instant(), Revision: b.Upto})
		b.Upto++ // an entry of the audit has an ID of its own
		b.Audit = append(b.Audit, history.Audit{ID: fmt.Sprint("a", b.Upto), At: r.key(), Actor: r.document(), Verb: "create", Revision: b.Upto})
	}
}

// Diff compares the rows that count with the oracle's; slices and gaps are left out, as
// the oracle does not revert them. "" is no difference.
func Diff(t testing.TB, oracle *mem.History, w *warehouse.Warehouse) string {
	t.Helper()
	got, err := w.All(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	rows := oracle.Rows()
	want := history.Batch{Nodes: current(rows.Nodes), Jobs: current(rows.Jobs), Units: current(rows.Units), Grants: current(rows.Grants), Waits: current(rows.Waits),
		Quotas: current(rows.Quotas), Preemptions: current(rows.Preemptions), Conditions: current(rows.Conditions), Audit: current(rows.Audit)}
	got.Slices, got.Gaps = nil, nil
	return gocmp.Diff(sorted(want), sorted(got), equal)
}

// current are the rows that are not reverted.
func current[R any](kept map[string]mem.Kept[R]) (list []R) {
	for _, key := range slices.Sorted(maps.Keys(kept)) {
		if !kept[key].Reverted {
			list = append(list, kept[key].Row)
		}
	}
	return list
}

// sorted puts rows into the order of their keys, whatever the order of texts in a
// database.
func sorted(b history.Batch) history.Batch {
	order(b.Nodes, func(x history.Node) string { return string(x.ID) })
	order(b.Jobs, func(x history.Job) string { return x.UID })
	order(b.Units, func(x history.Unit) string { return string(x.UID) })
	order(b.Grants, func(x history.Grant) string { return string(x.Tx) })
	order(b.Waits, func(x history.Wait) string { return fmt.Sprint(x.Unit, x.Since.UnixMilli()) })
	order(b.Quotas, func(x history.Quota) string { return fmt.Sprint(x.Namespace, "/", x.Name, x.Slot, x.From.UnixMilli()) })
	order(b.Preemptions, func(x history.Preemption) string { return string(x.Tx) })
	order(b.Conditions, func(x history.Condition) string { return fmt.Sprint(x.Node, x.Type, x.Revision) })
	order(b.Audit, func(x history.Audit) string { return x.ID })
	return b
}

func order[R any](list []R, key func(R) string) {
	slices.SortFunc(list, func(a, b R) int { return cmp.Compare(key(a), key(b)) })
}
