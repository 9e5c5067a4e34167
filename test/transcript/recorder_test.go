package transcript_test

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/rig"
)

// step is where in the protocol an event stands. What happens on different
// nodes between two writes of the store happens in no particular order; the
// transcript shows it step by step, and by node within a step.
type step int

const (
	stepHello step = iota
	stepWelcome
	stepRegistered
	stepFence
	stepReserve
	stepVote
	stepCommit
	stepHeld
	stepRelease
	stepFreed
	stepForget
	stepBarrier // a write of the leader: nothing moves across it
)

// event is one line of a transcript, or several of one write.
type event struct {
	step step
	node resource.NodeID // "" for the store
	text string
}

// recorder writes down what a cluster does.
type recorder struct {
	cluster *rig.Cluster

	mu     sync.Mutex
	names  names
	events []event
	// lose says which messages are lost, nil for none.
	lose func(rig.Message) bool
}

func newRecorder(c *rig.Cluster) *recorder {
	r := &recorder{cluster: c}
	c.Tap(r.message)
	return r
}

func (r *recorder) add(e event) {
	r.events = append(r.events, e)
}

// note adds a line of the test's own.
func (r *recorder) note(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(event{stepBarrier, "", text})
}

// message records one message of a session; what is lost is shown as lost.
func (r *recorder) message(m rig.Message) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	passes := r.lose == nil || !r.lose(m)
	var e event
	var text string
	if m.ToAgent != nil {
		text = r.names.order(m.ToAgent)
		e.text = fmt.Sprintf("%s → %s      %s", m.Coordinator, m.Node, text)
	} else {
		text = r.names.answer(m.FromAgent)
		e.text = fmt.Sprintf("%s → %s      %s", m.Node, m.Coordinator, text)
	}
	if text == "" {
		return passes
	}
	if !passes {
		e.text += "   [lost]"
	}
	e.node, e.step = m.Node, stepOf(m)
	r.add(e)
	return passes
}

func stepOf(m rig.Message) step {
	o := m.ToAgent
	switch {
	case o.GetHello() != nil:
		return stepHello
	case m.FromAgent.GetHello() != nil:
		return stepWelcome
	case m.FromAgent.GetRegistered() != nil:
		return stepRegistered
	case o.GetReserve() != nil:
		return stepReserve
	case o.GetCommit() != nil || o.GetAbort() != nil:
		return stepCommit
	case o.GetRelease() != nil:
		return stepRelease
	case o.GetForget() != nil:
		return stepForget
	}
	switch state := m.FromAgent.GetReply().GetState().String(); state {
	case "RESERVED", "NO":
		return stepVote
	case "FREED", "STOPPING":
		return stepFreed
	}
	return stepHeld
}

// txn records a write on its way to the store. It returns what becomes of it.
func (r *recorder) txn(k *rig.Coordinator, t store.Txn, fault rig.Fault) rig.Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := event{step: stepBarrier}
	if identity, fence := agentsOwn(t); identity || fence {
		if fence && !r.holds(k, t) {
			return fault // the other member was first
		}
		e.step = stepFence
	} else if !rig.Touches(t, store.TxPrefix) && !rig.Touches(t, store.UnitsPrefix) && !rig.Touches(t, store.JobsPrefix) {
		return fault
	}
	outcome := "done"
	switch {
	case fault == rig.CrashBefore:
		outcome = k.ID + " crashes before it is sent"
	case !r.holds(k, t):
		outcome = "refused, nothing is written"
	case fault == rig.CrashAfter:
		outcome = "done, but " + k.ID + " crashes before it hears so"
	}
	e.text = r.show(k, t, outcome, e.step == stepFence)
	r.add(e)
	return fault
}

// agentsOwn recognizes what a coordinator writes for an agent: registrations
// and fences. They depend on no leader.
func agentsOwn(t store.Txn) (identity, fence bool) {
	for _, c := range t.If {
		if strings.HasPrefix(c.Key, store.LeaderPrefix) {
			return false, false
		}
	}
	for _, op := range t.Then {
		if node, err := store.ParseNodeKey(op.Key); err == nil && node.Part == store.NodeIdentityPart {
			identity = true
		}
	}
	return identity, rig.Writes(t, store.TxAborted)
}

// holds reports whether all compares hold now.
func (r *recorder) holds(k *rig.Coordinator, t store.Txn) bool {
	for _, c := range t.If {
		kv, _, _, err := k.Gate.Store.Get(context.Background(), c.Key)
		rev := kv.ModRev
		if c.Target == store.CompareCreateRev {
			rev = kv.CreateRev
		}
		if err != nil || rev != c.Rev {
			return false
		}
	}
	return true
}

// show writes a Txn as IF, THEN and what came of it.
func (r *recorder) show(k *rig.Coordinator, t store.Txn, outcome string, forAgent bool) string {
	var conditions, writes []string
	for _, c := range t.If {
		conditions = append(conditions, r.names.condition(c))
	}
	for _, op := range t.Then {
		if text := r.names.write(op); text != "" {
			writes = append(writes, text)
		}
	}
	who := k.ID
	if forAgent {
		who = "agent, through " + k.ID
	}
	text := fmt.Sprintf("%s → store", who)
	if len(conditions) > 0 {
		text += "\n            IF    " + strings.Join(conditions, ", ")
	}
	return text + "\n            THEN  " + strings.Join(writes, ", ") + "\n            " + outcome
}

// take returns the lines since the last call, in canonical order.
func (r *recorder) take() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	events := r.events
	r.events = nil
	canonical(events)
	var text strings.Builder
	for i, e := range events {
		if i > 0 && e == events[i-1] {
			continue // said twice
		}
		text.WriteString(e.text + "\n")
	}
	return text.String()
}

// canonical swaps neighbours that are independent, events of different nodes
// between two writes, until they stand in order of step and node. What is
// dependent keeps its order.
func canonical(events []event) {
	for swapped := true; swapped; {
		swapped = false
		for i := 1; i < len(events); i++ {
			a, b := &events[i-1], &events[i]
			if a.node == b.node || a.step == stepBarrier || b.step == stepBarrier {
				continue
			}
			if cmp.Or(cmp.Compare(a.step, b.step), nodeOrder(a.node, b.node)) > 0 {
				*a, *b = *b, *a
				swapped = true
			}
		}
	}
}
