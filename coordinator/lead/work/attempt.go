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

// Attempt is a transaction for a unit.
type Attempt struct {
	Machine *txn.Machine
	Unit    *Unit
	// Company holds all attempts to start together, this attempt among them; nil for an attempt
	// alone.
	Company *Company
	// Charges are the charges of the record.
	Charges []record.Charge
	// Mischarged: a tree charges the attempt to another group than the record, because the tree
	// lacks the record's group; or does not charge the attempt at all.
	Mischarged bool
	// Requests are the members' requests by node, for Reserve and a repeated Reserve.
	Requests map[resource.NodeID][]grant.MemberRequest
	// Asked is, by node, the stream of the first Reserve; 0 where another leader sent the first
	// Reserve.
	Asked  map[resource.NodeID]uint64
	Failed map[resource.NodeID]breaker.Fault // the first fault of each failed node
	Said   map[resource.NodeID]string        // the reasons of each refusing node
	Late   map[resource.NodeID]bool          // nodes without a vote in good time
	Budget *post.Alarm
	// Victims are the attempts to end for this attempt, in the order of ByPath. Claims: the
	// attempt takes the victims' quota. Noticed is the instant of the victims' notices, or of
	// the attempt's own notice, to the millisecond as in the records; zero where an older
	// version has written the record.
	Victims []*Attempt
	Claims  bool
	// Preemptor is the attempt whose victim this attempt is.
	Preemptor *Attempt
	Noticed   time.Time
	// Notice is the eviction of this attempt. By is the preemptor's transaction, "" without a
	// preemptor.
	Notice *txn.EvictAsked
	By     resource.TxID
	// Lost: the attempt ends because a node of the attempt is confirmed dead.
	Lost bool
	// AssumedFreed are the nodes counted as freed only because of a confirmed death. Unheard
	// are the nodes assumed freed by the last Txn to RELEASED.
	AssumedFreed map[resource.NodeID]bool
	Unheard      []resource.NodeID
	// Drained: a drain of these nodes has counted the attempt's members there.
	Drained map[resource.NodeID]bool
	// Requeues: the last written notice is to a suspended allocation, which waits again.
	Requeues bool
	// Closing is the outcome of the unit at RELEASED, set when the Txn to
	// RELEASED is sent.
	Closing   *UnitEnd
	Committed resource.Revision // of the commit
	// Started is the time of the start in the commit, and StartedMillis the instant.
	Started       string
	StartedMillis int64
	// Begun is the time of Reserve, Voted the time of the last Yes.
	Begun, Voted time.Time
	places       []shown.Place // of the members, once they have been shown
	// Held are the nodes whose agents hold their members. Ready is the key in the store with
	// the instant since which all agents hold their members.
	Held map[resource.NodeID]bool
	// GPUs is the time for which the members' devices are idle; judgedIdle is the last look at
	// the use of these devices.
	GPUs       idle.Clock
	judgedIdle time.Time
	Ready      vacancy.Key
	// Seats are the nodes by tree in the attempt's record.Seats; nil without seats.
	Seats map[string]string
	// Work is the state of the members' work, by member, from the reports of agents. Outcome is
	// set where the work is the reason for the attempt's end.
	Work    map[int]grant.WorkState
	Outcome *record.Outcome
	// Loss is the loss of members whose Txn is under way, nil for none. LostMembers are the
	// members lost according to the record. elsewhere are the ends of members in other
	// transactions, by member.
	Loss        *MemberLoss
	LostMembers []record.LostMember
	elsewhere   map[int]record.Exit
	// Port is where the members of work meet, on the host of member 0; 0 for no work,
	// and before the commit is sent.
	Port int
}

// NewAttempt returns an attempt for a unit, with the charges of the record. begun is the
// instant at which agents are asked, zero where agents were asked before.
func NewAttempt(u *Unit, charges []record.Charge, begun time.Time) *Attempt {
	return &Attempt{Unit: u, Charges: charges, Begun: begun, Held: map[resource.NodeID]bool{}}
}

// TakePreemption has the attempt go on with a preemption begun by an earlier leader. claims:
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

// RestoreRecord takes over the preemptor, the lost members, and whether a node is confirmed
// dead.
func (a *Attempt) RestoreRecord(rec record.Tx) {
	a.By, a.Lost, a.LostMembers = rec.By, rec.Lost, rec.LostMembers
}

// Fail notes the fault of a node in the attempt; the first fault of a node counts.
func (a *Attempt) Fail(id resource.NodeID, f breaker.Fault) {
	if a.Failed == nil {
		a.Failed = map[resource.NodeID]breaker.Fault{}
	}
	if a.Failed[id] == "" {
		a.Failed[id] = f
	}
}

// NoteReasons notes the reasons for the No of a node.
func (a *Attempt) NoteReasons(id resource.NodeID, reasons []resource.Reason) {
	if a.Said == nil {
		a.Said = map[resource.NodeID]string{}
	}
	a.Said[id] = JoinReasons(reasons, "")
}

// SetMachine gives the attempt a machine: a new machine, or a machine recovered from a record.
func (a *Attempt) SetMachine(m *txn.Machine) { a.Machine = m }

// AddRequest adds a member to the request to a node.
func (a *Attempt) AddRequest(node resource.NodeID, r grant.MemberRequest) {
	if a.Requests == nil {
		a.Requests = map[resource.NodeID][]grant.MemberRequest{}
	}
	a.Requests[node] = append(a.Requests[node], r)
}

// SetAsked notes the stream of the first Reserve to a node.
func (a *Attempt) SetAsked(node resource.NodeID, stream uint64) {
	if a.Asked == nil {
		a.Asked = map[resource.NodeID]uint64{}
	}
	a.Asked[node] = stream
}

// AddLate notes a node without a vote in good time.
func (a *Attempt) AddLate(node resource.NodeID) {
	if a.Late == nil {
		a.Late = map[resource.NodeID]bool{}
	}
	a.Late[node] = true
}

// SetBudget sets the timer of the attempt's next step.
func (a *Attempt) SetBudget(timer *post.Alarm) { a.Budget = timer }

// SetMischarged notes a difference between the charges in the trees and the record's.
func (a *Attempt) SetMischarged() { a.Mischarged = true }

// ClearMischarged notes equal charges in the trees and in the record.
func (a *Attempt) ClearMischarged() { a.Mischarged = false }

// ByPath orders the victims of an attempt by the paths of their units. A leader that goes on
// from a snapshot has to evict in the same order, and has other transaction numbers.
func ByPath(x, y *Attempt) int { return cmp.Compare(x.Unit.Path, y.Unit.Path) }

// addVictim adds an attempt to the victims of this attempt.
func (a *Attempt) addVictim(v *Attempt) {
	a.Victims = append(a.Victims, v)
	v.SetPreemptor(a)
}

// SetPreemptor sets the attempt for which this attempt ends, nil for none.
func (a *Attempt) SetPreemptor(p *Attempt) { a.Preemptor = p }

// SetNoticed takes over the instant of the notices from a record.
func (a *Attempt) SetNoticed(instant int64) { a.Noticed = post.InstantOf(instant) }

// RestoreNotice takes over the eviction from a record.
func (a *Attempt) RestoreNotice(rec record.Tx) {
	a.Notice = &txn.EvictAsked{GraceSeconds: rec.GraceSeconds, Reason: rec.Reason}
	a.SetNoticed(rec.EndingMillis)
}

// ReceiveNotice sets the eviction of the attempt, and the preemptor. SetNoticed sets the
// instant where the record was written, or read.
func (a *Attempt) ReceiveNotice(e txn.EvictAsked) {
	a.Notice = &e
	if by := a.Machine.By(); by != "" {
		a.By = by
	}
}

// DropNotice forgets the eviction: the record is RELEASING on the owner's request, and does not
// have the earlier eviction any more.
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

// SetDrained notes a node whose drain has counted the attempt's members there.
func (a *Attempt) SetDrained(node resource.NodeID) {
	if a.Drained == nil {
		a.Drained = map[resource.NodeID]bool{}
	}
	a.Drained[node] = true
}

// SetUnheard notes the nodes assumed freed by the Txn to RELEASED.
func (a *Attempt) SetUnheard(nodes []resource.NodeID) { a.Unheard = nodes }

// SetRequeues notes whether the unit waits again after the notice.
func (a *Attempt) SetRequeues(requeues bool) { a.Requeues = requeues }

// SetClosing sets the outcome of the unit at RELEASED.
func (a *Attempt) SetClosing(e *UnitEnd) { a.Closing = e }

// SetVoted notes the time of the last Yes.
func (a *Attempt) SetVoted(now time.Time) { a.Voted = now }

// SetStarted notes the time of the start in the commit. The commit is sent once.
func (a *Attempt) SetStarted(at string, millis int64) { a.Started, a.StartedMillis = at, millis }

// SetCharges takes over the charges of the commit.
func (a *Attempt) SetCharges(charges []record.Charge) { a.Charges = charges }

// SetPort sets the port at which the members of work meet.
func (a *Attempt) SetPort(port int) { a.Port = port }

// SetSeats takes over the nodes of a written record.Seats.
func (a *Attempt) SetSeats(nodes map[string]string) { a.Seats = nodes }

// SetCommitted notes the revision of the commit.
func (a *Attempt) SetCommitted(rev resource.Revision) { a.Committed = rev }

// AddHeld notes a node whose agent holds the members there.
func (a *Attempt) AddHeld(node resource.NodeID) { a.Held[node] = true }

// keepPlaces keeps the places of the members, once decided; nil forgets the places.
func (a *Attempt) keepPlaces(p []shown.Place) { a.places = p }
