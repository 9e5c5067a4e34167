package sim

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/invariant"
)

// client wants one unit, and sooner or later its end. Where units are evicted, or
// lost with their nodes, it asks for a job, whose unit waits anew then.
type client struct {
	index     int
	name      string
	namespace string
	group     string
	queue     string
	priority  int32
	demand    place.Unit
	kind      record.UnitKind
	gang      string // the group of allocations that it joins, "" for none
	members   int    // of the group that start together
	policy    string // whom it may evict
	rule      rule
	other     int    // devices of a member by the alternative, 0 for none
	inRack    bool   // all members of the job, or of the group, run in one rack
	subgroup  int    // members of each subgroup, which alone run in one rack; 0: all of them
	part      string // the subgroup of a member of a group, likewise
	differs   bool   // the last member asks for so many GPUs
	last      int
	heals     bool // the job goes on without members whose nodes are dead
	units     int  // the most that its job may have had; 0 and 1 are one

	evicted int // how often, since the faults have ended

	asked *term            // where it waits for an answer
	acked resource.UnitUID // what it was told it has, "" for nothing
	ends  bool             // it has asked for the end
	over  bool
}

func (c *client) path() record.UnitPath {
	return record.UnitPath{Namespace: c.namespace, Kind: c.kind, Name: c.name}
}

// unit is a client's unit in the store; false where it is not there.
func (s *Sim) unit(c *client) (record.Unit, bool) {
	kv, exists := s.store.keys[c.path().Key()]
	if !exists {
		return record.Unit{}, false
	}
	return s.store.units.of(kv), true
}

// policies are those of clients where units are evicted: one without a policy takes
// back what is its own by quota, and nothing else.
var policies = []string{"PreemptLowerPriority", "PreemptLowerPriority", "PreemptLowerPriority", "Never", ""}

// actClient lets a new client ask a leader.
func (s *Sim) actClient() bool {
	if most := 8; len(s.live) >= most && (!s.evictions || len(s.live) >= 2*most) {
		return false
	}
	c := &client{
		index: len(s.clients), name: fmt.Sprintf("u%d", len(s.clients)+1), namespace: pick(s, namespaces), group: pick(s, groups),
		queue: pick(s, queues), priority: int32(s.rng.IntN(3)), kind: record.JobUnit, policy: "Never",
	}
	if c.namespace == "z" {
		c.group = groupOfZ
	}
	c.demand = place.Unit{Members: 1, Request: resource.Request{GPUs: 1 + s.rng.IntN(2), CPU: 1000}}
	if s.rng.IntN(3) == 0 {
		c.demand.Members = 2 + s.rng.IntN(2)
	}
	if s.evictions {
		c.policy = pick(s, policies)
		c.priority += int32(s.rng.IntN(4))
	}
	if !s.evictions && !s.fences && c.demand.Members == 1 && s.rng.IntN(2) == 0 {
		c.kind = record.AllocUnit
	}
	if s.rules {
		c.rule = pick(s, drawnRules)
	}
	if s.domains && s.subgroups && s.rng.IntN(3) > 0 {
		c.kind, c.rule, c.inRack, c.demand.Members, c.subgroup = record.JobUnit, noRule, true, 2, 2
		s.stats["gangs with subgroups"]++
	}
	if c.kind == record.AllocUnit && s.rng.IntN(2) == 0 {
		s.joinGroup(c)
	}
	if c.inRack && c.kind == record.AllocUnit {
		s.stats["members of groups in one rack"]++
	}
	if s.domains && !c.inRack && c.kind == record.JobUnit && c.rule == noRule && c.demand.Members > 1 && s.rng.IntN(2) == 0 {
		c.inRack = true
		s.stats["gangs in one rack"]++
	}
	if s.heals && s.fences && c.kind == record.JobUnit && !c.inRack && c.demand.Members > 1 && s.rng.IntN(4) > 0 {
		c.heals = true
		if c.rule == noRule { // one loss is not to take all of them
			c.rule = members
		}
		s.stats["gangs that heal"]++
	}
	if s.heals && s.fences && c.inRack && c.kind == record.JobUnit && c.index%2 == 0 {
		c.heals = true
		s.stats["gangs in one rack that heal"]++
	}
	if s.alternatives && c.gang == "" && s.rng.IntN(2) == 0 {
		c.other = 3 - c.demand.Request.GPUs
		s.stats["units with an alternative"]++
	}
	if s.sets && c.subgroup == 0 && c.kind == record.JobUnit && c.other == 0 && c.demand.Members > 1 && s.rng.IntN(2) == 0 {
		c.differs, c.last = true, pick(s, []int{0, 3 - c.demand.Request.GPUs})
		s.stats["gangs whose members differ"]++
	}
	s.clients, s.live = append(s.clients, c), append(s.live, c)
	s.checker.Demanded(c.path(), c.wants(c.demand.Members))
	s.logf("client %s: wants %d times %d GPUs for %s and %s, in queue %q with priority %d and policy %q in group %q", c.name, c.demand.Members, c.demand.Request.GPUs, c.namespace, c.group, c.queue, c.priority, c.policy, c.gang)
	return true
}

// wants is what a unit of the client asks for.
func (c *client) wants(members int) invariant.Wants {
	return invariant.Wants{Members: members, GPUs: c.demand.Request.GPUs, Alternative: c.other, Differs: c.differs, Last: c.last}
}

// joinGroup has a client ask for a member of a group: of the last one that is short of
// members, else of a new one.
func (s *Sim) joinGroup(c *client) {
	if last := s.lastOfGroup; last != nil && !last.ends && s.inGroup(last.gang) < last.members {
		c.gang, c.members, c.namespace, c.group, c.queue, c.priority = last.gang, last.members, last.namespace, last.group, last.queue, last.priority
		if c.inRack = last.inRack; c.inRack {
			c.rule = noRule
		}
		if last.part != "" {
			c.part = fmt.Sprint("part-", s.inGroup(last.gang)%2)
		}
	} else {
		c.gang, c.members = "g-"+c.name, 2+s.rng.IntN(2)
		if c.inRack = s.domains && c.rule == noRule && c.index%2 == 0; c.inRack && s.subgroups {
			c.part = "part-0"
		}
	}
	if c.part != "" {
		s.stats["members of groups with subgroups"]++
	}
	s.lastOfGroup = c
	s.stats["members of groups"]++
}

// inGroup counts the clients of a group.
func (s *Sim) inGroup(gang string) (n int) {
	for _, c := range s.clients {
		if c.gang == gang {
			n++
		}
	}
	return n
}

// spec is what each member of the client's unit asks for.
func (c *client) spec() api.AllocationSpec {
	spec := api.AllocationSpec{
		Resources:        api.Requirements{Requests: map[resource.Name]string{resource.CPU: "1", resource.GPU: fmt.Sprint(c.demand.Request.GPUs)}},
		PreemptionPolicy: c.policy,
	}
	spec.Scheduling = c.rule.scheduling(c.team())
	if c.other > 0 {
		spec.Alternatives = []api.Alternative{{Resources: &api.Requirements{Requests: map[resource.Name]string{resource.CPU: "1", resource.GPU: fmt.Sprint(c.other)}}}}
	}
	if c.namespace != "z" {
		spec.Quota = &api.QuotaDemand{Groups: map[string]string{treeName: c.group}}
	}
	return spec
}

// levels are the levels of domains of the client's gang.
func (c *client) levels() []api.TopologyLevel {
	if !c.inRack {
		return nil
	}
	level := api.TopologyLevel{TopologyKey: rackLabel}
	if c.subgroup > 0 || c.part != "" {
		level.WhenUnsatisfiable = api.ScheduleAnyway
	}
	return []api.TopologyLevel{level}
}

// subgroups is the rule of the client's gang about subgroups.
func (c *client) subgroups() *api.Subgroup {
	if c.subgroup == 0 && c.part == "" {
		return nil
	}
	return &api.Subgroup{Members: int32(c.subgroup), Name: c.part, TopologyKey: rackLabel}
}

// submission is the client's document as a request.
func (c *client) submission() lead.Request {
	meta := api.ObjectMeta{Name: c.name, Namespace: c.namespace, Labels: c.labels()}
	submitted := func(document []byte) lead.Submitted {
		sum := sha256.Sum256(document)
		return lead.Submitted{Namespace: c.namespace, Document: document, Hash: hex.EncodeToString(sum[:16]), RequestID: c.name}
	}
	if c.kind == record.AllocUnit {
		spec := c.spec()
		spec.Priority, spec.Queue = &c.priority, c.queue
		if c.gang != "" {
			members := int32(c.members)
			spec.GangScheduling = &api.GangScheduling{GroupID: c.gang, MinMembers: &members, Topology: c.levels(), Subgroup: c.subgroups()}
		}
		document := encoded(api.Allocation{APIVersion: api.APIVersion, Kind: api.KindAllocation, Metadata: meta, Spec: spec})
		doc, status := api.DecodeAllocation(document)
		mustTake(status)
		return lead.CreateAllocation{Submitted: submitted(document), Document: doc}
	}
	members := int32(c.demand.Members)
	spec := c.spec()
	spec.Scheduling.GangScheduling = &api.GangScheduling{MinMembers: &members, Topology: c.levels(), Subgroup: c.subgroups()}
	job := api.JobSpec{Queue: c.queue, Parallelism: &members, Priority: &c.priority, Template: api.Template{Spec: spec}}
	if c.heals {
		job.OnMemberLost = "Replace"
	}
	if c.differs {
		last := api.Requirements{Requests: map[resource.Name]string{resource.CPU: "1", resource.GPU: fmt.Sprint(c.last)}}
		job.Members = []api.MemberSet{{Name: "first", Count: members - 1}, {Name: "last", Count: 1, Resources: &last}}
	}
	document := encoded(api.Job{APIVersion: api.APIVersion, Kind: api.KindJob, Metadata: meta, Spec: job})
	doc, status := api.DecodeJob(document)
	mustTake(status)
	return lead.CreateJob{Submitted: submitted(document), Document: doc}
}

// mustTake is must for a document of a client.
func mustTake(status *api.Status) {
	if status != nil {
		panic("sim: " + status.Message)
	}
}

// actRetry lets a client ask that has no answer yet.
func (s *Sim) actRetry() bool {
	var fit []*client
	for _, c := range s.live {
		if c.acked == "" && !c.over && (c.asked == nil || c.asked.ended || s.rng.IntN(16) == 0) {
			fit = append(fit, c)
		}
	}
	if len(fit) == 0 {
		return false
	}
	return s.withTerm(nil, func(t *term) {
		c := pick(s, fit)
		s.logf("client %s: asks %s", c.name, t.name)
		c.asked = t
		t.ask("what "+c.name+" wants", s.asUser(c, c.submission()), func(e effect) { t.created(c, e) })
	})
}

// created takes the answer to a submission. The answer may be lost.
func (t *term) created(c *client, e effect) {
	s := t.sim
	if c.asked == t {
		c.asked = nil
	}
	if c.acked != "" || c.over {
		return
	}
	switch {
	case e.Status == nil && s.mishap(10):
	case e.Status == nil:
		made := e.Result.(lead.Created)
		s.told(c, made)
	case e.Status.Code == 409 && strings.Contains(e.Status.Message, "Idempotency-Key"):
		c.over = true // it was made and has ended
	case e.Status.Code == 409 && (strings.Contains(e.Status.Message, "already exists") || strings.Contains(e.Status.Message, "is taken")):
		if u, exists := s.unit(c); exists { // an operator has adopted it; the client looks
			s.ack(c, u.UID)
		}
	case s.isTurnedAway(e.Status):
		c.over = true
		s.stats["turned away by a queue"]++
	case e.Status.Code != 409 && e.Status.Code != 503:
		s.fail("client", "%s is refused: %s", c.name, e.Status.Message)
	}
}

// told acknowledges a unit to its client. The answer names the object; the store
// has the unit of that.
func (s *Sim) told(c *client, made lead.Created) {
	u, exists := s.unit(c)
	uid := resource.UnitUID("none")
	switch {
	case made.Allocation != nil:
		uid = resource.UnitUID(made.Allocation.Metadata.UID)
	case exists:
		if j, _ := value[record.Job](s.store, record.JobKey(c.namespace, c.name)); j.UID == made.Job.Metadata.UID {
			uid = u.UID
		}
	}
	s.ack(c, uid)
}

func (s *Sim) ack(c *client, uid resource.UnitUID) {
	s.violated(s.checker.Told(c.path(), uid))
	c.acked = uid
	s.changed = true
	s.logf("client %s: is told of %s", c.name, uid)
}

// actRelease lets a client give back what it has.
func (s *Sim) actRelease() bool {
	var fit []*client
	s.live = slices.DeleteFunc(s.live, func(c *client) bool {
		_, exists := s.unit(c)
		return c.over || c.ends && !exists
	})
	for _, c := range s.live {
		if c.acked != "" {
			fit = append(fit, c)
		}
	}
	if len(fit) == 0 {
		return false
	}
	return s.withTerm(nil, func(t *term) { t.release(pick(s, fit), int64(s.rng.IntN(20))) })
}

// release asks for a unit's end.
func (t *term) release(c *client, grace int64) {
	t.sim.endAsked(c)
	t.sim.logf("client %s: asks %s for its end", c.name, t.name)
	t.ask("the end of "+c.name, c.ending(grace), func(effect) {})
}

// patience is how often a client lets its unit be evicted while the run comes to
// its end.
const patience = 4

// tire lets the client of a unit that was evicted end it once it has no patience
// left: two units whose quota is in use by each other evict each other in turn,
// without end.
func (t *term) tire(path string) {
	c := t.sim.clientOf(path)
	if c == nil || t.sim.faults {
		return
	}
	if c.evicted++; c.evicted == patience {
		t.sim.stats["clients without patience"]++
		t.sim.reply("patience of "+c.name, func() {
			if !t.ended {
				t.release(c, 0)
			}
		})
	}
}

func (c *client) ending(grace int64) lead.Request {
	o := api.DeleteOptions{GracePeriodSeconds: &grace, Reason: "deleted"}
	if c.kind == record.AllocUnit {
		return lead.DeleteAllocation{Namespace: c.namespace, Name: c.name, Options: o}
	}
	return lead.EndJob{Namespace: c.namespace, Name: c.name, Options: o, Remove: true}
}

// actEvict lets an operator evict what runs.
func (s *Sim) actEvict() bool {
	return s.withTerm(nil, func(t *term) {
		if len(s.live) == 0 {
			return
		}
		c := pick(s, s.live)
		u, _ := s.unit(c)
		if u.TxID == "" || u.Phase != running {
			return
		}
		s.logf("%s: an operator evicts %s", t.name, c.name)
		s.evictionAsked(u.TxID)
		t.ask("the eviction of "+c.name, lead.EvictUnit{Options: lead.EvictOptions{Tx: u.TxID}, Notice: notice(int64(s.rng.IntN(10)))}, func(effect) {})
	})
}

// clientOf is the client whose unit has a path; nil for none.
func (s *Sim) clientOf(path string) *client {
	i := slices.IndexFunc(s.clients, func(c *client) bool { return c.path().String() == path })
	if i < 0 {
		return nil
	}
	return s.clients[i]
}

// unbounded is the limit of what is adopted: it runs already.
const unbounded = math.MaxInt64
