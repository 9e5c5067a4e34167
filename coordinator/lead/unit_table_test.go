package lead

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/admission"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// inputs is a leader as a value with all that answers it: a store in memory, and
// agents of two nodes that say at any time what its attempts let them say.
type inputs struct {
	*Leader
	kv    *mem.Store
	clock time.Time
	asked []post.Effect // writes and reads that have no answer yet
	made  int
	wakes time.Time // 0: no alarm is set
	seen  map[work.Phase]int
}

func newInputs(t *rapid.T, seen map[work.Phase]int) *inputs {
	x := &inputs{kv: mem.Open(mem.Options{}), clock: time.Unix(1_700_000_000, 0), seen: seen}
	at := x.put(t, "/leader", nil)
	x.Leader = NewLeader(Beginning{
		Rules: Rules{ReservationTTL: time.Second, VoteBudget: time.Second, EvictionGrace: time.Second, RecordRetention: time.Minute, NamespaceAllocations: 1000},
		Epoch: resource.Epoch(at), Held: record.CreateRevIs("/leader", at), MaxOps: mem.DefaultMaxTxnOps, Now: x.clock,
	})
	profile, err := fake.Lookup("dgx-a100")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []resource.NodeID{"n1", "n2"} {
		host := grant.Host{Hostname: string(id), Topology: profile.Topology(), Inventory: profile.Inventory(string(id))}
		fits, err := fit.NewHost(host.Topology, host.Inventory, fit.Reserved{})
		if err != nil {
			t.Fatal(err)
		}
		incarnation := resource.Incarnation{JournalID: string(id), BootID: "b"}
		rev := x.put(t, record.NodeIdentityKey(id), record.MustEncode(record.NodeIdentity{Incarnation: incarnation}))
		spec := record.NodeSpec{Capacity: admission.CapacityOf(host, fits.Allocatable()), Allocatable: fits.Allocatable()}
		spec.Topology.GPUModels, spec.Topology.GPUModel = []string{host.Inventory.Devices[0].Model}, make([]int, len(host.Inventory.Devices))
		specRev := x.put(t, record.NodeSpecKey(id), record.MustEncode(spec))
		x.give(t, AgentEvent{StreamOpened{Hello: grant.Hello{Node: id, Incarnation: incarnation, Revision: rev, Host: host}, Fit: fits}})
		x.give(t, NodeRegistered{Node: id, Spec: spec, Revision: specRev})
	}
	return x
}

func (x *inputs) put(t *rapid.T, key string, value []byte) resource.Revision {
	r, err := x.kv.Txn(context.Background(), record.Txn{Then: []record.Op{record.Put(key, value)}})
	if err != nil {
		t.Fatal(err)
	}
	return r.Revision
}

// give hands the leader an input.
func (x *inputs) give(t *rapid.T, in Input) { x.take(t, x.Apply(x.clock, in, nil)) }

// do has the leader handle what is not an input yet.
func (x *inputs) do(t *rapid.T, f func()) { x.take(t, x.handle(x.clock, nil, f)) }

// take keeps the effects that want an answer, schedules, and checks the leader.
func (x *inputs) take(t *rapid.T, effects []post.Effect) {
	for _, e := range x.Pass(x.clock, effects) {
		switch e.Kind {
		case post.WriteKeys, post.ReadKey:
			x.asked = append(x.asked, e)
		case post.WakeAt:
			x.wakes = e.At
		case post.EndTerm:
			t.Fatalf("the term ends: %v", e.Err)
		}
	}
	if err := x.Check(); err != nil {
		t.Fatal(err)
	}
	for _, u := range x.work.Units {
		x.seen[u.Life.Phase()]++
	}
}

// create submits an allocation, or a job whose gang grows.
func (x *inputs) create(t *rapid.T) {
	x.made++
	priority := rapid.IntRange(0, 2).Draw(t, "priority")
	spec := fmt.Sprintf(`"preemptionPolicy":%q,"resources":{"requests":{"nvidia.com/gpu":"%d"}}`, rapid.SampledFrom([]string{api.PreemptLowerPriority, api.PreemptNever}).Draw(t, "policy"), rapid.IntRange(3, 8).Draw(t, "gpus"))
	var s *submission
	var bad *api.Status
	if rapid.Bool().Draw(t, "a job") {
		document := fmt.Appendf(nil, `{"metadata":{"name":"j%d"},"spec":{"priority":%d,"parallelism":3,"template":{"spec":{%s,"scheduling":{"gangScheduling":{"minMembers":2}}}}}}`, x.made, priority, spec)
		doc, status := api.DecodeJob(document)
		if status != nil {
			t.Fatal(status)
		}
		s, bad = x.submissionOfJob(Submitted{Namespace: "default", Document: document}, doc)
	} else {
		document := fmt.Appendf(nil, `{"metadata":{"name":"a%d"},"spec":{"priority":%d,%s}}`, x.made, priority, spec)
		doc, status := api.DecodeAllocation(document)
		if status != nil {
			t.Fatal(status)
		}
		s, bad = x.submissionOfAllocation(Submitted{Namespace: "default", Document: document}, doc)
	}
	if bad != nil {
		t.Fatal(bad)
	}
	x.do(t, func() {
		if _, _, status := x.accept(s); status != nil {
			t.Fatal(status)
		}
	})
}

// any draws a unit.
func (x *inputs) any(t *rapid.T) *work.Unit {
	if len(x.work.Units) == 0 {
		t.Skip("there is no unit")
	}
	var paths []string
	for path := range x.work.Units {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return x.work.Units[rapid.SampledFrom(paths).Draw(t, "unit")]
}

// answer answers a write or a read, whichever; a write may have no answer and
// have landed or not, and may be refused.
func (x *inputs) answer(t *rapid.T) {
	if len(x.asked) == 0 {
		t.Skip("nothing was asked")
	}
	i := rapid.IntRange(0, len(x.asked)-1).Draw(t, "question")
	e := x.asked[i]
	x.asked = slices.Delete(x.asked, i, i+1)
	if e.Kind == post.ReadKey {
		kv, found, rev, err := x.kv.Get(context.Background(), e.Key)
		if err != nil {
			t.Fatal(err)
		}
		x.give(t, ReadAnswer{e.Token, kv, found, rev})
		return
	}
	fault := rapid.IntRange(0, 9).Draw(t, "fault")
	switch fault {
	case 0:
		x.give(t, WriteAnswer{e.Token, txn.Unknown, 0, record.ErrUnknownOutcome})
		return
	case 1:
		x.give(t, WriteAnswer{e.Token, txn.Conflict, 0, errors.New("refused")})
		return
	}
	write := record.Txn{If: e.Write.Compares, Then: e.Write.Ops}
	if !e.Write.AnyEpoch {
		write.If = append([]record.Compare{x.held}, write.If...)
	}
	r, err := x.kv.Txn(context.Background(), write)
	switch {
	case err != nil:
		t.Fatal(err)
	case fault == 2:
		x.give(t, WriteAnswer{e.Token, txn.Unknown, 0, record.ErrUnknownOutcome})
	case r.Succeeded:
		x.give(t, WriteAnswer{e.Token, txn.Landed, r.Revision, nil})
	default:
		x.give(t, WriteAnswer{e.Token, txn.Conflict, r.Revision, nil})
	}
}

// speak has an agent say what it may of an attempt.
func (x *inputs) speak(t *rapid.T) {
	u := x.any(t)
	a := u.Attempt
	if a == nil {
		t.Skip("it has no attempt")
	}
	id := rapid.SampledFrom(a.Machine.Nodes()).Draw(t, "node")
	n := x.nodes[id]
	e := grant.Replied{Node: id, Tx: a.Machine.ID(), Incarnation: n.incarnation, Revision: n.revision}
	if h := n.reservations[e.Tx]; h != nil {
		e.Members = h.members
	}
	switch s := a.Machine.State(); {
	case a.Machine.Undecided():
		e.State = grant.Reserved
		if len(a.Victims) > 0 && s == txn.Reserving {
			e.State = grant.Waiting
		}
		if rapid.IntRange(0, 5).Draw(t, "refuse") == 0 {
			e.State, e.Members = grant.No, nil
		}
	case s >= txn.Evicting:
		e.State, e.Members = grant.Tombstone, nil
	default:
		e.State = grant.Held
	}
	x.give(t, AgentEvent{e})
}

// TestAUnitTakesOnlyStepsOfTheTable: whatever clients ask, agents say and the
// store answers, in any order, what check says holds between two inputs.
func TestAUnitTakesOnlyStepsOfTheTable(t *testing.T) {
	seen := map[work.Phase]int{}
	rapid.Check(t, func(t *rapid.T) {
		x := newInputs(t, seen)
		defer x.kv.Close()
		t.Repeat(map[string]func(*rapid.T){
			"create": func(t *rapid.T) {
				if len(x.work.Units) < 8 {
					x.create(t)
				}
			},
			"delete":        x.remove,
			"evict":         func(t *rapid.T) { u := x.any(t); x.do(t, func() { x.evict(u, txn.EvictAsked{Reason: "evicted"}) }) },
			"change":        x.change,
			"change more":   x.change,
			"answer":        x.answer,
			"answer more":   x.answer,
			"answer again":  x.answer,
			"speak":         x.speak,
			"speak more":    x.speak,
			"speak again":   x.speak,
			"reconnect":     func(t *rapid.T) { x.reconnect(t) },
			"let time pass": func(t *rapid.T) { x.pause(t, time.Duration(rapid.IntRange(1, 3000).Draw(t, "ms"))*time.Millisecond) },
		})
	})
	if testing.Short() {
		return // too few inputs
	}
	for p := range work.Phases {
		if p != work.Adopting && seen[p] == 0 { // needs another leader
			t.Errorf("no unit was ever %s", p)
		}
	}
}

// change has an owner change what may change: whether the work is suspended, its
// queue, and the number of a job's members.
func (x *inputs) change(t *rapid.T) {
	u := x.any(t)
	spec := map[string]any{}
	if rapid.Bool().Draw(t, "suspension") {
		spec["suspend"] = rapid.Bool().Draw(t, "suspend")
	}
	if rapid.IntRange(0, 3).Draw(t, "other queue") == 0 {
		spec["queue"] = rapid.SampledFrom([]string{"default", "night"}).Draw(t, "queue")
	}
	if u.Job != nil && rapid.Bool().Draw(t, "other size") {
		spec["parallelism"] = rapid.IntRange(2, 6).Draw(t, "parallelism")
	}
	if len(spec) == 0 {
		return
	}
	raw, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	x.made++
	token, patch := post.Token(1000+x.made), api.WorkPatch{Spec: raw}
	if u.Job == nil {
		x.give(t, ClientRequest{token, PatchAllocation{"default", u.Record.Name, patch}})
	} else {
		x.give(t, ClientRequest{token, PatchJob{"default", u.Record.Name, patch}})
	}
}

// reconnect has an agent come back with all that the leader knows of it.
func (x *inputs) reconnect(t *rapid.T) {
	id := rapid.SampledFrom([]resource.NodeID{"n1", "n2"}).Draw(t, "node")
	n := x.nodes[id]
	x.give(t, AgentEvent{grant.Disconnected{Node: id}})
	x.give(t, AgentEvent{StreamOpened{Hello: grant.Hello{Node: id, Incarnation: n.incarnation, Revision: n.revision, Host: n.host, Occupancy: occupancyOf(x.Leader, n)}, Fit: n.view.Host}})
}

// pause lets time pass, and alarms ring.
func (x *inputs) pause(t *rapid.T, d time.Duration) {
	x.clock = x.clock.Add(d)
	if !x.wakes.IsZero() && !x.wakes.After(x.clock) {
		x.wakes = time.Time{}
		x.give(t, AlarmDue{})
	}
	x.give(t, SecondPassed{})
}
