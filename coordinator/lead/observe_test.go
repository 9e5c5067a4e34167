package lead

import (
	"fmt"
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/lead/breaker"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// observedOf is a node's observation as the store has it.
func (x *scene) observedOf(id resource.NodeID) (record.NodeObserved, record.KV) {
	x.t.Helper()
	o, kv := storedAs[record.NodeObserved](x, record.NodeObservedKey(id))
	if kv.ModRev == 0 {
		x.t.Fatalf("node %s is not observed", id)
	}
	return o, kv
}

// seconds lets that many seconds pass, with all answers of the store.
func (x *scene) seconds(n int) {
	x.t.Helper()
	for range n {
		x.second()
		x.answers()
	}
}

func TestAnObservationIsWrittenWhenItChanges(t *testing.T) {
	x := newScene(t)
	x.seconds(1)
	o, wrote := x.observedOf("n1")
	if !o.Connected || o.Unheard || o.Host == nil || len(o.Host.Devices) != 8 || len(o.Health) > 0 {
		t.Errorf("observed %+v", o)
	}
	x.running("a", 2, "") // allocations are no part of it
	x.hear(grant.Occupied{Node: "n1", Occupancy: x.hosts["n1"].Occupancy})
	x.seconds(60)
	if _, kv := x.observedOf("n1"); kv.ModRev != wrote.ModRev {
		t.Errorf("the same was written again at revision %d", kv.ModRev)
	}
	for name, c := range map[string]struct {
		event grant.Event
		is    func(record.NodeObserved) bool
	}{
		"a device is sick": {
			grant.HealthChanged{Node: "n1", Health: map[int]grant.DeviceHealth{3: {Health: devices.Tainted, Reason: "XID 79"}}},
			func(o record.NodeObserved) bool {
				return len(o.Health) == 1 && o.Health[0] == record.ObservedHealth{Device: 3, Health: "tainted", Reason: "XID 79"}
			},
		},
		"the disk is full":       {grant.HealthChanged{Node: "n1", DiskFull: true}, func(o record.NodeObserved) bool { return o.DiskFull && o.Health == nil }},
		"memory is short":        {grant.HealthChanged{Node: "n1", MemoryPressure: true}, func(o record.NodeObserved) bool { return o.MemoryPressure }},
		"it goes in quarantine":  {grant.HealthChanged{Node: "n1", Quarantine: "the store went back"}, func(o record.NodeObserved) bool { return o.Quarantine == "the store went back" }},
		"a pod takes two GPUs":   {grant.Occupied{Node: "n1", Occupancy: localOf(2)}, func(o record.NodeObserved) bool { return o.Local != nil && len(o.Local.GPUs) == 2 }},
		"the stream has ended":   {grant.Disconnected{Node: "n1"}, func(o record.NodeObserved) bool { return !o.Connected && o.Host != nil }},
		"the stream began again": {x.hosts["n1"], func(o record.NodeObserved) bool { return o.Connected }},
	} {
		t.Run(name, func(t *testing.T) {
			x := newScene(t)
			x.pass(observedHold)
			x.seconds(1)
			x.hear(c.event)
			x.seconds(1)
			if o, _ := x.observedOf("n1"); !c.is(o) {
				t.Errorf("observed %+v", o)
			}
		})
	}
}

// localOf is an occupancy with a grant of that many GPUs that no leader has made.
func localOf(gpus int) grant.Occupancy {
	g := grant.Grant{Tx: "local", Origin: "kubelet", State: grant.Held, Members: []grant.Member{{}}}
	for i := range gpus {
		g.Members[0].Assignment.GPUs = append(g.Members[0].Assignment.GPUs, resource.GPUGrant{Index: i, UUID: fmt.Sprint("GPU-", i), Milli: 1000})
	}
	return grant.Occupancy{Grants: []grant.Grant{g}}
}

// TestAFreshLeaderWritesNoFalsehoods: the streams to the agents are still being opened.
func TestAFreshLeaderWritesNoFalsehoods(t *testing.T) {
	x := newScene(t)
	x.seconds(1)
	_, first := x.observedOf("n1")
	x.post = post.New(x.post.Epoch(), x.post.MaxOps(), x.clock, [32]byte{}) // as after an election
	for _, id := range []resource.NodeID{"n1", "n2"} {
		_, kv := x.observedOf(id)
		n := x.nodes[id]
		n.connected, n.observed = false, observed{}
		n.view.Host = nil
		n.observed.load(kv)
	}
	x.hear(x.hosts["n2"]) // its agent was quick
	x.seconds(9)
	if o, kv := x.observedOf("n1"); !o.Connected || kv.ModRev != first.ModRev {
		t.Errorf("9 s after the election n1 is written as %+v", o)
	}
	if o, _ := x.observedOf("n2"); !o.Connected {
		t.Errorf("n2 is written as %+v", o)
	}
	x.seconds(2)
	if o, _ := x.observedOf("n1"); o.Connected || o.Host == nil || len(o.Host.Devices) != 8 {
		t.Errorf("11 s after the election n1 is written as %+v, want the hardware that the leader before has seen", o)
	}
}

// TestAnObservationOfADeletedNodeDoesNotLand: nor does one of its earlier life.
func TestAnObservationOfADeletedNodeDoesNotLand(t *testing.T) {
	x := newScene(t)
	x.second() // the writes are on their way
	for _, key := range []string{record.NodeSpecKey("n1"), record.NodeIdentityKey("n1")} {
		if _, err := x.kv.Txn(t.Context(), record.Txn{Then: []record.Op{record.Delete(key)}}); err != nil {
			t.Fatal(err)
		}
	}
	x.answers()
	if _, found, _, _ := x.kv.Get(t.Context(), record.NodeObservedKey("n1")); found {
		t.Error("a deleted node is observed")
	}
	x.observedOf("n2")
}

// TestTheDeletionOfANodeDeletesAnObservationThatItHasNotRead: written between the read
// and the deletion.
func TestTheDeletionOfANodeDeletesAnObservationThatItHasNotRead(t *testing.T) {
	x := newScene(t)
	x.nodes["n1"].connected = false
	kvs, _, err := x.kv.Range(t.Context(), record.NodeIn("n1"), store.RangeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	x.put(record.NodeObservedKey("n1"), record.MustEncode(record.NodeObserved{Connected: true}))
	x.finish(func() { x.deleteRead(DeleteNode{Node: "n1"}, kvs, record.KV{}, 1, func(*api.Status) {}) })
	if left, _, _ := x.kv.Range(t.Context(), record.NodeIn("n1"), store.RangeOptions{}); len(left) > 0 {
		t.Errorf("%d keys of a deleted node are left, %s first", len(left), left[0].Key)
	}
}

// TestAnObservationIsTheLeadersAlone: one that is torn, of somebody else or gone is
// written anew.
func TestAnObservationIsTheLeadersAlone(t *testing.T) {
	for name, value := range map[string][]byte{
		"torn":                       []byte(`{"v":1,"conne`),
		"of a later version":         []byte(`{"v":1,"connected":true,"color":"red"}`),
		"of somebody else":           record.MustEncode(record.NodeObserved{DiskFull: true}),
		"beyond the bounds":          []byte(`{"v":1,"health":[{"device":99,"health":"ok"}]}`),
		"with a list that is no CPU": []byte(`{"v":1,"host":{"numa":[{"id":0,"usable":"x"}]}}`),
		"deleted":                    nil,
	} {
		for _, when := range []string{"before the term", "in the term"} {
			t.Run(name+" "+when, func(t *testing.T) {
				x := newScene(t)
				key := record.NodeObservedKey("n1")
				if when == "in the term" {
					x.seconds(1)
					_, kv := x.observedOf("n1")
					x.give(NodeFacts{Node: "n1", Leased: true, Observed: kv.ModRev})
				}
				op := record.Put(key, value)
				if value == nil {
					op = record.Delete(key)
				}
				if _, err := x.kv.Txn(t.Context(), record.Txn{Then: []record.Op{op}}); err != nil {
					t.Fatal(err)
				}
				kv, found, _, err := x.kv.Get(t.Context(), key)
				if err != nil {
					t.Fatal(err)
				}
				if when == "in the term" {
					x.give(NodeFacts{Node: "n1", Leased: true, Observed: kv.ModRev})
				} else if found {
					x.nodes["n1"].observed.load(kv)
				}
				x.seconds(3)
				if o, _ := x.observedOf("n1"); !o.Connected || o.DiskFull || o.Host == nil {
					t.Errorf("observed %+v", o)
				}
			})
		}
	}
}

// TestAnObservationWithoutAnAnswerNeverLandsLate: the later one has another revision.
func TestAnObservationWithoutAnAnswerNeverLandsLate(t *testing.T) {
	x := newScene(t)
	x.seconds(1)
	x.hear(grant.HealthChanged{Node: "n1", DiskFull: true})
	x.second()
	late := x.asked[0]
	x.loses(false)
	x.answers()
	x.hear(grant.HealthChanged{Node: "n1"})
	x.seconds(1)
	if o, _ := x.observedOf("n1"); o.DiskFull {
		t.Fatalf("observed %+v", o)
	}
	if r, err := x.kv.Txn(t.Context(), record.Txn{If: late.Write.Compares, Then: late.Write.Ops}); err != nil || r.Succeeded {
		t.Errorf("the write without an answer has landed after a later one: %+v, %v", r, err)
	}
}

// TestAMessageAloneIsNotWrittenOften: a flag is written at once, its words are not.
func TestAMessageAloneIsNotWrittenOften(t *testing.T) {
	x := newScene(t)
	x.seconds(1)
	writes, last := 0, resource.Revision(0)
	for i := range 60 {
		x.do(func() { x.nodes["n1"].breaker.Failed(x.clock, resource.TxID(fmt.Sprint(i)), breaker.Refused) })
		x.seconds(1)
		if _, kv := x.observedOf("n1"); kv.ModRev != last {
			writes, last = writes+1, kv.ModRev
		}
	}
	if o, _ := x.observedOf("n1"); o.Suspicion == "" || writes > 8 {
		t.Errorf("%d writes in a minute for one node; the last is %q", writes, o.Suspicion)
	}
}

// TestObservationsAreWrittenAtABoundedRate: 10,000 nodes are lost at once.
func TestObservationsAreWrittenAtABoundedRate(t *testing.T) {
	const nodes = 10_000
	l := NewLeader(Beginning{Now: time.Unix(1_700_000_000, 0), MaxOps: 128})
	now := l.post.Elected().Add(time.Hour)
	for i := range nodes {
		id := resource.NodeID(fmt.Sprintf("n%05d", i))
		n := l.node(id)
		n.restoreSpec(record.NodeSpec{}, 1)
		n.unheard = true
	}
	writes := map[string]int{}
	most, seconds := 0, 0
	for ; len(writes) < nodes && seconds < 400; seconds++ {
		now = now.Add(time.Second)
		effects := l.handle(now, nil, l.writeObserved)
		if seconds > 0 { // the burst
			most = max(most, len(effects))
		}
		for _, e := range effects {
			writes[e.Write.Ops[0].Key]++
			l.Apply(now, WriteAnswer{Token: e.Token, Outcome: txn.Landed, Revision: 2}, nil)
		}
	}
	if len(writes) != nodes || most > 51 || seconds > nodes/50+2 {
		t.Errorf("%d of %d nodes in %d s, %d writes in one second", len(writes), nodes, seconds, most)
	}
	for key, times := range writes {
		if times != 1 {
			t.Fatalf("%s was written %d times", key, times)
		}
	}
}

// BenchmarkASecondOfObservations looks at 10,000 nodes without news.
func BenchmarkASecondOfObservations(b *testing.B) {
	l := NewLeader(Beginning{Now: time.Unix(1_700_000_000, 0), MaxOps: 128})
	for i := range 10_000 {
		n := l.node(resource.NodeID(fmt.Sprintf("n%05d", i)))
		n.restoreSpec(record.NodeSpec{}, 1)
		n.connected = true
		n.observed.seen, n.observed.known, n.observed.revision = n.observeNow(), true, 2
	}
	b.ReportAllocs()
	for b.Loop() {
		if out := l.handle(l.post.Elected(), nil, l.writeObserved); len(out) > 0 {
			b.Fatalf("%d effects", len(out))
		}
	}
}
