package work

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

// Attempt is one transaction for a unit.
type Attempt struct {
	Machine *txn.Machine
	Unit    *Unit
	// Company is the attempts that start together with this one, nil for none.
	Company *Company
	// Charges are the charges of the record.
	Charges []record.Charge
	// Mischarged: not charged to a tree as the record says, because the tree does
	// not have the group, or nothing at all.
	Mischarged bool
	// Requests per node, for Reserve and its repetition.
	Requests map[resource.NodeID][]grant.MemberRequest
	// Asked is, by node, the stream on which Reserve was first sent; 0 where it
	// was another leader's.
	Asked  map[resource.NodeID]uint64
	Failed map[resource.NodeID]breaker.Fault // nodes that failed it
	Said   map[resource.NodeID]string        // the reasons of nodes that refused
	Late   map[resource.NodeID]bool          // nodes that had not voted in good time
	Budget *post.Alarm
	// Victims end for this attempt, in the order of their transactions; claims:
	// the attempt takes their quota. noticed is the instant of their notices, or of
	// the attempt's own notice, to the millisecond and as the records have it; zero
	// where an older version has written the record.
	Victims []*Attempt
	Claims  bool
	// Preemptor is the attempt that this attempt is a victim of.
	Preemptor *Attempt
	Noticed   time.Time
	// Notice is the eviction that ends this attempt, for the preemptor if there
	// is one.
	Notice *txn.EvictAsked
	By     resource.TxID
	// Lost: the attempt ends because one of its nodes is confirmed dead.
	// AssumedFreed are the nodes that count as freed for that reason alone.
	Lost bool
	// unheard are those of the Txn to RELEASED that was sent last.
	AssumedFreed map[resource.NodeID]bool
	Unheard      []resource.NodeID
	// Drained: a drain of these nodes has counted the attempt's members there.
	Drained map[resource.NodeID]bool
	// Requeues: the notice that was written last is to a suspended allocation, which
	// waits again.
	Requeues bool
	// Closing is the outcome of the unit at RELEASED, set when the Txn to
	// RELEASED is sent.
	Closing   *UnitEnd
	Committed resource.Revision // of the commit
	// Started is the time that the commit has written, and StartedMillis the instant.
	Started       string
	StartedMillis int64
	// Begun is when Reserve was sent, voted when the last Yes came.
	Begun, Voted time.Time
	places       []shown.Place // of the members, once they have been shown
	// Held are the nodes whose agents hold their members. ready is that all do, as
	// the store has it.
	Held map[resource.NodeID]bool
	// Gpus is the time for which the members' devices are idle; judgedIdle is the last look
	// at their use.
	Gpus       idle.Clock
	judgedIdle time.Time
	Ready      vacancy.Key
	// Seats are the nodes by tree that the attempt's record.Seats has; nil for none.
	Seats map[string]string
	// Work is the state of the members' work, by member, as agents have reported it.
	// outcome is set where the work is why the attempt ends.
	Work    map[int]grant.WorkState
	Outcome *record.Outcome
	// Loss is the loss of members whose Txn is under way, nil for none. LostMembers are
	// those that the record has lost, elsewhere the ends of members that other transactions
	// had, by member.
	Loss        *MemberLoss
	LostMembers []record.LostMember
	elsewhere   map[int]record.Exit
	// Port is where the members of work meet, on the host of member 0; 0 for no work,
	// and before the commit is sent.
	Port int
}

// NewAttempt is an attempt for a unit with the charges of the record. The instant is the one
// at which agents are asked, zero where they were asked before.
func NewAttempt(u *Unit, charges []record.Charge, begun time.Time) *Attempt {
	return &Attempt{Unit: u, Charges: charges, Begun: begun, Held: map[resource.NodeID]bool{}}
}

// TakePreemption has the attempt go on with a preemption that an earlier leader began. claims:
// the attempt takes the quota of the victims.
func (a *Attempt) TakePreemption(victims []*Attempt, claims bool) {
	a.Noticed, a.Victims, a.Claims = noticeOf(victims), victims, claims
}

// Displace has the units of the victims end for this attempt. claims: the attempt takes their
// quota.
func (a *Attempt) Displace(victims []*Unit, claims bool) {
	a.Claims = claims
	for _, v := range victims {
		a.addVictim(v.Attempt)
	}
	slices.SortFunc(a.Victims, ByPath)
}

// RestoreRecord takes over the preemptor, the members that are lost, and whether a node is
// confirmed dead.
func (a *Attempt) RestoreRecord(rec record.Tx) {
	a.By, a.Lost, a.LostMembers = rec.By, rec.Lost, rec.LostMembers
}

// Fail notes that a node has failed an attempt; the first fault counts.
func (a *Attempt) Fail(id resource.NodeID, f breaker.Fault) {
	if a.Failed == nil {
		a.Failed = map[resource.NodeID]breaker.Fault{}
	}
	if a.Failed[id] == "" {
		a.Failed[id] = f
	}
}

// NoteReasons notes why a node said No.
func (a *Attempt) NoteReasons(id resource.NodeID, reasons []resource.Reason) {
	if a.Said == nil {
		a.Said = map[resource.NodeID]string{}
	}
	a.Said[id] = JoinReasons(reasons, "")
}

// SetMachine gives the attempt its machine: a new one, or one recovered from a
// record.
func (a *Attempt) SetMachine(m *txn.Machine) { a.Machine = m }

// AddRequest adds a member that a node is asked for.
func (a *Attempt) AddRequest(node resource.NodeID, r grant.MemberRequest) {
	if a.Requests == nil {
		a.Requests = map[resource.NodeID][]grant.MemberRequest{}
	}
	a.Requests[node] = append(a.Requests[node], r)
}

// SetAsked notes the stream on which a node is asked first.
func (a *Attempt) SetAsked(node resource.NodeID, stream uint64) {
	if a.Asked == nil {
		a.Asked = map[resource.NodeID]uint64{}
	}
	a.Asked[node] = stream
}

// AddLate notes that a node has not voted in good time.
func (a *Attempt) AddLate(node resource.NodeID) {
	if a.Late == nil {
		a.Late = map[resource.NodeID]bool{}
	}
	a.Late[node] = true
}

// SetBudget sets the timer of the attempt's next step.
func (a *Attempt) SetBudget(timer *post.Alarm) { a.Budget = timer }

// SetMischarged notes that the charges in the trees differ from the record's.
func (a *Attempt) SetMischarged() { a.Mischarged = true }

// ClearMischarged notes that the charges in the trees equal the record's.
func (a *Attempt) ClearMischarged() { a.Mischarged = false }

// ByPath orders the victims of an attempt by their units. The numbers of their transactions
// are others in a leader that goes on from a snapshot, which has to evict in the same order.
func ByPath(x, y *Attempt) int { return cmp.Compare(x.Unit.Path, y.Unit.Path) }

// addVictim adds an attempt that ends for this attempt.
func (a *Attempt) addVictim(v *Attempt) {
	a.Victims = append(a.Victims, v)
	v.SetPreemptor(a)
}

// SetPreemptor sets the attempt that this attempt ends for, nil for none.
func (a *Attempt) SetPreemptor(p *Attempt) { a.Preemptor = p }

// SetNoticed takes over the instant of the notices as a record has it.
func (a *Attempt) SetNoticed(instant int64) { a.Noticed = post.InstantOf(instant) }

// RestoreNotice takes over the eviction that a record has.
func (a *Attempt) RestoreNotice(rec record.Tx) {
	a.Notice = &txn.EvictAsked{GraceSeconds: rec.GraceSeconds, Reason: rec.Reason}
	a.SetNoticed(rec.EndingMillis)
}

// ReceiveNotice sets the eviction that ends the attempt, and the preemptor. The
// instant is set where the record was written, or read.
func (a *Attempt) ReceiveNotice(e txn.EvictAsked) {
	a.Notice = &e
	if by := a.Machine.By(); by != "" {
		a.By = by
	}
}

// DropNotice notes that the record is RELEASING on the owner's request: it says
// nothing more of the eviction that came before.
func (a *Attempt) DropNotice() { a.Notice, a.Noticed = nil, time.Time{} }

// SetLost notes that the attempt ends because a node is confirmed dead.
func (a *Attempt) SetLost() { a.Lost = true }

// AssumeFreed counts a dead node as freed.
func (a *Attempt) AssumeFreed(node resource.NodeID) {
	if a.AssumedFreed == nil {
		a.AssumedFreed = map[resource.NodeID]bool{}
	}
	a.AssumedFreed[node] = true
}

// ClearAssumedFreed ends the assumption on a node.
func (a *Attempt) ClearAssumedFreed(node resource.NodeID) { delete(a.AssumedFreed, node) }

// SetDrained notes that a drain of a node has counted the members there.
func (a *Attempt) SetDrained(node resource.NodeID) {
	if a.Drained == nil {
		a.Drained = map[resource.NodeID]bool{}
	}
	a.Drained[node] = true
}

// SetUnheard notes the nodes that the Txn to RELEASED assumes freed.
func (a *Attempt) SetUnheard(nodes []resource.NodeID) { a.Unheard = nodes }

// SetRequeues notes whether the unit waits again after the notice.
func (a *Attempt) SetRequeues(requeues bool) { a.Requeues = requeues }

// SetClosing sets the outcome of the unit at RELEASED.
func (a *Attempt) SetClosing(e *UnitEnd) { a.Closing = e }

// SetVoted notes when the last Yes came.
func (a *Attempt) SetVoted(now time.Time) { a.Voted = now }

// SetStarted notes the time that the commit writes, which is sent once.
func (a *Attempt) SetStarted(at string, millis int64) { a.Started, a.StartedMillis = at, millis }

// SetCharges takes over the charges that the commit writes.
func (a *Attempt) SetCharges(charges []record.Charge) { a.Charges = charges }

// SetPort sets the port at which the members of work meet.
func (a *Attempt) SetPort(port int) { a.Port = port }

// SetSeats takes over the nodes of a record.Seats as it was written.
func (a *Attempt) SetSeats(nodes map[string]string) { a.Seats = nodes }

// SetCommitted notes the revision of the commit.
func (a *Attempt) SetCommitted(rev resource.Revision) { a.Committed = rev }

// AddHeld notes that a node's agent holds its members.
func (a *Attempt) AddHeld(node resource.NodeID) { a.Held[node] = true }

// keepPlaces keeps where the members are, once that is decided.
func (a *Attempt) keepPlaces(p []shown.Place) { a.places = p }
