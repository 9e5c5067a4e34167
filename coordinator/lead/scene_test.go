package lead

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/admission"
	"github.com/musterd/muster/coordinator/lead/hosts"
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

// scene is a leader as a value over a store in memory, with the nodes n1 and n2 of
// eight GPUs. What the leader asks of the store waits until the test has it
// answered.
type scene struct {
	*Leader
	t     testing.TB
	kv    *mem.Store
	clock time.Time
	asked []post.Effect // writes and reads that have no answer yet
	left  []post.Effect // all effects since clear
	hosts map[resource.NodeID]StreamOpened
}

func newScene(t testing.TB) *scene {
	t.Helper()
	return newSceneOf(t, sceneRules())
}

// sceneRules are the rules of a scene that needs no others.
func sceneRules() Rules {
	return Rules{
		Id: "c1", ReservationTTL: time.Minute, VoteBudget: time.Minute, EvictionGrace: time.Second, RecordRetention: time.Minute, NamespaceAllocations: 20,
		Namespaces: map[string]Namespace{"default": {Admission: "queue"}},
	}
}

// newSceneOf has a leader with these rules.
func newSceneOf(t testing.TB, rules Rules) *scene {
	return newSceneOn(t, rules, mem.DefaultMaxTxnOps)
}

// quiet takes effects that no test looks at.
func quiet() *post.Post { return post.New(1, mem.DefaultMaxTxnOps, time.Time{}, [32]byte{}) }

// newSceneOn is a scene whose store takes so many operations in one Txn.
func newSceneOn(t testing.TB, rules Rules, ops int) *scene {
	t.Helper()
	x := &scene{t: t, kv: mem.Open(mem.Options{}), clock: time.Unix(1_700_000_000, 0), hosts: map[resource.NodeID]StreamOpened{}}
	t.Cleanup(func() { x.kv.Close() })
	at := x.put("/leader", nil)
	x.Leader = NewLeader(Beginning{
		Rules: rules,
		Epoch: resource.Epoch(at), Held: record.CreateRevIs("/leader", at), MaxOps: ops, Now: x.clock,
	})
	x.adoptions = map[resource.TxID]*adoption{}
	for _, id := range []resource.NodeID{"n1", "n2"} {
		x.connect(id)
	}
	x.answers()
	return x
}

// connect registers a node of eight GPUs and opens a stream to its agent.
func (x *scene) connect(id resource.NodeID) {
	x.t.Helper()
	profile, err := fake.Lookup("dgx-a100")
	if err != nil {
		x.t.Fatal(err)
	}
	host := grant.Host{Hostname: string(id), Topology: profile.Topology(), Inventory: profile.Inventory(string(id))}
	fits, err := fit.NewHost(host.Topology, host.Inventory, fit.Reserved{})
	if err != nil {
		x.t.Fatal(err)
	}
	incarnation := resource.Incarnation{JournalID: string(id), BootID: "b"}
	rev := x.put(record.NodeIdentityKey(id), record.MustEncode(record.NodeIdentity{Incarnation: incarnation}))
	spec := record.NodeSpec{Capacity: admission.CapacityOf(host, fits.Allocatable()), Allocatable: fits.Allocatable(), StartsWork: x.rules.StartsWork}
	spec.Topology.GPUModels, spec.Topology.GPUModel = []string{host.Inventory.Devices[0].Model}, make([]int, len(host.Inventory.Devices))
	specRev := x.put(record.NodeSpecKey(id), record.MustEncode(spec))
	x.hosts[id] = StreamOpened{Hello: grant.Hello{Node: id, Incarnation: incarnation, Revision: rev, Host: host}, Fit: fits}
	x.hear(x.hosts[id])
	x.give(NodeRegistered{Node: id, Spec: spec, Revision: specRev})
}

// storedAs is a record as the store has it, and its key; the zero value of both for none.
func storedAs[T record.Type](x *scene, key string) (r T, kv record.KV) {
	x.t.Helper()
	kv, found, _, err := x.kv.Get(x.t.Context(), key)
	if err == nil && found {
		r, err = record.Decode[T](key, kv.Value)
	}
	if err != nil {
		x.t.Fatal(err)
	}
	return r, kv
}

func (x *scene) put(key string, value []byte) resource.Revision {
	x.t.Helper()
	r, err := x.kv.Txn(x.t.Context(), record.Txn{Then: []record.Op{record.Put(key, value)}})
	if err != nil {
		x.t.Fatal(err)
	}
	return r.Revision
}

// give hands the leader an input, then has the leader schedule.
func (x *scene) give(in Input) { x.take(x.Apply(x.clock, in, nil)) }

// hear hands the leader a message of an agent.
func (x *scene) hear(e grant.Event) { x.give(AgentEvent{e}) }

// do has the leader run f as the handling of an input.
func (x *scene) do(f func()) { x.take(x.handle(x.clock, nil, f)) }

// finish is do, with all answers of the store.
func (x *scene) finish(f func()) {
	x.t.Helper()
	x.do(f)
	x.answers()
}

func (x *scene) take(effects []post.Effect) {
	for _, e := range x.Pass(x.clock, effects) {
		x.left = append(x.left, e)
		switch e.Kind {
		case post.WriteKeys, post.ReadKey, post.ReadNodeKeys:
			x.asked = append(x.asked, e)
		case post.EndTerm:
			x.t.Fatalf("the term ends: %v", e.Err)
		}
	}
}

// pass lets time pass, and alarms ring.
func (x *scene) pass(d time.Duration) {
	x.clock = x.clock.Add(d)
	x.give(AlarmDue{})
}

// submit submits an allocation of that many GPUs, with more in its specification.
func (x *scene) submit(name string, gpus int, more string) *work.Unit {
	x.t.Helper()
	document := fmt.Appendf(nil, `{"metadata":{"name":%q},"spec":{%s"resources":{"requests":{"nvidia.com/gpu":"%d"}}}}`, name, more, gpus)
	doc, status := api.DecodeAllocation(document)
	if status != nil {
		x.t.Fatal(status)
	}
	s, status := x.submissionOfAllocation(Submitted{Namespace: "default", Document: document}, doc)
	if status != nil {
		x.t.Fatal(status)
	}
	x.accepts(s)
	return s.units[0]
}

// accepted is submit, with all answers of the store.
func (x *scene) accepted(name string, gpus int, more string) *work.Unit {
	x.t.Helper()
	u := x.submit(name, gpus, more)
	x.answers()
	return u
}

// submitJob submits a job whose members have that many GPUs each: a gang of two,
// which grows to as many members.
func (x *scene) submitJob(name string, members, gpus int) *work.Unit {
	x.t.Helper()
	return x.submitDocument(fmt.Appendf(nil, `{"metadata":{"name":%q},"spec":{"parallelism":%d,"template":{"spec":{"resources":{"requests":{"nvidia.com/gpu":"%d"}},"scheduling":{"gangScheduling":{"minMembers":2}}}}}}`, name, members, gpus))
}

// submitDocument submits a job and returns its first unit.
func (x *scene) submitDocument(document []byte) *work.Unit {
	x.t.Helper()
	s := x.submissionOf(document)
	x.accepts(s)
	return s.units[0]
}

// submissionOf is the submission of a job.
func (x *scene) submissionOf(document []byte) *submission {
	x.t.Helper()
	doc, status := api.DecodeJob(document)
	if status != nil {
		x.t.Fatal(status)
	}
	s, status := x.submissionOfJob(Submitted{Namespace: "default", Document: document}, doc)
	if status != nil {
		x.t.Fatal(status)
	}
	return s
}

func (x *scene) accepts(s *submission) {
	x.t.Helper()
	x.do(func() {
		if _, _, status := x.accept(s); status != nil {
			x.t.Fatal(status)
		}
	})
}

// reply is what the agent of the unit's first node says of it.
func (x *scene) reply(u *work.Unit, state grant.State) grant.Replied {
	x.t.Helper()
	if u.Attempt == nil {
		x.t.Fatalf("%s has no attempt", u.Path)
	}
	id := u.Attempt.Machine.Nodes()[0]
	n := x.nodes[id]
	e := grant.Replied{Node: id, Tx: u.Attempt.Machine.ID(), Incarnation: n.incarnation, Revision: n.revision, State: state}
	if h := n.reservations[e.Tx]; h != nil && hosts.Holds(state) {
		e.Members = h.members
	}
	return e
}

// says has every node of a unit say that of it.
func (x *scene) says(u *work.Unit, state grant.State) {
	x.t.Helper()
	if u.Attempt == nil {
		x.t.Fatalf("%s has no attempt", u.Path)
	}
	for _, id := range u.Attempt.Machine.Nodes() {
		e := x.reply(u, state)
		n := x.nodes[id]
		e.Node, e.Incarnation, e.Revision = id, n.incarnation, n.revision
		if h := n.reservations[e.Tx]; h != nil && hosts.Holds(state) {
			e.Members = h.members
		}
		x.hear(e)
	}
}

// settles has all nodes of a unit report a state, and the store answer.
func (x *scene) settles(u *work.Unit, state grant.State) {
	x.t.Helper()
	x.says(u, state)
	x.answers()
}

// running submits an allocation and has the unit run.
func (x *scene) running(name string, gpus int, more string) *work.Unit {
	x.t.Helper()
	u := x.submit(name, gpus, more)
	x.settles(u, grant.Reserved)
	if u.Phase() != api.Running {
		x.t.Fatalf("%s is %s", u.Path, u.Phase())
	}
	return u
}

// answer has the store answer the oldest question.
func (x *scene) answer() {
	x.t.Helper()
	e := x.next()
	switch e.Kind {
	case post.ReadKey:
		kv, found, rev, err := x.kv.Get(x.t.Context(), e.Key)
		if err != nil {
			x.t.Fatal(err)
		}
		x.give(ReadAnswer{e.Token, kv, found, rev})
	default:
		write := record.Txn{If: e.Write.Compares, Then: e.Write.Ops}
		if !e.Write.AnyEpoch {
			write.If = append([]record.Compare{x.held}, write.If...)
		}
		r, err := x.kv.Txn(x.t.Context(), write)
		if err != nil {
			x.t.Fatal(err)
		}
		x.give(WriteAnswer{e.Token, map[bool]txn.Outcome{true: txn.Landed, false: txn.Conflict}[r.Succeeded], r.Revision, nil})
	}
}

// next takes the oldest question from those without an answer.
func (x *scene) next() post.Effect {
	x.t.Helper()
	if len(x.asked) == 0 {
		x.t.Fatal("the leader asks nothing of the store")
	}
	e := x.asked[0]
	x.asked = x.asked[1:]
	return e
}

// loses answers the oldest write with an unknown outcome, whether it lands or not.
func (x *scene) loses(lands bool) {
	x.t.Helper()
	e := x.next()
	if lands {
		if _, err := x.kv.Txn(x.t.Context(), record.Txn{If: e.Write.Compares, Then: e.Write.Ops}); err != nil {
			x.t.Fatal(err)
		}
	}
	x.give(WriteAnswer{e.Token, txn.Unknown, 0, record.ErrUnknownOutcome})
}

// answers has the store answer all questions.
func (x *scene) answers() {
	x.t.Helper()
	for len(x.asked) > 0 {
		x.answer()
	}
}

// clear forgets the effects so far.
func (x *scene) clear() { x.left = nil }

// commands are the effects since clear that are commands to agents, as Go types.
func (x *scene) commands() []string {
	var all []string
	for _, e := range x.left {
		if e.Kind == post.SendCommand {
			all = append(all, fmt.Sprintf("%s %s", e.Node, strings.TrimPrefix(fmt.Sprintf("%T", e.Command), "grant.")))
		}
	}
	return all
}

// did reports whether there was an effect of a kind since clear.
func (x *scene) did(kind post.Kind) bool {
	return slices.ContainsFunc(x.left, func(e post.Effect) bool { return e.Kind == kind })
}

// compares are the conditions of the oldest question, a write, in words.
func (x *scene) compares() string {
	x.t.Helper()
	if len(x.asked) == 0 || x.asked[0].Kind != post.WriteKeys {
		x.t.Fatalf("of %d questions the oldest is no write", len(x.asked))
	}
	var all []string
	for _, c := range x.asked[0].Write.Compares {
		kv, _, _, err := x.kv.Get(x.t.Context(), c.Key)
		if err != nil {
			x.t.Fatal(err)
		}
		what := "has changed"
		switch {
		case c.Rev == 0 && kv.ModRev == 0:
			what = "absent"
		case c.Target == record.CompareModRev && c.Rev == kv.ModRev:
			what = "unchanged"
		}
		all = append(all, x.named(c.Key)+" "+what)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// named is a key without what all have in common; a transaction has its unit's
// name.
func (x *scene) named(key string) string {
	for tx, a := range x.work.Attempts {
		key = strings.ReplaceAll(key, string(tx), a.Unit.Record.Name)
	}
	if rest, is := strings.CutPrefix(key, record.TxPrefix); is && strings.Contains(rest, ".") {
		return "tx/of nobody"
	}
	return strings.TrimPrefix(key, record.Root)
}

// whyNoVictims is why nobody gives way for a unit that waits.
func (x *scene) whyNoVictims(u *work.Unit) string {
	if e := x.evidenceOf(u); e != nil {
		return e.NoVictims
	}
	return ""
}
