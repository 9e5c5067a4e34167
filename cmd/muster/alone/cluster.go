package alone

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/admission"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// Options of a Cluster.
type Options struct {
	Nodes   int        // hosts n0001, n0002 and so on
	Machine string     // a profile of devices/fake; "" is dgx-a100
	Rules   lead.Rules // times that are zero are a coordinator's defaults
	// Begun is called when a unit's transaction is committed, with the unit's path;
	// nil for nobody.
	Begun func(path string)
	// Decided is called with each decision, in their order (decided.go); nil for nobody.
	Decided func(line string)
	// Around runs call, one call of the leader: with an input, or of a pass where in is
	// nil. A caller measures the leader alone with it; nil runs the calls and no more.
	Around func(in lead.Input, call func())
}

// Cluster is a leader with a store and agents that answer at once.
type Cluster struct {
	options Options
	leader  *lead.Leader
	epoch   resource.Epoch
	store   keys
	agents  map[resource.NodeID]*Agent
	paths   map[resource.TxID]string // of the units of transactions that are not committed

	now     time.Time
	second  time.Time // of the last SecondPassed
	wakeAt  time.Time // of the next AlarmDue, zero for none
	inputs  []lead.Input
	effects []post.Effect // used again
	asked   post.Token    // the last client's
	answer  *post.Effect  // to the last client, nil before it comes
	errors  []string      // that the leader has logged
}

// leaderKey is the key that each write of the leader compares.
var leaderKey = record.LeaderKey(1)

// New starts a Cluster at a time. Its leader knows the nodes, and nothing waits.
func New(o Options, now time.Time) *Cluster {
	c := newCluster(o, now)
	c.store.commit(nil, []record.Op{record.Put(leaderKey, nil)})
	for i := range o.Nodes {
		c.addNode(resource.NodeID(fmt.Sprintf("n%04d", i+1)))
	}
	c.Lead()
	return c
}

func newCluster(o Options, now time.Time) *Cluster {
	o.Rules.VoteBudget = cmp.Or(o.Rules.VoteBudget, 2*time.Second)
	o.Rules.ReservationTTL = cmp.Or(o.Rules.ReservationTTL, 10*time.Second)
	o.Rules.EvictionGrace = cmp.Or(o.Rules.EvictionGrace, lead.DefaultGrace*time.Second)
	o.Rules.RecordRetention = cmp.Or(o.Rules.RecordRetention, 10*time.Minute)
	if o.Around == nil {
		o.Around = func(_ lead.Input, call func()) { call() }
	}
	return &Cluster{options: o, store: keys{byID: map[string]record.KV{}}, agents: map[resource.NodeID]*Agent{}, now: now, second: now}
}

// Lead begins a term: a new leader loads the store, and the agents connect.
func (c *Cluster) Lead() {
	must(c.lead(c.loaded(), func() {}))
}

// loaded is the content of the store as a leader loads it.
func (c *Cluster) loaded() *lead.Loaded {
	in := &lead.Loaded{
		Nodes: c.store.below(record.NodesPrefix), Jobs: c.store.below(record.JobsPrefix), Units: c.store.below(record.UnitsPrefix),
		Orders: c.store.below(record.OrderPrefix), Txs: c.store.below(record.TxPrefix), Ready: c.store.below(record.ReadyPrefix), Quotas: c.store.below(record.QuotaPrefix),
	}
	for _, prefix := range edit.Prefixes() {
		in.Objects = append(in.Objects, c.store.below(prefix)...)
	}
	return in
}

// lead begins a term on a content of the store. further adds inputs before the first
// pass, once the agents have connected.
func (c *Cluster) lead(in *lead.Loaded, further func()) error {
	c.epoch++
	c.inputs, c.wakeAt, c.paths = nil, time.Time{}, map[resource.TxID]string{}
	c.leader = lead.NewLeader(lead.Beginning{
		Rules: c.options.Rules, Epoch: c.epoch, Held: c.held(), MaxOps: 2048, Now: c.now, Seed: [32]byte{byte(c.epoch)},
	})
	effects, err := c.leader.Load(c.now, *in, nil)
	if err != nil {
		return err
	}
	c.carryOut(effects)
	c.inputs = append(c.inputs, lead.ConfigWritten{}, lead.BeginAccount{}, lead.ResumeWork{})
	for _, id := range slices.SortedFunc(maps.Keys(c.agents), cmp.Compare[resource.NodeID]) {
		c.inputs = append(c.inputs, c.agents[id].Hello())
	}
	further()
	c.settle()
	return nil
}

// held is the compare of the leader's key.
func (c *Cluster) held() record.Compare {
	return record.CreateRevIs(leaderKey, c.store.byID[leaderKey].CreateRev)
}

// addNode registers a node as its agent would, and starts the agent.
func (c *Cluster) addNode(id resource.NodeID) {
	machine := c.options.Machine
	if machine == "" {
		machine = "dgx-a100"
	}
	profile, err := fake.Lookup(machine)
	must(err)
	host := grant.Host{Hostname: string(id), Topology: profile.Topology(), Inventory: profile.Inventory(string(id))}
	f, err := fit.NewHost(host.Topology, host.Inventory, fit.Reserved{})
	must(err)
	spec := record.NodeSpec{Hostname: string(id), Capacity: admission.CapacityOf(host, f.Allocatable()), Allocatable: f.Allocatable(), StartsWork: c.options.Rules.StartsWork, RunsContainers: c.options.Rules.StartsWork, MountsFolders: c.options.Rules.StartsWork}
	for _, d := range host.Inventory.Devices {
		spec.Topology.GPUModels, spec.Topology.GPUModel = []string{d.Model}, append(spec.Topology.GPUModel, 0)
	}
	who := resource.Incarnation{JournalID: string(id), BootID: "boot"}
	c.store.commit(nil, []record.Op{
		record.Put(record.NodeSpecKey(id), record.MustEncode(spec)),
		record.Put(record.NodeIdentityKey(id), record.MustEncode(record.NodeIdentity{Incarnation: who})),
	})
	c.agents[id] = NewAgent(id, host, f, who, c.store.at, c.now)
}

// Leader is the leader of the present term.
func (c *Cluster) Leader() *lead.Leader { return c.leader }

// Now is the cluster's time.
func (c *Cluster) Now() time.Time { return c.now }

// Keys are the store's keys below a prefix, ascending.
func (c *Cluster) Keys(prefix string) []record.KV { return c.store.below(prefix) }

// Put writes a key past the leader. The next term knows the key.
func (c *Cluster) Put(key string, value []byte) {
	c.store.commit(nil, []record.Op{record.Put(key, value)})
}

// Errors are the leader's log lines of the highest severity.
func (c *Cluster) Errors() []string { return c.errors }

// Apply hands the leader an input, and carries out everything that follows.
func (c *Cluster) Apply(in lead.Input) {
	c.inputs = append(c.inputs, in)
	c.settle()
}

// Ask serves a client's request. The answer is nil where it comes later.
func (c *Cluster) Ask(r lead.Request) (result any, status *api.Status) {
	c.asked++
	c.answer = nil
	c.Apply(lead.ClientRequest{Token: c.asked, Request: r})
	if c.answer == nil {
		return nil, nil
	}
	return c.answer.Result, c.answer.Status
}

// AdvanceTo lets time pass. Alarms come when they are due. SecondPassed comes
// once, if a second has passed since it came last, however many have.
func (c *Cluster) AdvanceTo(t time.Time) {
	for !c.wakeAt.IsZero() && !c.wakeAt.After(t) {
		c.now, c.wakeAt = c.wakeAt, time.Time{}
		c.Apply(lead.AlarmDue{})
	}
	c.now = t
	if t.Sub(c.second) >= time.Second {
		c.second = t
		c.Apply(lead.SecondPassed{})
	}
}

func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("alone: %v", err))
	}
}
