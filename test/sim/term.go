package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// What the leader is told by configuration.
const (
	voteBudget     = 5 * time.Second
	reservationTTL = 10 * time.Second
	evictionGrace  = 5 * time.Second
	waitingTTL     = evictionGrace + 15*time.Second
	longestTTL     = max(reservationTTL, waitingTTL)
	treeName       = "t"
	maxOps         = 128 // of a Txn
)

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// term is one coordinator's time as the leader, or what it takes for that: a
// deposed leader goes on until it notices. The leader is the real one; the term
// stands for the coordinator's loop, its committer and its pool of streams.
type term struct {
	resumed bool // it has gone on with the work of the term before
	*lead.Leader
	sim         *Sim
	name        string
	coordinator *coordinator
	key         string // of the election
	epoch       resource.Epoch
	ended       bool

	skipped time.Duration // by which its clock is ahead of the world's
	wakeAt  time.Time     // zero: no alarm is set
	links   map[resource.NodeID]*link

	committer
	status    []effect             // writes of status that are to land
	underWay  map[post.Token]bool  // writes and reads without an answer
	settles   []settling           // questions whether all that had landed is known
	asked     post.Token           // the last client's
	calls     map[post.Token]*call // of clients and operators
	followed  map[resource.NodeID]lead.NodeFacts
	limitNow  map[string]int64
	changing  map[string]bool // limits
	operating bool            // an operator's order about a quarantine is under way
	// condemned has the reads, not served yet, of identities whose machines an
	// operator calls dead; condemning is the node whose identity is asked for next.
	condemned  map[post.Token]resource.NodeID
	condemning resource.NodeID
	// renumbered: a host has other cards than before, so that what its agent had not
	// confirmed is nominated under numbers that are others' now.
	renumbered bool
	planted
}

// link is what a term has of an agent's stream.
type link struct {
	stream     *stream
	dialing    bool
	distrusted bool
	host       *fit.Host
}

// call is a request that has no answer yet.
type call struct {
	what     string
	answered func(effect)
}

// settling is a question that is answered when all this is.
type settling struct {
	token  post.Token
	awaits map[post.Token]bool
}

// rules are the leader's configuration.
func (t *term) rules() lead.Rules {
	r := lead.Rules{
		Id: t.coordinator.name, Namespaces: map[string]lead.Namespace{}, NamespaceAllocations: 10_000,
		Quota: t.sim.quota, VoteBudget: voteBudget, ReservationTTL: reservationTTL, EvictionGrace: evictionGrace, Decisions: t,
	}
	r.EvictOnDeviceLost = t.sim.evictsLost
	for _, namespace := range limited {
		r.Namespaces[namespace] = lead.Namespace{Tenant: resource.TenantID(namespace), Admission: "queue"}
	}
	r.Namespaces["z"] = lead.Namespace{Tenant: "z", Admission: "queue", Groups: map[string]string{treeName: groupOfZ}}
	return r
}

// effect is a thing that the leader asks of a term.
type effect = post.Effect

// begin starts a term on what was read from the store.
func (s *Sim) begin(c *coordinator, state *kvStore) *term {
	t := &term{
		sim: s, name: fmt.Sprintf("%s@%d", c.name, c.epoch), coordinator: c, key: c.key, epoch: c.epoch,
		links: map[resource.NodeID]*link{}, underWay: map[post.Token]bool{}, calls: map[post.Token]*call{},
		followed: map[resource.NodeID]lead.NodeFacts{}, limitNow: map[string]int64{}, condemned: map[post.Token]resource.NodeID{}, changing: map[string]bool{},
		committer: newCommitter(c), planted: newPlanted(),
	}
	newest := time.UnixMilli(record.NewestInstant(state.all(record.TxPrefix), state.all(record.ReadyPrefix), state.all(record.OrderPrefix)))
	t.skipped = max(0, newest.Sub(t.now())) // as coordinator/load.go has it
	for _, h := range s.hosts {
		t.links[h.node] = &link{}
	}
	for _, namespace := range namespaces {
		t.limitNow[namespace] = unbounded
	}
	for _, namespace := range limited {
		t.limitNow[namespace] = limitIn(state, namespace)
	}
	b := lead.Beginning{Rules: t.rules(), Epoch: c.epoch, Held: c.held(), MaxOps: maxOps, Now: t.now()}
	for i := range b.Seed {
		b.Seed[i] = byte(s.rng.Uint32())
	}
	t.Leader = lead.NewLeader(b)
	in := lead.Loaded{
		Nodes: state.all(record.NodesPrefix), Bans: state.all(record.BansPrefix), Quotas: state.all(record.QuotaPrefix), Jobs: state.all(record.JobsPrefix),
		Units: state.all(record.UnitsPrefix), Orders: state.all(record.OrderPrefix), Txs: t.falsifyRecords(state.all(record.TxPrefix)), Ready: state.all(record.ReadyPrefix), Requests: state.all(record.RequestsPrefix),
	}
	for _, prefix := range edit.Prefixes() {
		in.Objects = append(in.Objects, state.all(prefix)...)
	}
	effects, err := t.Load(t.now(), in, nil)
	if err != nil {
		s.fail("load", "%s: %v", t.name, err)
	}
	s.stats["terms"]++
	s.logf("%s: leads", t.name)
	t.carryOut(effects)
	t.apply(lead.BeginAccount{})
	t.follow()
	t.apply(lead.ResumeWork{})
	return t
}

// now is the leader's clock.
func (t *term) now() time.Time {
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(t.sim.clock + t.skipped)
}

// apply hands the leader an input and carries out its effects.
func (t *term) apply(in lead.Input) {
	if t.ended {
		return
	}
	t.carryOut(t.Apply(t.now(), in, nil))
	if _, resumes := in.(lead.ResumeWork); resumes {
		t.resumed = true
	}
	if !t.resumed && t.sim.edits {
		return // the term before may not have given notice to what is suspended
	}
	if err := t.Check(); err != nil {
		t.sim.fail("units", "%s: after %T: %v", t.name, in, err)
	}
}

// schedule has the leader try what waits.
func (t *term) schedule() {
	if t.ended {
		return
	}
	for range mostPasses {
		if t.carryOut(t.Pass(t.now(), nil)); t.ended || !t.Busy() {
			break
		}
	}
	t.checkWaiting()
}

// mostPasses bounds the passes until a leader has tried all that it has to.
const mostPasses = 100

// checkWaiting looks, after a pass, for a unit that was tried in vain and not
// woken since, though it would not fail again: a lost wake-up.
func (t *term) checkWaiting() {
	if t.ended {
		return
	}
	if path := t.Overlooked(); path != "" {
		t.sim.fail("wake", "%s waits although there is room, and nothing wakes it", path)
	}
	if path := t.Misqueued(); path != "" {
		t.sim.fail("queues", "%s may be tried, and a rule of its queue holds it back", path)
	}
}

// carryOut does what the effects of one input say, in order.
func (t *term) carryOut(effects []effect) {
	for i := range effects {
		if !t.ended {
			t.carry(&effects[i])
		}
	}
	t.landStatus()
}

func (t *term) carry(e *effect) {
	s := t.sim
	switch e.Kind {
	case post.SendCommand:
		t.send(e.Node, e.Command)
	case post.OpenStream:
		t.cut(e.Node)
	case post.DistrustNode:
		t.distrust(e.Node)
	case post.TrustNode:
		t.links[e.Node].distrusted = false
	case post.WriteKeys:
		if isStatus(e.Write) {
			t.status = append(t.status, *e)
			break
		}
		t.submit(e.Token, e.Write)
	case post.ReadKey:
		t.readKey(e.Token, e.Key)
	case post.ReadFenceKeys:
		t.readFences()
	case post.WakeAt:
		t.wakeAt = e.At
	case post.LogEvent:
		t.log(e.Event)
	case post.AskToResign:
		t.askToResign(lead.ResignAllowed{Node: e.Node, Epoch: e.Epoch, Revision: e.Revision})
	case post.EndTerm:
		s.store.commit(nil, []record.Op{record.Delete(t.key)})
		s.stats["resignations"]++
		s.depose(t, e.Err.Error())
	case post.AnswerClient:
		t.answer(*e)
	case post.AskSettled:
		t.askSettled(e.Token)
	case post.ReadNodeKeys, post.GrantLease, post.RevokeLease, post.CompactStore: // nobody asks for these
	case post.MeasureValue:
		if e.Metric == post.MetricMissedWakes {
			t.sim.fail("wake", "only the backstop has tried a unit that had room")
		}
	}
}

// log notes what the leader logs, and what of it must not be.
func (t *term) log(e post.Event) {
	s := t.sim
	if e.Severity < post.SeverityInfo {
		return
	}
	s.logf("%s: %s %v", t.name, e.Name, e.Fields)
	switch e.Name {
	case "protocol_violation":
		if node, is := e.Fields[1].(resource.NodeID); is && !s.host(node).lying() {
			s.fail("judge", "%s takes %s for a liar: %v", t.name, node, e.Fields)
		}
		s.stats["liars isolated"]++
	case "message_not_counted":
		s.stats["votes not believed"]++
	case "view_astray":
		s.stats["views astray"]++
	case "evicting":
		t.sim.noteEviction(e.Fields[1].(string), e.Fields[5].(string))
	case "member_lost":
		s.stats["members lost"]++
	case "device_lost":
		s.stats["lost devices held"]++
	case "preempting":
		s.stats["preemptions begun"]++
		if e.Fields[5] == true {
			s.stats["claims begun"]++
		}
	case "unit_requeued":
		s.stats["requeued"]++
		t.tire(e.Fields[1].(string))
	case "grant_adopted":
		s.stats["adopted"]++
	case "node_reconciled":
		s.stats["reconciled"]++
	case "node_fenced":
		s.stats["fences"]++
	case "charge_lost", "charge_without_tree", "node_unreadable", "commit_not_made":
		s.fail("log", "%s: %s %v", t.name, e.Name, e.Fields)
	}
}

// stop ends the term; nothing that it has asked for is heard any more.
func (t *term) stop(why string) {
	t.sim.logf("%s: ends: %s", t.name, why)
	t.ended = true
	for _, st := range t.sim.streams {
		if st.term == t {
			st.cut()
		}
	}
}

// ring lets the alarm go off, whatever the time is.
func (t *term) ring() {
	if d := t.wakeAt.Sub(t.now()); d > 0 {
		t.skipped += d
	}
	t.wakeAt = time.Time{}
	t.sim.logf("%s: its alarm goes off", t.name)
	t.apply(lead.AlarmDue{})
	t.schedule()
}

// tick is what happens once a second.
func (t *term) tick() {
	t.skipped += time.Second
	t.follow()
	t.apply(lead.SecondPassed{})
	t.schedule()
}

// follow tells the leader what the coordinator's cache of the store has of the
// nodes.
func (t *term) follow() {
	for _, h := range t.sim.hosts {
		if t.ended || !t.Knows(h.node) {
			continue
		}
		now := lead.NodeFacts{
			Node: h.node, Identity: t.sim.store.keys[record.NodeIdentityKey(h.node)].ModRev,
			Leased: t.sim.store.keys[record.NodeLeaseKey(h.node)].ModRev != 0, Status: h.status(),
		}
		if before, known := t.followed[h.node]; !known || !before.Same(now) {
			t.followed[h.node] = now
			t.apply(now)
		}
	}
}

// registered tells the leader of a registration that a coordinator has served, or
// that it has seen in the store.
func (t *term) registered(id resource.NodeID) {
	spec, kv := value[record.NodeSpec](t.sim.store, record.NodeSpecKey(id))
	if kv.ModRev != 0 && !t.ended {
		t.apply(lead.NodeRegistered{Node: id, Spec: spec, Revision: kv.ModRev})
		t.schedule()
	}
}

// askToResign ends the term for a node's sake, once for each node.
func (t *term) askToResign(in lead.ResignAllowed) {
	c := t.coordinator
	if c.deposers[in.Node] && t.sim.faults {
		return
	}
	c.deposers[in.Node] = true
	t.sim.reply(t.name+" may resign", func() { t.apply(in) })
}

// askSettled answers once all is answered that is under way.
func (t *term) askSettled(k post.Token) {
	q := settling{k, map[post.Token]bool{}}
	for token := range t.underWay {
		q.awaits[token] = true
	}
	t.settles = append(t.settles, q)
	t.settled(0)
}

// settled notes that something is answered.
func (t *term) settled(token post.Token) {
	delete(t.underWay, token)
	t.settles = slices.DeleteFunc(t.settles, func(q settling) bool {
		delete(q.awaits, token)
		if len(q.awaits) > 0 {
			return false
		}
		t.sim.reply(t.name+" has settled", func() {
			t.apply(lead.SettleAnswer{Token: q.token})
			t.schedule()
		})
		return true
	})
}

// ask asks the leader for something, as a client or an operator.
func (t *term) ask(what string, r lead.Request, answered func(effect)) {
	t.asked++
	t.calls[t.asked] = &call{what, answered}
	t.apply(lead.ClientRequest{Token: t.asked, Request: r})
	t.schedule()
}

func (t *term) answer(e effect) {
	c := t.calls[e.Token]
	if c == nil {
		return
	}
	delete(t.calls, e.Token)
	if e.Status != nil {
		t.sim.logf("%s: refuses %s: %s", t.name, c.what, e.Status.Message)
	}
	c.answered(e)
}

// readKey reads a key; the answer comes if the term lives to hear it.
func (t *term) readKey(k post.Token, key string) {
	t.underWay[k] = true
	t.condemn(k, key)
	s := t.sim
	s.ask(t.name+": "+strings.TrimPrefix(key, record.Root), func() func() {
		kv, rev := s.store.keys[key], s.store.rev
		kv = t.falsifyRead(kv)
		delete(t.condemned, k)
		return func() {
			if t.ended {
				return
			}
			t.apply(lead.ReadAnswer{Token: k, Kv: kv, Found: kv.ModRev != 0, Revision: rev})
			t.settled(k)
			t.schedule()
		}
	})
}

// readFences reads the records that agents had made by fences.
func (t *term) readFences() {
	s := t.sim
	s.ask(t.name+": fences", func() func() {
		var found []lead.Fenced
		for _, kv := range s.store.all(record.TxPrefix) {
			rec := s.store.txs.of(kv)
			if tx, err := record.ParseTxKey(kv.Key); err == nil && strings.HasPrefix(rec.Reason, record.FencedFor) && len(rec.Unheard) == 0 {
				found = append(found, lead.Fenced{Tx: tx, Unit: rec.UnitUID})
			}
		}
		return func() {
			if len(found) > 0 {
				t.apply(lead.FenceReadAnswer{Found: found})
			}
		}
	})
}
