package lead

import (
	"fmt"
	"slices"
	"strings"

	"github.com/musterd/muster/coordinator/lead/hosts"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file compares agents' answers with the leader's requests (ADR 13). The
// comparison covers everything that an answer could change for other nodes.

// lie is a message that no agent of this program sends.
type lie struct {
	reason string // one of the violation… constants
	detail string
	// doubt: the message may have another cause, such as hardware that has
	// changed. The message does not count, and its node is not accused.
	doubt bool
}

// The reasons of a violation, which are also the label of its metric.
const (
	violationMessage   = "WrongMessage"   // a message that no agent sends
	ViolationVote      = "WrongVote"      // a vote for something that was not asked
	violationOccupancy = "WrongOccupancy" // an occupancy that cannot be
	violationTooMany   = "TooManyGrants"
	ViolationPanic     = "Panic" // the leader could not go on after a message of the node
)

// maxHolds is the most transactions of one node that a leader keeps.
const maxHolds = 1 << 14

// judgeReply compares an answer with the request to its node; nil: the answer
// counts.
func (l *Leader) judgeReply(n *node, a *work.Attempt, e *grant.Replied) *lie {
	if !hosts.Holds(e.State) {
		return nil
	}
	id := n.view.ID
	if a == nil {
		if n.reservations[e.Tx] == nil && len(n.reservations) >= maxHolds {
			return &lie{reason: violationTooMany, detail: fmt.Sprintf("it says that it has something for more than %d transactions", maxHolds)}
		}
		if n.reservations[e.Tx] == nil {
			if bad := judgeTx(e.Tx, ""); bad != nil {
				bad.doubt = true // an answer does not say whether a leader made it
				return bad
			}
		}
		return nil
	}
	votes := e.State == grant.Reserved || e.State == grant.Waiting
	if !slices.Contains(a.Machine.Nodes(), id) {
		if votes {
			return &lie{reason: ViolationVote, detail: fmt.Sprintf("it answers %s for transaction %s, of which nothing was asked of it", e.State, e.Tx)}
		}
		return nil
	}
	if a.Machine.Undecided() {
		return judgeVote(a, n, e)
	}
	vote, _ := a.Machine.Vote(id)
	if !sameMembers(e.Members, vote.Members) {
		return &lie{reason: ViolationVote, doubt: true, detail: fmt.Sprintf("it says %s with members %v for transaction %s, whose record has %d members there", e.State, indices(e.Members), e.Tx, len(vote.Members))}
	}
	return nil
}

// judgeVote compares the members of a promise with the requests.
func judgeVote(a *work.Attempt, n *node, e *grant.Replied) *lie {
	asked := a.Requests[n.view.ID]
	wrong := func(format string, args ...any) *lie {
		return &lie{reason: ViolationVote, detail: fmt.Sprintf("%s for transaction %s: ", e.State, e.Tx) + fmt.Sprintf(format, args...)}
	}
	if e.Incarnation != n.incarnation {
		l := wrong("it answers as incarnation %.80q, and has said that it is %q", e.Incarnation, n.incarnation)
		l.doubt = !e.Incarnation.IsZero()
		return l
	}
	if e.State == grant.Waiting && !a.IsPreempting() {
		return wrong("nothing was named that it could wait for")
	}
	if len(e.Members) != len(asked) {
		return wrong("members %v, asked for %d", indices(e.Members), len(asked))
	}
	assignments := make([]resource.Assignment, len(asked))
	for i, m := range e.Members {
		if m.Index != asked[i].Index {
			return wrong("members %v, asked for member %d at position %d", indices(e.Members), asked[i].Index, i)
		}
		assignments[i] = m.Assignment
		if err := n.view.Host.Satisfies(asked[i].Request, m.Assignment); err != nil {
			return mismatch(a, n, wrong("member %d: %v", m.Index, err), err)
		}
		if pinned := asked[i].PinnedGPUs; len(pinned) > 0 && !slices.Equal(work.DevicesOf(m.Assignment), pinned) {
			l := wrong("member %d: devices %v, asked for %v", m.Index, work.DevicesOf(m.Assignment), pinned)
			l.doubt = a.Asked[n.view.ID] != n.stream
			return l
		}
	}
	if err := n.view.Host.Disjoint(assignments...); err != nil {
		return mismatch(a, n, wrong("%v", err), err)
	}
	return nil
}

// mismatch leaves a doubt where an agent of another version may judge otherwise,
// and where the promise may be of the hardware that the node had before: its
// agent was asked on an earlier stream, and each change of the hardware begins
// another.
func mismatch(a *work.Attempt, n *node, l *lie, err error) *lie {
	if m, is := err.(*fit.Mismatch); is { //nolint:errorlint // as it was made
		l.doubt = m.OfPolicy || m.OfHost && a.Asked[n.view.ID] != n.stream
	}
	return l
}

// judgeOccupancy looks for grants that no ledger can hold.
func judgeOccupancy(o *grant.Occupancy) *lie {
	if len(o.Grants) > maxHolds {
		return &lie{reason: violationTooMany, detail: fmt.Sprintf("it lists %d grants, at most %d are taken", len(o.Grants), maxHolds)}
	}
	seen := make(map[resource.TxID]bool, len(o.Grants))
	for i := range o.Grants {
		g := &o.Grants[i]
		if seen[g.Tx] {
			return &lie{reason: violationOccupancy, detail: fmt.Sprintf("grants[%d]: transaction %s is listed twice", i, g.Tx)}
		}
		seen[g.Tx] = true
		if bad := judgeTx(g.Tx, g.Origin); bad != nil {
			return bad
		}
		for j := 1; j < len(g.Members); j++ {
			if g.Members[j-1].Index >= g.Members[j].Index {
				return &lie{reason: violationOccupancy, detail: fmt.Sprintf("grants[%d] of transaction %s: members %v, want ascending indices", i, g.Tx, indices(g.Members))}
			}
		}
		if n := len(g.Members); n > 0 && g.UnitMembers > 0 && g.Members[n-1].Index >= g.UnitMembers {
			return &lie{reason: violationOccupancy, detail: fmt.Sprintf("grants[%d] of transaction %s: member %d of a unit of %d", i, g.Tx, g.Members[n-1].Index, g.UnitMembers)}
		}
	}
	return nil
}

// judgeTx wants a leader's identifier, or one with a colon, as agents make
// their own.
func judgeTx(tx resource.TxID, origin string) *lie {
	if origin != "" || strings.Contains(string(tx), ":") {
		return nil
	}
	if _, _, _, err := tx.Attempt(); err != nil {
		return &lie{reason: violationOccupancy, detail: Clip(err.Error())}
	}
	return nil
}

func sameMembers(a, b []grant.Member) bool {
	return slices.EqualFunc(a, b, func(a, b grant.Member) bool { return a.Index == b.Index })
}

// indices are those of members, a few of them.
func indices(members []grant.Member) []int {
	list := make([]int, 0, 8)
	for _, m := range members[:min(len(members), 8)] {
		list = append(list, m.Index)
	}
	return list
}

// mostReasons is how many reasons of a refusal are kept.
const mostReasons = 16

// clipReasons bounds the text of a refusal.
func clipReasons(reasons []resource.Reason) []resource.Reason {
	reasons = reasons[:min(len(reasons), mostReasons)]
	for i := range reasons {
		reasons[i].Code, reasons[i].Resource = clipTo(reasons[i].Code, 64), resource.Name(clipTo(string(reasons[i].Resource), 128))
		reasons[i].Detail = Clip(reasons[i].Detail)
	}
	return reasons
}
