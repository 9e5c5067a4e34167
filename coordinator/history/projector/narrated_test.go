package projector_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/mem"
	"github.com/musterd/muster/coordinator/history/narrate"
	"github.com/musterd/muster/coordinator/history/projector"
	"github.com/musterd/muster/coordinator/history/usage"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	storemem "github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// narrated is a store with gangs as leaders write them, and the history of narrator and
// slicer. Both begin anew at times, as a projector does after a kill.
type narrated struct {
	t       *rapid.T
	now     int64 // milliseconds
	store   *storemem.Store
	history *mem.History
	told    *narrate.Narrator
	slicer  *usage.Slicer
	changes <-chan record.Batch
	mark    string
	gangs   []*gang
	made    int
	free    map[string]int64 // since when the devices are free, by UUID
}

// gang is a unit of members, each with a device and a node apart from the others'.
type gang struct {
	unit    record.Unit
	tx      record.Tx
	id      resource.TxID
	ready   record.Ready
	holds   map[int]string // devices by member, until their ends
	counter map[int]int64
	runs    int
	deleted bool
}

const nodesOfWorld = 4

func newNarrated(t *rapid.T) *narrated {
	w := &narrated{
		t: t, now: 946_684_800_000 + 3_500_000, store: storemem.Open(storemem.Options{}), history: mem.New(), told: narrate.New("test"),
		slicer: usage.NewSlicer(nil, nil, time.Time{}), free: map[string]int64{},
	}
	w.changes = w.store.Watch(t.Context(), record.Root, store.WatchOptions{From: 1})
	for i := range nodesOfWorld {
		node := resource.NodeID(fmt.Sprint("n", i))
		w.write(w.node(node, "NVIDIA H100 80GB HBM3"))
		w.free[fmt.Sprintf("GPU-%d-0", i)], w.free[fmt.Sprintf("GPU-%d-1", i)] = 0, 0
	}
	return w
}

func (w *narrated) node(id resource.NodeID, model string) record.Op {
	return record.MustPutRecord(record.NodeSpecKey(id), record.NodeSpec{
		Hostname: string(id), Created: w.text(), Topology: record.TopologySummary{GPUs: 2, GPUModels: []string{model}, GPUModel: []int{0, 0}},
	})
}

func (w *narrated) text() string { return time.UnixMilli(w.now).UTC().Format(time.RFC3339) }

// write makes a revision, and has the history follow.
func (w *narrated) write(ops ...record.Op) {
	if r, err := w.store.Txn(w.t.Context(), record.Txn{Then: ops}); err != nil || !r.Succeeded {
		w.t.Fatal(r, err)
	}
	b := <-w.changes
	w.told.Follow(b)
	w.slicer.Hear(w.told.Uses())
	if rapid.IntRange(0, 2).Draw(w.t, "flush") > 0 {
		w.flush()
	}
}

// flush writes the rows into the history.
func (w *narrated) flush() {
	b := w.told.Take()
	b.Cuts, b.Slices = w.slicer.Follow(b)
	if upto := w.slicer.Upto(); !upto.IsZero() {
		w.mark = fmt.Sprintf(`{"n":"test","s":%d}`, upto.UnixMilli())
	}
	b.Mark = w.mark
	if err := w.history.Write(w.t.Context(), b); err != nil {
		w.t.Fatal(err)
	}
}

// restart begins anew behind the history.
func (w *narrated) restart() {
	w.flush()
	at, _ := w.history.Position(w.t.Context())
	kvs, _, err := w.store.Range(w.t.Context(), record.Root, store.RangeOptions{AtRevision: at.Revision})
	if err != nil {
		w.t.Fatal(err)
	}
	w.told = narrate.New("test")
	w.told.Load(kvs, at.Revision)
	last, err := w.history.LastCounted(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	w.slicer = usage.NewSlicer(w.told.Live(), last, w.slicer.Upto())
	w.slicer.Hear(w.told.Uses())
}

// submit makes a unit of up to three members.
func (w *narrated) submit() {
	w.made++
	uid := fmt.Sprintf("u%d", w.made)
	resources := rapid.SampledFrom([]string{`"cpu":"2","nvidia.com/gpu":"1"`, `"muster.io/cores":"2","nvidia.com/gpu":"1"`, `"cpu":"1","nvidia.com/gpu":"1","licence":"3"`}).Draw(w.t, "resources")
	u := record.Unit{
		UID: resource.UnitUID(uid), Kind: record.AllocUnit, Namespace: "ns", Name: uid, Tenant: "t", Phase: "Pending", Members: rapid.IntRange(1, 3).Draw(w.t, "members"), Created: w.text(),
		Document: []byte(`{"metadata":{"name":"` + uid + `"},"spec":{"resources":{"requests":{` + resources + `}}}}`),
	}
	w.write(record.MustPutRecord(u.Path().Key(), u), record.MustPutRecord(u.Order().Key(), record.Order{UnitUID: u.UID}))
	w.gangs = append(w.gangs, &gang{unit: u})
}

// commit gives free devices to a unit.
func (w *narrated) commit(g *gang) {
	taken := map[string]bool{}
	for _, uuid := range slices.Sorted(maps.Keys(w.free)) {
		if node := uuid[4:5]; !taken[node] && len(taken) < g.unit.Members {
			taken[node] = true
		}
	}
	if len(taken) < g.unit.Members {
		return
	}
	g.runs++
	g.id = resource.TxID(fmt.Sprintf("%s.2.%d.00000000000000000000000000000001", g.unit.UID, g.runs))
	g.holds, g.counter, g.ready = map[int]string{}, map[int]int64{}, record.Ready{AtMillis: w.now}
	g.tx = record.Tx{State: grant.RecordCommitted, Epoch: 2, Unit: g.unit.Path(), UnitUID: g.unit.UID, Tenant: "t", CommittedMillis: w.now}
	for _, uuid := range slices.Sorted(maps.Keys(w.free)) {
		node := uuid[4:5]
		if !taken[node] {
			continue
		}
		delete(taken, node)
		delete(w.free, uuid)
		m := len(g.tx.Members)
		g.holds[m] = uuid
		g.tx.Members = append(g.tx.Members, record.Placement{Member: m, Node: resource.NodeID("n" + node), Assignment: resource.Assignment{
			CPUs: []resource.CPUGrant{{ID: 2 * m, Milli: 1000}, {ID: 2*m + 1, Milli: 1000}}, GPUs: []resource.GPUGrant{{UUID: uuid, Index: int(uuid[6] - '0'), Milli: 1000}},
		}})
	}
	g.unit.Phase, g.unit.TxID, g.unit.Started = "Running", g.id, w.text()
	ops := []record.Op{record.MustPutRecord(g.unit.Path().Key(), g.unit), record.MustPutRecord(record.TxKey(g.id), g.tx), record.Delete(g.unit.Order().Key())}
	for _, o := range w.gangs { // a leader writes with a commit which nodes have freed their members
		if o.unit.Phase == "Terminating" && len(o.ready.Freed) > 0 {
			ops = append(ops, record.MustPutRecord(record.ReadyKey(o.id), o.ready))
		}
	}
	w.write(ops...)
	if rapid.Bool().Draw(w.t, "ready") {
		w.write(record.MustPutRecord(record.ReadyKey(g.id), g.ready))
	}
}

// lose takes a member out of a gang: another unit replaces the member.
func (w *narrated) lose(g *gang) {
	if len(g.tx.Members) < 2 {
		return
	}
	i := rapid.IntRange(0, len(g.tx.Members)-1).Draw(w.t, "lost")
	m := g.tx.Members[i]
	g.tx.Members = slices.Delete(slices.Clone(g.tx.Members), i, i+1)
	g.tx.LostMembers = append(slices.Clip(g.tx.LostMembers), record.LostMember{Placement: m, AtMillis: w.now})
	w.release(g, m.Member)
	w.write(record.MustPutRecord(record.TxKey(g.id), g.tx))
	w.submit()
}

func (w *narrated) release(g *gang, member int) {
	w.free[g.holds[member]] = w.now
	delete(g.holds, member)
}

// report has a node report the counters of a member.
func (w *narrated) report(g *gang) {
	status := record.NodeStatus{HeardAt: w.text()}
	for _, m := range g.tx.Members {
		if _, holds := g.holds[m.Member]; holds {
			g.counter[m.Member] += rapid.Int64Range(0, 9000).Draw(w.t, "use")
			status.Work = []record.MemberUse{{Tx: g.id, Member: m.Member, Use: record.Use{CPUMillis: g.counter[m.Member]}}}
			w.write(record.MustPutRecord(record.NodeStatusKey(m.Node), status))
			return
		}
	}
}

// end begins the end of a gang: by the owner, or by an eviction.
func (w *narrated) end(g *gang, state grant.RecordState) {
	g.tx.State, g.tx.EndingMillis, g.tx.Evicted = state, w.now, state == grant.RecordEvicting
	g.unit.Phase = "Terminating"
	w.write(record.MustPutRecord(g.unit.Path().Key(), g.unit), record.MustPutRecord(record.TxKey(g.id), g.tx))
}

// frees has a node free a member, and the record end with the last of them.
func (w *narrated) frees(g *gang) {
	members := slices.Sorted(maps.Keys(g.holds))
	member := rapid.SampledFrom(members).Draw(w.t, "freed")
	node := g.tx.Members[slices.IndexFunc(g.tx.Members, func(m record.Placement) bool { return m.Member == member })].Node
	w.release(g, member)
	if len(members) > 1 {
		g.ready.Freed = append(slices.Clip(g.ready.Freed), record.FreedNode{Node: node, AtMillis: w.now})
		if rapid.Bool().Draw(w.t, "written") {
			w.write(record.MustPutRecord(record.ReadyKey(g.id), g.ready))
		}
		return
	}
	g.tx.State, g.tx.EndedMillis, g.tx.Ended = grant.RecordReleased, w.now, w.text()
	g.tx.Outcome = &record.Outcome{Phase: "Succeeded"}
	for _, m := range g.tx.Members {
		g.counter[m.Member] += rapid.Int64Range(0, 50).Draw(w.t, "rest")
		g.tx.Outcome.Exits = append(g.tx.Outcome.Exits, record.Exit{Member: m.Member, Reason: "Completed", Use: &record.Use{CPUMillis: g.counter[m.Member]}})
	}
	ops := []record.Op{record.MustPutRecord(record.TxKey(g.id), g.tx)}
	if len(g.ready.Freed) > 0 {
		ops = append(ops, record.MustPutRecord(record.ReadyKey(g.id), g.ready))
	}
	g.unit.TxID = ""
	switch {
	case g.tx.Evicted:
		g.unit.Phase = "Pending"
		ops = append(ops, record.MustPutRecord(g.unit.Path().Key(), g.unit), record.MustPutRecord(g.unit.Order().Key(), record.Order{UnitUID: g.unit.UID}))
	case rapid.Bool().Draw(w.t, "deleted"):
		g.deleted = true
		ops = append(ops, record.Delete(g.unit.Path().Key()))
	default:
		g.unit.Phase, g.unit.Ended, g.deleted = "Succeeded", w.text(), true
		ops = append(ops, record.MustPutRecord(g.unit.Path().Key(), g.unit))
	}
	w.write(ops...)
}

// step has something happen.
func (w *narrated) step() {
	w.now += rapid.SampledFrom([]int64{0, 1, 700, 20_000, 40_000, 299_999, 300_000, 1_800_000}).Draw(w.t, "pause")
	if len(w.gangs) == 0 || rapid.IntRange(0, 4).Draw(w.t, "submit") == 0 {
		w.submit()
		return
	}
	g := w.gangs[rapid.IntRange(0, len(w.gangs)-1).Draw(w.t, "gang")]
	what := rapid.IntRange(0, 5).Draw(w.t, "what")
	switch {
	case g.deleted && what == 0: // the leader collects the record
		w.write(record.Delete(record.TxKey(g.id)), record.Delete(record.ReadyKey(g.id)))
		w.gangs = slices.DeleteFunc(w.gangs, func(o *gang) bool { return o == g })
	case g.deleted && what == 1: // a node has other cards
		if id := g.tx.Members[0].Node; !w.isIdle(id) {
			return
		}
		w.write(w.node(g.tx.Members[0].Node, rapid.SampledFrom([]string{"NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB"}).Draw(w.t, "model")))
	case g.deleted:
	case g.unit.Phase == "Pending":
		w.commit(g)
	case g.unit.Phase == "Terminating":
		w.frees(g)
	case what < 2:
		w.report(g)
	case what == 2:
		w.lose(g)
	case what == 3:
		w.end(g, grant.RecordEvicting)
	default:
		w.end(g, grant.RecordReleasing)
	}
}

// isIdle reports whether no live grant has, or had, a member on a node.
func (w *narrated) isIdle(id resource.NodeID) bool {
	for _, g := range w.gangs {
		if g.unit.TxID == "" || g.deleted {
			continue
		}
		for _, m := range g.tx.Members {
			if m.Node == id {
				return false
			}
		}
		for _, m := range g.tx.LostMembers {
			if m.Node == id {
				return false
			}
		}
	}
	return true
}

// judge fails the test for a difference found by verify, or a row changed by rebuild.
func (w *narrated) judge() {
	w.flush()
	before := w.history.Rows()
	r, err := projector.Rebuild(w.t.Context(), w.store, w.history, "test", 0)
	if err != nil || len(r.Differences) > 0 {
		w.t.Fatalf("error %v, differences %v", err, r.Differences)
	}
	if d := cmp.Diff(before, w.history.Rows()); d != "" {
		w.t.Fatalf("a rebuild without differences changes rows (-before +after)\n%s", d)
	}
}

// exclusive fails the test for overlapping slices of a device, and for empty slices.
func (w *narrated) exclusive() {
	rows := w.history.Rows()
	devices := map[string][]history.Slice{}
	for _, s := range rows.Slices {
		if !s.To.After(s.From) {
			w.t.Fatalf("an empty slice: %+v", s)
		}
		for _, m := range rows.Grants[string(s.Tx)].Row.Members {
			if m.Index == s.Member && s.Slot == resource.GPU {
				devices[m.Devices[0]] = append(devices[m.Devices[0]], s)
			}
		}
	}
	for uuid, list := range devices {
		slices.SortFunc(list, func(a, b history.Slice) int { return a.From.Compare(b.From) })
		for i := 1; i < len(list); i++ {
			if list[i].From.Before(list[i-1].To) {
				w.t.Fatalf("%s is charged twice: %+v and %+v", uuid, list[i-1], list[i])
			}
		}
	}
}

// TestEveryStateOfAWorldIsRight: in every state of random worlds, with lost members, whole
// cores, ends at different times, evictions, deletions and restarts of projectors, the
// history has no difference from the store, and charges no device twice.
func TestEveryStateOfAWorldIsRight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newNarrated(t)
		defer w.store.Close()
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			if w.step(); rapid.IntRange(0, 9).Draw(t, "restart") == 0 {
				w.restart()
			}
			w.judge()
		}
		w.exclusive()
	})
}
