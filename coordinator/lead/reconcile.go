package lead

import (
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/desk"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

const (
	// storeRestored is the reason of what ends in a reconciliation.
	storeRestored = "StoreRestored"
	// occupancyPatience bounds the wait for an agent's answer.
	occupancyPatience = 10 * time.Second
)

// reconciliationStage is a step of a reconciliation. The stages have the order of
// ADR 10; most of them go through a list, one entry after the other.
type reconciliationStage uint8

const (
	readingRegistrations reconciliationStage = iota + 1 // of the nodes concerned: the specification, then the identity
	resyncing                                           // has the agent of each node concerned tell everything it holds
	readingRecords                                      // of the grants that the node's agent has told
	endingReturned                                      // ends each record that came back, and waits until RELEASING is durable
	deciding                                            // adopts or disowns each grant without a record
	telling                                             // reads the node's identity, then tells the agent
	registering                                         // waits until the agent has registered
)

// reconciliation ends a node's quarantine. The leader has at most one. It goes
// from stage to stage at the end of the inputs that it waits for, and leaves
// effects. It goes on when its client has left; cut off by the end of the term,
// it is asked for again: what is done already is found in the store.
//
// From one input to the next it keeps names, and never a node or a unit: either
// may be gone by then.
type reconciliation struct {
	l       *Leader
	id      resource.NodeID
	options api.ReconcileOptions
	grace   time.Duration
	answer  func(*api.Reconciliation, *api.Status)

	stage reconciliationStage
	next  int  // the stage's place in its list
	begun bool // the stage has asked for what the entry at next needs
	// unanswered: the store has a question to answer before the stage goes on.
	// refusal is what came of that, if it ends the reconciliation.
	unanswered bool
	refusal    *api.Status
	// news: something has happened that the stage may wait for.
	news     bool
	patience *post.Alarm
	late     bool // the patience with an agent is over

	why           string
	concerned     []resource.NodeID // the node, first, and those that hold members of its units
	registrations map[resource.NodeID]registration
	toldBefore    uint64     // how often the agent that is asked to resync had told what it holds
	grants        []*lost    // of the node, by transaction
	back          []returned // records that name the node and are not held there
	report        *api.Reconciliation
	revision      resource.Revision // of the store, that the agent is told

	ended, adopted, released []resource.TxID
}

// lost is one grant of the node's agent beside what the store has of it.
type lost struct {
	grant.Grant
	record  grant.RecordState
	holders map[resource.NodeID]grant.Grant // every node that holds members, this one included
	// problem says why no record can be made of it, "" where one can.
	problem string
	// partial: it can never be whole again.
	partial bool
}

// ReconcileNode is the request for a reconciliation. Without a mode it changes
// nothing.
type ReconcileNode struct {
	Node    resource.NodeID
	Options api.ReconcileOptions
}

// serve begins the reconciliation. A refusal is final: it may come after waits,
// and after commands to agents, that are not to be repeated.
func (r ReconcileNode) serve(l *Leader, c *desk.Call) {
	c.Begin()
	l.reconcile(r.Node, r.Options, func(got *api.Reconciliation, status *api.Status) { c.Answer(got, status) })
}

// reconcile begins a reconciliation, if no other one is under way. A node outside
// quarantine is held, for no new promise meanwhile. answer runs once, in the loop.
func (l *Leader) reconcile(id resource.NodeID, o api.ReconcileOptions, answer func(*api.Reconciliation, *api.Status)) {
	switch n := l.nodes[id]; {
	case n == nil || n.specRev == 0 && n.quarantine == "":
		answer(nil, api.Errorf(404, "node %s not found", id))
	case !n.connected:
		answer(nil, api.Errorf(409, "node %s is not connected: what its agent holds is not known. Start the agent, or fence the node", id).Because(api.FailedPrecondition))
	case l.reconciling:
		answer(nil, api.Errorf(409, "another node is being reconciled; ask again"))
	default:
		r := &reconciliation{
			l: l, id: id, options: o, grace: DefaultGrace * time.Second, answer: answer,
			stage: readingRegistrations, news: true, why: n.quarantine, concerned: l.concerned(id), registrations: map[resource.NodeID]registration{},
		}
		if o.GracePeriodSeconds != nil {
			r.grace = time.Duration(*o.GracePeriodSeconds) * time.Second
		}
		l.reconciling, l.reconciliation = true, r
		if o.Mode != "" && n.quarantine == "" {
			n.held = "the node is being reconciled"
			n.judgeQuarantine()
			l.setReady(n)
		}
	}
}

// advanceReconciliation takes the reconciliation as far as it gets without another
// input. It is called at the end of an input, never in the middle of another
// operation.
func (l *Leader) advanceReconciliation() {
	r := l.reconciliation
	if r == nil || !r.news {
		return
	}
	r.news = false
	for r.advance() {
	}
}

// advance does the next thing of the stage. It reports false if the stage waits
// for an input, or if the reconciliation has ended.
func (r *reconciliation) advance() bool {
	switch {
	case r.unanswered:
		return false
	case r.refusal != nil:
		return r.refuse(r.refusal)
	case r.l.nodes[r.id] == nil:
		return r.refuse(api.Errorf(404, "node %s not found", r.id))
	}
	switch r.stage {
	case readingRegistrations:
		return r.readRegistrations()
	case resyncing:
		return r.resync()
	case readingRecords:
		return r.readRecords()
	case endingReturned:
		return r.endReturned() // model: mutant RETURNED_STAYS
	case deciding:
		return r.decide()
	case telling:
		return r.tell()
	case registering:
		return r.awaitRegistration()
	}
	panic("coordinator: a reconciliation without a stage")
}

// enter begins a stage.
func (r *reconciliation) enter(s reconciliationStage) bool {
	r.stage, r.next, r.begun = s, 0, false
	return true
}

// end answers the client and makes room for the next reconciliation.
func (r *reconciliation) end(report *api.Reconciliation, status *api.Status) bool {
	r.l.post.Cancel(r.patience)
	r.l.reconciling, r.l.reconciliation = false, nil
	if n := r.l.nodes[r.id]; n != nil && n.held != "" {
		n.held, n.rejoins = "", true
		n.judgeQuarantine()
		r.l.post.Command(r.id, grant.Resync{})
	}
	r.answer(report, status)
	return false
}

func (r *reconciliation) refuse(status *api.Status) bool { return r.end(nil, status) }

// read has the stage wait until the store has answered.
func (r *reconciliation) read(key string, answer func(kv record.KV, found bool, revision resource.Revision)) {
	r.unanswered = true
	r.l.post.Read(key, func(kv record.KV, found bool, revision resource.Revision) {
		r.unanswered, r.news = false, true
		answer(kv, found, revision)
	})
}

// await has the stage wait until something is done, which ends the
// reconciliation if it comes to nothing.
func (r *reconciliation) await(f func(done func(*api.Status))) {
	r.unanswered = true
	f(func(status *api.Status) { r.unanswered, r.news, r.refusal = false, true, status })
}

// bePatient begins a wait for agents: late is set when it has taken too long. The
// wait before has been cancelled.
func (r *reconciliation) bePatient() {
	r.patience = r.l.post.After(occupancyPatience, func() { r.late, r.news = true, true })
}

// decide adopts or disowns the next grant.
func (r *reconciliation) decide() bool {
	if r.next == len(r.grants) {
		return r.enter(telling)
	}
	g := r.grants[r.next]
	r.next++
	switch {
	case !g.held() || g.record.Charged():
	case r.options.Mode == api.ReconcileAdopt && g.adoptable():
		r.adopted = append(r.adopted, g.Tx)
		r.await(func(done func(*api.Status)) { r.adopt(g, done) })
	default:
		r.released = append(r.released, g.Tx)
		r.await(func(done func(*api.Status)) { r.disown(g, done) })
	}
	return true
}

// mayBegin refuses to adopt while something could be adopted that is not known
// yet: nothing is changed then.
func (r *reconciliation) mayBegin() *api.Status {
	if r.options.Mode != api.ReconcileAdopt {
		return nil
	}
	for _, g := range r.grants {
		if g.held() && g.record == grant.RecordAbsent && g.problem != "" && !g.partial {
			return api.Errorf(409, "%s of node %s cannot be adopted now: %s. Nothing was changed; mend that and ask again, or release", g.Tx, r.id, g.problem)
		}
	}
	return nil
}

// readRegistration reads a node's specification, then its identity. A node that
// has never registered keeps the zero value.
func (r *reconciliation) readRegistration(id resource.NodeID) {
	r.read(record.NodeSpecKey(id), func(spec record.KV, _ bool, _ resource.Revision) {
		key := record.NodeIdentityKey(id)
		r.read(key, func(kv record.KV, found bool, _ resource.Revision) {
			if !found {
				return
			}
			identity, err := record.Decode[record.NodeIdentity](key, kv.Value)
			if err != nil {
				r.refusal = api.Errorf(500, "node %s: %v", id, err)
				return
			}
			r.registrations[id] = registration{identity: kv.ModRev, spec: spec.ModRev, incarnation: identity.Incarnation}
		})
	})
}
