package lead

import (
	"cmp"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/idle"
	"github.com/musterd/muster/coordinator/lead/breaker"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/vacancy"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// attempt is one transaction for a unit.
type attempt struct {
	machine *txn.Machine
	unit    *unit
	// company is the attempts that start together with this one, nil for none.
	company *company
	// charges are the charges of the record.
	charges []record.Charge
	// mischarged: not charged to a tree as the record says, because the tree does
	// not have the group, or nothing at all.
	mischarged bool
	// requests per node, for Reserve and its repetition.
	requests map[resource.NodeID][]grant.MemberRequest
	// asked is, by node, the stream on which Reserve was first sent; 0 where it
	// was another leader's.
	asked  map[resource.NodeID]uint64
	failed map[resource.NodeID]breaker.Fault // nodes that failed it
	said   map[resource.NodeID]string        // the reasons of nodes that refused
	late   map[resource.NodeID]bool          // nodes that had not voted in good time
	budget *post.Alarm
	// victims end for this attempt, in the order of their transactions; claims:
	// the attempt takes their quota. noticed is the instant of their notices, or of
	// the attempt's own notice, to the millisecond and as the records have it; zero
	// where an older version has written the record.
	victims []*attempt
	claims  bool
	// preemptor is the attempt that this attempt is a victim of.
	preemptor *attempt
	noticed   time.Time
	// notice is the eviction that ends this attempt, for the preemptor if there
	// is one.
	notice *txn.EvictAsked
	by     resource.TxID
	// lost: the attempt ends because one of its nodes is confirmed dead.
	// assumedFreed are the nodes that count as freed for that reason alone.
	lost bool
	// unheard are those of the Txn to RELEASED that was sent last.
	assumedFreed map[resource.NodeID]bool
	unheard      []resource.NodeID
	// drained: a drain of these nodes has counted the attempt's members there.
	drained map[resource.NodeID]bool
	// requeues: the notice that was written last is to a suspended allocation, which
	// waits again.
	requeues bool
	// closing is the outcome of the unit at RELEASED, set when the Txn to
	// RELEASED is sent.
	closing   *unitEnd
	committed resource.Revision // of the commit
	// started is the time that the commit has written, and startedMillis the instant.
	started       string
	startedMillis int64
	// begun is when Reserve was sent, voted when the last Yes came.
	begun, voted time.Time
	places       []shown.Place // of the members, once they have been shown
	// held are the nodes whose agents hold their members. ready is that all do, as
	// the store has it.
	held map[resource.NodeID]bool
	// gpus is the time for which the members' devices are idle; judgedIdle is the last look
	// at their use.
	gpus       idle.Clock
	judgedIdle time.Time
	ready      vacancy.Key
	// seats are the nodes by tree that the attempt's record.Seats has; nil for none.
	seats map[string]string
	// work is the state of the members' work, by member, as agents have reported it.
	// outcome is set where the work is why the attempt ends.
	work    map[int]grant.WorkState
	outcome *record.Outcome
	// loss is the loss of members whose Txn is under way, nil for none. lostMembers are
	// those that the record has lost, elsewhere the ends of members that other transactions
	// had, by member.
	loss        *memberLoss
	lostMembers []record.LostMember
	elsewhere   map[int]record.Exit
	// port is where the members of work meet, on the host of member 0; 0 for no work,
	// and before the commit is sent.
	port int
}

// newAttempt is an attempt for a unit with the charges of the record. The instant is the one
// at which agents are asked, zero where they were asked before.
func newAttempt(u *unit, charges []record.Charge, begun time.Time) *attempt {
	return &attempt{unit: u, charges: charges, begun: begun, held: map[resource.NodeID]bool{}}
}

// takePreemption has the attempt go on with a preemption that an earlier leader began. claims:
// the attempt takes the quota of the victims.
func (a *attempt) takePreemption(victims []*attempt, claims bool) {
	a.noticed, a.victims, a.claims = noticeOf(victims), victims, claims
}

// displace has the units of the victims end for this attempt. claims: the attempt takes their
// quota.
func (a *attempt) displace(victims []*unit, claims bool) {
	a.claims = claims
	for _, v := range victims {
		a.addVictim(v.attempt)
	}
	slices.SortFunc(a.victims, byPath)
}

// restoreRecord takes over the preemptor, the members that are lost, and whether a node is
// confirmed dead.
func (a *attempt) restoreRecord(rec record.Tx) {
	a.by, a.lost, a.lostMembers = rec.By, rec.Lost, rec.LostMembers
}

// fail notes that a node has failed an attempt; the first fault counts.
func (a *attempt) fail(id resource.NodeID, f breaker.Fault) {
	if a.failed == nil {
		a.failed = map[resource.NodeID]breaker.Fault{}
	}
	if a.failed[id] == "" {
		a.failed[id] = f
	}
}

// noteReasons notes why a node said No.
func (a *attempt) noteReasons(id resource.NodeID, reasons []resource.Reason) {
	if a.said == nil {
		a.said = map[resource.NodeID]string{}
	}
	a.said[id] = joinReasons(reasons, "")
}

// setMachine gives the attempt its machine: a new one, or one recovered from a
// record.
func (a *attempt) setMachine(m *txn.Machine) { a.machine = m }

// addRequest adds a member that a node is asked for.
func (a *attempt) addRequest(node resource.NodeID, r grant.MemberRequest) {
	if a.requests == nil {
		a.requests = map[resource.NodeID][]grant.MemberRequest{}
	}
	a.requests[node] = append(a.requests[node], r)
}

// setAsked notes the stream on which a node is asked first.
func (a *attempt) setAsked(node resource.NodeID, stream uint64) {
	if a.asked == nil {
		a.asked = map[resource.NodeID]uint64{}
	}
	a.asked[node] = stream
}

// addLate notes that a node has not voted in good time.
func (a *attempt) addLate(node resource.NodeID) {
	if a.late == nil {
		a.late = map[resource.NodeID]bool{}
	}
	a.late[node] = true
}

// setBudget sets the timer of the attempt's next step.
func (a *attempt) setBudget(timer *post.Alarm) { a.budget = timer }

// setMischarged notes that the charges in the trees differ from the record's.
func (a *attempt) setMischarged() { a.mischarged = true }

// clearMischarged notes that the charges in the trees equal the record's.
func (a *attempt) clearMischarged() { a.mischarged = false }

// byPath orders the victims of an attempt by their units. The numbers of their transactions
// are others in a leader that goes on from a snapshot, which has to evict in the same order.
func byPath(x, y *attempt) int { return cmp.Compare(x.unit.path, y.unit.path) }

// addVictim adds an attempt that ends for this attempt.
func (a *attempt) addVictim(v *attempt) {
	a.victims = append(a.victims, v)
	v.setPreemptor(a)
}

// setPreemptor sets the attempt that this attempt ends for, nil for none.
func (a *attempt) setPreemptor(p *attempt) { a.preemptor = p }

// setNoticed takes over the instant of the notices as a record has it.
func (a *attempt) setNoticed(instant int64) { a.noticed = post.InstantOf(instant) }

// restoreNotice takes over the eviction that a record has.
func (a *attempt) restoreNotice(rec record.Tx) {
	a.notice = &txn.EvictAsked{GraceSeconds: rec.GraceSeconds, Reason: rec.Reason}
	a.setNoticed(rec.EndingMillis)
}

// receiveNotice sets the eviction that ends the attempt, and the preemptor. The
// instant is set where the record was written, or read.
func (a *attempt) receiveNotice(e txn.EvictAsked) {
	a.notice = &e
	if by := a.machine.By(); by != "" {
		a.by = by
	}
}

// dropNotice notes that the record is RELEASING on the owner's request: it says
// nothing more of the eviction that came before.
func (a *attempt) dropNotice() { a.notice, a.noticed = nil, time.Time{} }

// setLost notes that the attempt ends because a node is confirmed dead.
func (a *attempt) setLost() { a.lost = true }

// assumeFreed counts a dead node as freed.
func (a *attempt) assumeFreed(node resource.NodeID) {
	if a.assumedFreed == nil {
		a.assumedFreed = map[resource.NodeID]bool{}
	}
	a.assumedFreed[node] = true
}

// clearAssumedFreed ends the assumption on a node.
func (a *attempt) clearAssumedFreed(node resource.NodeID) { delete(a.assumedFreed, node) }

// setDrained notes that a drain of a node has counted the members there.
func (a *attempt) setDrained(node resource.NodeID) {
	if a.drained == nil {
		a.drained = map[resource.NodeID]bool{}
	}
	a.drained[node] = true
}

// setUnheard notes the nodes that the Txn to RELEASED assumes freed.
func (a *attempt) setUnheard(nodes []resource.NodeID) { a.unheard = nodes }

// setRequeues notes whether the unit waits again after the notice.
func (a *attempt) setRequeues(requeues bool) { a.requeues = requeues }

// setClosing sets the outcome of the unit at RELEASED.
func (a *attempt) setClosing(e *unitEnd) { a.closing = e }

// setVoted notes when the last Yes came.
func (a *attempt) setVoted(now time.Time) { a.voted = now }

// setStarted notes the time that the commit writes, which is sent once.
func (a *attempt) setStarted(at string, millis int64) { a.started, a.startedMillis = at, millis }

// setCharges takes over the charges that the commit writes.
func (a *attempt) setCharges(charges []record.Charge) { a.charges = charges }

// setPort sets the port at which the members of work meet.
func (a *attempt) setPort(port int) { a.port = port }

// setSeats takes over the nodes of a record.Seats as it was written.
func (a *attempt) setSeats(nodes map[string]string) { a.seats = nodes }

// setCommitted notes the revision of the commit.
func (a *attempt) setCommitted(rev resource.Revision) { a.committed = rev }

// addHeld notes that a node's agent holds its members.
func (a *attempt) addHeld(node resource.NodeID) { a.held[node] = true }

// keepPlaces keeps where the members are, once that is decided.
func (a *attempt) keepPlaces(p []shown.Place) { a.places = p }
