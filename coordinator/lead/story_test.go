package lead_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/admission"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/storydoc"
)

// story is a leader with a store, agents and clients that act only when they are
// told to. Each agent decides with a real ledger, and the store is a real one in
// memory.
type story struct {
	t      testing.TB
	l      *lead.Leader
	epoch  resource.Epoch
	now    time.Time
	store  *mem.Store
	agents map[resource.NodeID]*storyAgent

	client post.Token
	// asks are the writes and reads that the store has not answered, the oldest
	// first; settling are the questions whether all has settled.
	asks     []post.Effect
	settling []post.Token
	txs      []resource.TxID // in the order of their first mention
	alarm    time.Time       // the last WakeAt, if it is to come
	told     strings.Builder // what happened since it was shown

	// The next fields configure the leaders that come.
	evictOnDeviceLost, requireNamespaces, rejectUnsatisfiable bool

	placementPolicy, preemptionPolicy string
	// counts are the counted resources that nodes declare when they come.
	counts     map[resource.NodeID][]grant.Count
	namespaces map[string]lead.Namespace
	statuses   resource.Revision
}

// storyAgent is an agent that carries out one command at a time.
type storyAgent struct {
	ledger    *ledger.Ledger
	connected bool
	commands  []grant.Command
}

func newStory(t testing.TB) *story {
	s := &story{
		t: t, epoch: 1, now: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC),
		store: mem.Open(mem.Options{}), agents: map[resource.NodeID]*storyAgent{}, counts: map[resource.NodeID][]grant.Count{},
	}
	t.Cleanup(func() { s.store.Close() })
	return s
}

func storyHost(t testing.TB, node resource.NodeID) (grant.Host, *fit.Host) {
	t.Helper()
	profile, err := fake.Lookup("dgx-a100")
	if err != nil {
		t.Fatal(err)
	}
	h := grant.Host{Hostname: string(node), Topology: profile.Topology(), Inventory: profile.Inventory(string(node))}
	f, err := fit.NewHost(h.Topology, h.Inventory, fit.Reserved{})
	if err != nil {
		t.Fatal(err)
	}
	return h, f
}

// hostOf is the host of a node with its counted resources.
func (s *story) hostOf(node resource.NodeID) (grant.Host, *fit.Host) {
	s.t.Helper()
	host, f := storyHost(s.t, node)
	host.Counts = s.counts[node]
	f, err := f.WithCounts(grant.AmountsOf(host.Counts))
	if err != nil {
		s.t.Fatal(err)
	}
	return host, f
}

// declare has a node declare a counted resource: NAME=AMOUNT, NAME=AMOUNT/KIND or
// NAME=AMOUNT/KIND/UNIT. The names ascend.
func (s *story) declare(node resource.NodeID, name, text string) {
	s.t.Helper()
	words := append(strings.Split(text, "/"), "", "")
	c := grant.Count{Name: resource.Name(name), Amount: int64(storydoc.Number(words[0])), Kind: words[1], Unit: words[2]}
	if c.Kind == "" && resource.IsExtended(c.Name) {
		c.Kind = grant.KindCount
	}
	s.counts[node] = append(s.counts[node], c)
	if err := grant.CheckCounts(s.counts[node]); err != nil {
		s.t.Fatal(err)
	}
}

func incarnationOf(node resource.NodeID) resource.Incarnation {
	return resource.Incarnation{JournalID: string(node), BootID: "boot"}
}

func (s *story) put(ops ...record.Op) resource.Revision {
	s.t.Helper()
	r, err := s.store.Txn(s.t.Context(), record.Txn{Then: ops})
	if err != nil {
		s.t.Fatal(err)
	}
	return r.Revision
}

// addNode registers a node with eight GPUs.
func (s *story) addNode(node resource.NodeID, labels map[string]string) {
	host, f := s.hostOf(node)
	capacity := admission.CapacityOf(host, f.Allocatable())
	spec := record.NodeSpec{Hostname: string(node), Labels: labels, Capacity: capacity, Allocatable: f.Allocatable(), Counts: host.Counts}
	for _, d := range host.Inventory.Devices {
		spec.Topology.GPUModels, spec.Topology.GPUModel = []string{d.Model}, append(spec.Topology.GPUModel, 0)
	}
	a := &storyAgent{ledger: ledger.New(f)}
	s.agents[node] = a
	revision := s.put(
		record.Put(record.NodeSpecKey(node), record.MustEncode(spec)),
		record.Put(record.NodeIdentityKey(node), record.MustEncode(record.NodeIdentity{Incarnation: incarnationOf(node)})),
	)
	s.decide(a, ledger.Start{Incarnation: incarnationOf(node)})
	s.decide(a, ledger.Registered{Revision: revision})
}

// lead begins a term: the leader loads the store and goes on.
func (s *story) lead() {
	s.epoch++
	s.asks, s.settling, s.alarm = nil, nil, time.Time{}
	for _, a := range s.agents {
		a.connected, a.commands = false, nil
		s.decide(a, ledger.NewEpoch{Epoch: s.epoch})
	}
	s.l = lead.NewLeader(lead.Beginning{
		Rules: lead.Rules{
			NamespaceAllocations: 100, VoteBudget: 2 * time.Second, ReservationTTL: 10 * time.Second, EvictionGrace: 30 * time.Second, RecordRetention: 10 * time.Minute,
			Namespaces: s.namespaces, RequireNamespaces: s.requireNamespaces, EvictOnDeviceLost: s.evictOnDeviceLost, RejectUnsatisfiable: s.rejectUnsatisfiable, PlacementPolicy: s.placementPolicy, PreemptionPolicy: s.preemptionPolicy,
		},
		Epoch: s.epoch, Held: record.CreateRevIs("leader", resource.Revision(s.epoch)), MaxOps: 128, Now: s.now, Seed: [32]byte{byte(s.epoch)},
	})
	all := func(prefix string) []record.KV {
		kvs, _, err := s.store.Range(s.t.Context(), prefix, store.RangeOptions{})
		if err != nil {
			s.t.Fatal(err)
		}
		return kvs
	}
	effects, err := s.l.Load(s.now, lead.Loaded{
		Nodes: all(record.NodesPrefix), Bans: all(record.BansPrefix), Quotas: all(record.QuotaPrefix), Jobs: all(record.JobsPrefix),
		Units: all(record.UnitsPrefix), Orders: all(record.OrderPrefix), Txs: all(record.TxPrefix), Ready: all(record.ReadyPrefix), Requests: all(record.RequestsPrefix),
		Objects: append(append(all(record.TenantsPrefix), queueing("a", "b")...), slices.Concat(all(record.NamespacesPrefix), all(record.QueuesPrefix), all(record.PriorityClassesPrefix))...), Configured: all(record.ConfiguredKey),
	}, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.carry(effects)
	s.configure()
	s.carry(s.l.Apply(s.now, lead.BeginAccount{}, nil))
	s.apply(lead.ResumeWork{})
}

// configure writes the objects of the configuration, as the shell does.
func (s *story) configure() {
	ops := s.l.ConfigOps()
	if len(ops) == 0 {
		s.carry(s.l.Apply(s.now, lead.ConfigWritten{}, nil))
		return
	}
	fmt.Fprintf(&s.told, "  write at the start: %s\n", s.named(storydoc.Write(post.Write{Ops: ops}, s.key)))
	s.carry(s.l.Apply(s.now, lead.ConfigWritten{Count: len(ops), Revision: s.put(ops...)}, nil))
}

// queueing are objects of namespaces where an allocation over quota waits.
func queueing(names ...string) []record.KV {
	kvs := make([]record.KV, len(names))
	for i, name := range names {
		document := fmt.Appendf(nil, `{"metadata":{"name":%q},"spec":{"admission":"queue"}}`, name)
		kvs[i] = record.KV{Key: record.NamedKey(record.NamespacesPrefix, name), Value: record.MustEncode(record.Object{UID: name, Name: name, Document: document}), ModRev: 1}
	}
	return kvs
}

// apply hands the leader an input and then has it try what waits, as the shell
// does.
func (s *story) apply(in lead.Input) {
	s.t.Helper()
	s.carry(s.l.Apply(s.now, in, nil))
	s.carry(s.l.Pass(s.now, nil))
	if err := s.l.Check(); err != nil {
		s.t.Fatalf("after %T: %v\n%s", in, err, s.told.String())
	}
}

// carry notes effects, and keeps those that somebody is to answer.
func (s *story) carry(effects []post.Effect) {
	for _, e := range effects {
		switch e.Kind {
		case post.SendCommand:
			if a := s.agents[e.Node]; a.connected {
				a.commands = append(a.commands, e.Command)
			}
		case post.WriteKeys, post.ReadKey:
			s.asks = append(s.asks, e)
		case post.WakeAt:
			s.alarm = e.At
		case post.AskSettled:
			s.settling = append(s.settling, e.Token)
		}
		if text := s.show(e); text != "" {
			fmt.Fprintf(&s.told, "  %s\n", text)
		}
	}
}

// connect opens the stream to an agent, which tells everything that it holds.
func (s *story) connect(node resource.NodeID) {
	a := s.agents[node]
	a.connected = true
	host, f := s.hostOf(node)
	s.apply(lead.AgentEvent{Event: lead.StreamOpened{
		Hello: grant.Hello{Node: node, Incarnation: incarnationOf(node), Revision: a.ledger.Registration(), Host: host, Occupancy: a.occupancy()}, Fit: f,
	}})
}

func (a *storyAgent) occupancy() grant.Occupancy {
	o := grant.Occupancy{Health: map[int]grant.DeviceHealth{}}
	for _, g := range a.ledger.Snapshot().GPUs {
		if g.Health != devices.OK {
			o.Health[g.Index] = grant.DeviceHealth{Health: g.Health, Reason: g.Reason}
		}
	}
	for _, g := range a.ledger.Snapshot().Grants {
		o.Grants = append(o.Grants, grant.Grant{
			Tx: g.Tx, Unit: g.Unit, Epoch: g.Epoch, State: g.State, Members: membersOf(g.Members), Name: g.Name, Tenant: g.Tenant, Origin: g.Origin.String(),
		})
	}
	return o
}

func membersOf(held []ledger.Holding) []grant.Member {
	var members []grant.Member
	for _, h := range held {
		members = append(members, grant.Member{Index: h.Index, Assignment: h.Assignment})
	}
	return members
}

// setLost has an agent find a GPU lost, or back, and say so on its stream.
func (s *story) setLost(node resource.NodeID, gpu int, lost bool) {
	a := s.agents[node]
	c := ledger.SetHealth{Device: gpu, Health: devices.OK}
	if lost {
		c.Health, c.Reason = devices.Tainted, devices.LostReason
	}
	s.decide(a, c)
	s.apply(lead.AgentEvent{Event: grant.HealthChanged{Node: node, Health: a.occupancy().Health}})
}

// reportLost has the store take a heartbeat that names GPUs as lost and held.
func (s *story) reportLost(node resource.NodeID, gpus []string) {
	host, _ := storyHost(s.t, node)
	message := ""
	for _, gpu := range gpus {
		message += host.Inventory.Devices[storydoc.Number(gpu)].UUID + " "
	}
	s.statuses++
	s.apply(lead.NodeFacts{Node: node, Leased: true, Status: record.KV{
		Key: record.NodeStatusKey(node), ModRev: s.statuses,
		Value: record.MustEncode(record.NodeStatus{Conditions: []record.Condition{{Type: "DeviceLost", Status: "True", Reason: "HeldDeviceGone", Message: message + "; held, and gone"}}}),
	}})
}

// decide has an agent decide a command.
func (s *story) decide(a *storyAgent, c ledger.Command) ledger.Reply {
	s.t.Helper()
	reply, events := a.ledger.Decide(s.now, c)
	for _, e := range events {
		if err := a.ledger.Apply(e); err != nil {
			s.t.Fatal(err)
		}
	}
	return reply
}

// obey has an agent carry out its oldest command and answer.
func (s *story) obey(node resource.NodeID) {
	s.t.Helper()
	a := s.agents[node]
	if len(a.commands) == 0 {
		s.t.Fatalf("%s has no command", node)
	}
	c := a.commands[0]
	a.commands = a.commands[1:]
	if _, all := c.(grant.Resync); all {
		fmt.Fprintf(&s.told, "  (%s tells all that it holds)\n", node)
		s.apply(lead.AgentEvent{Event: grant.Occupied{Node: node, Occupancy: a.occupancy()}})
		return
	}
	s.answer(node, s.decide(a, c.(ledger.Command)))
}

// refuse has an agent say No to its oldest Reserve, and drops what came before.
func (s *story) refuse(node resource.NodeID) {
	s.t.Helper()
	a := s.agents[node]
	for len(a.commands) > 0 {
		c := a.commands[0]
		a.commands = a.commands[1:]
		if r, is := c.(grant.Reserve); is {
			s.answer(node, ledger.Reply{Tx: r.Tx, Reasons: []resource.Reason{{Code: resource.ReasonInsufficient, Resource: resource.GPU, Want: 4000}}})
			return
		}
	}
	s.t.Fatalf("%s has no Reserve", node)
}

// answer sends what an agent says of transactions.
func (s *story) answer(node resource.NodeID, r ledger.Reply) {
	a := s.agents[node]
	state := r.State
	if len(r.Reasons) > 0 {
		state = grant.No
	}
	said := []grant.Replied{}
	if r.Tx != "" {
		said = append(said, grant.Replied{Tx: r.Tx, State: state, Members: membersOf(r.Members), Reasons: r.Reasons})
	}
	for _, tx := range r.Woken {
		g, _ := a.ledger.Lookup(tx)
		said = append(said, grant.Replied{Tx: tx, State: g.State, Members: membersOf(g.Members)})
	}
	for _, e := range said {
		e.Node, e.Incarnation, e.Revision = node, incarnationOf(node), a.ledger.Registration()
		fmt.Fprintf(&s.told, "  (%s says that %s is %s)\n", node, s.name(e.Tx), e.State)
		if a.connected {
			s.apply(lead.AgentEvent{Event: e})
		}
	}
}

// stop ends the workloads of an agent that are to end.
func (s *story) stop(node resource.NodeID) {
	a := s.agents[node]
	for _, g := range a.ledger.Snapshot().Grants {
		if g.State == grant.Evicting || g.State == grant.Stopping {
			s.answer(node, s.decide(a, ledger.Stopped{Tx: g.Tx}))
		}
	}
}

// fate is what becomes of a write and its answer.
type fate int

const (
	answered fate = iota
	answerLost
	writeLost
)

// storeAnswers has the store answer the oldest write or read.
func (s *story) storeAnswers(f fate) {
	s.t.Helper()
	if len(s.asks) == 0 {
		s.t.Fatal("nobody has asked the store anything")
	}
	e := s.asks[0]
	s.asks = s.asks[1:]
	if e.Kind == post.ReadKey {
		kv, found, revision, err := s.store.Get(s.t.Context(), e.Key)
		if err != nil {
			s.t.Fatal(err)
		}
		s.apply(lead.ReadAnswer{Token: e.Token, Kv: kv, Found: found, Revision: revision})
		return
	}
	in := lead.WriteAnswer{Token: e.Token, Outcome: txn.Unknown}
	if f != writeLost {
		result, err := s.store.Txn(s.t.Context(), record.Txn{If: e.Write.Compares, Then: e.Write.Ops})
		if err != nil {
			s.t.Fatal(err)
		}
		switch {
		case f == answerLost:
		case result.Succeeded:
			in.Outcome, in.Revision = txn.Landed, result.Revision
		default:
			in.Outcome = txn.Conflict
		}
	}
	s.apply(in)
}

// settle has agents and the store answer until nothing is left to answer.
func (s *story) settle() {
	s.t.Helper()
	for range 10_000 {
		waiting := slices.Collect(func(yield func(resource.NodeID) bool) {
			for _, node := range s.nodes() {
				if a := s.agents[node]; a.connected && len(a.commands) > 0 && !yield(node) {
					return
				}
			}
		})
		switch {
		case len(waiting) > 0:
			s.obey(waiting[0])
		case len(s.asks) > 0:
			s.storeAnswers(answered)
		case len(s.settling) > 0:
			token := s.settling[0]
			s.settling = s.settling[1:]
			s.apply(lead.SettleAnswer{Token: token})
		default:
			return
		}
	}
	s.t.Fatal("it goes on for ever")
}

func (s *story) nodes() []resource.NodeID {
	var nodes []resource.NodeID
	for node := range s.agents {
		nodes = append(nodes, node)
	}
	slices.Sort(nodes)
	return nodes
}

// pass lets time pass, with each alarm in its time.
func (s *story) pass(wait time.Duration) {
	until := s.now.Add(wait)
	for !s.alarm.IsZero() && !s.alarm.After(until) {
		s.now, s.alarm = s.alarm, time.Time{}
		s.apply(lead.AlarmDue{})
	}
	s.now = until
}

// ask is a client's request.
func (s *story) ask(r lead.Request) {
	s.client++
	s.apply(lead.ClientRequest{Token: s.client, Request: r})
}

// create submits an allocation.
func (s *story) create(namespace, document string) {
	s.t.Helper()
	doc, status := api.DecodeAllocation([]byte(document))
	if status != nil {
		s.t.Fatal(status)
	}
	s.ask(lead.CreateAllocation{Submitted: lead.Submitted{Namespace: namespace, Document: []byte(document)}, Document: doc, Wait: time.Minute})
}

// createJob submits a job.
func (s *story) createJob(namespace, document string) {
	s.t.Helper()
	doc, status := api.DecodeJob([]byte(document))
	if status != nil {
		s.t.Fatal(status)
	}
	s.ask(lead.CreateJob{Submitted: lead.Submitted{Namespace: namespace, Document: []byte(document)}, Document: doc, Wait: time.Minute})
}
