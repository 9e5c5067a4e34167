package transcript_test

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/musterd/muster/coordinator/record"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/rig"
)

// recorder writes down what a cluster does, one event at a time.
type recorder struct {
	turns *turns

	mu    sync.Mutex
	names names
	lines []string
	said  map[said]string
	epoch int64 // the highest in a hello
	// lose says which messages are lost, nil for none. It is called with mu
	// held.
	lose func(rig.Message) bool
}

// said is whose last word about a transaction something is.
type said struct {
	node resource.NodeID
	to   string
	tx   string
}

// overtaken reports whether another leads already: agents refuse the hello, and
// chance decides whether a leader that went on comes to send it.
func (r *recorder) overtaken(h *musterv1.LeaderHello) bool {
	r.epoch = max(r.epoch, h.GetEpoch())
	return h != nil && h.GetEpoch() < r.epoch
}

// again reports whether an agent says once more, unasked, what it has said last:
// it does whenever it has resolved a promise, as often as that takes.
func (r *recorder) again(m rig.Message, text string) bool {
	o := m.ToAgent
	asked := cmp.Or(o.GetReserve().GetTx(), o.GetCommit().GetTx(), o.GetAbort().GetTx(), o.GetRelease().GetTx(), o.GetEvict().GetTx())
	delete(r.said, said{m.Node, m.Coordinator, asked})
	tx := m.FromAgent.GetReply().GetTx()
	if tx == "" {
		return false
	}
	of := said{m.Node, m.Coordinator, tx}
	before := r.said[of]
	r.said[of] = text
	return before == text
}

// message records one message of a session; what is lost is shown as lost.
func (r *recorder) message(m rig.Message) bool {
	r.turns.take(stepOf(m), m.Node, "")
	r.mu.Lock()
	defer r.mu.Unlock()
	passes := r.lose == nil || !r.lose(m)
	from, to := m.Coordinator, string(m.Node)
	var text string
	if m.ToAgent != nil {
		text = r.names.order(m.ToAgent)
	} else {
		from, to = to, from
		text = r.names.answer(m.FromAgent)
	}
	if text == "" || r.overtaken(m.ToAgent.GetHello()) || r.again(m, text) {
		return passes
	}
	if !passes {
		text += "   [lost]"
	}
	r.add(from, to, text)
	return passes
}

// note writes down what happened to a process.
func (r *recorder) note(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, text+"\n")
}

// add writes one line.
func (r *recorder) add(from, to, text string) {
	r.lines = append(r.lines, fmt.Sprintf("%-4s → %-6s %s\n", from, to, text))
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
		return stepDecision
	case o.GetRelease() != nil || o.GetEvict() != nil:
		return stepRelease
	case o.GetForget() != nil:
		return stepForget
	}
	switch state := m.FromAgent.GetReply().GetState().String(); state {
	case "RESERVED", "WAITING", "NO":
		return stepVote
	case "FREED", "STOPPING":
		return stepFreed
	}
	return stepHeld
}

// txn records a write on its way to the store, and what becomes of it.
func (r *recorder) txn(k *rig.Coordinator, t record.Txn, fault rig.Fault) rig.Fault {
	who, s := writer(k, t)
	if who == "" {
		return fault
	}
	r.turns.take(s, "", who)
	r.mu.Lock()
	defer r.mu.Unlock()
	outcome := "done"
	switch {
	case fault == rig.CrashBefore:
		outcome = k.ID + " dies before it is sent"
	case !holds(k, t):
		outcome = "refused, nothing is written"
	}
	var conditions, writes []string
	for _, c := range t.If {
		conditions = append(conditions, r.names.condition(c))
	}
	for _, op := range t.Then {
		if text := r.names.write(op); text != "" {
			writes = append(writes, text)
		}
	}
	indent := "\n" + strings.Repeat(" ", utf8.RuneCountInString("n1   → store  "))
	r.add(who, "store", "if "+strings.Join(conditions, ", ")+indent+"then "+strings.Join(writes, ", ")+indent+"— "+outcome)
	return fault
}

// writer says on whose behalf a coordinator writes: its own, or that of an
// agent that registers or fences. "" is what a transcript does not show:
// elections, heartbeats.
func writer(k *rig.Coordinator, t record.Txn) (who string, s step) {
	for _, op := range t.Then {
		if node, err := record.ParseNodeKey(op.Key); err == nil && node.Part == record.NodeIdentityPart {
			return string(node.ID), stepRegistration
		}
		if !strings.HasPrefix(op.Key, record.TxPrefix) || op.Delete {
			continue
		}
		rec, err := record.Decode[record.Tx](op.Key, op.Value)
		if node, fence := strings.CutPrefix(rec.Reason, "fenced for "); err == nil && fence {
			return node, stepAgentsFence
		}
	}
	if rig.Touches(t, record.TxPrefix) || rig.Touches(t, record.UnitsPrefix) || rig.Touches(t, record.JobsPrefix) {
		return k.ID, stepWrite
	}
	return "", stepWrite
}

// holds reports whether all compares hold now.
func holds(k *rig.Coordinator, t record.Txn) bool {
	for _, c := range t.If {
		kv, _, _, err := k.Gate.Store.Get(context.Background(), c.Key)
		rev := kv.ModRev
		if c.Target == record.CompareCreateRev {
			rev = kv.CreateRev
		}
		if err != nil || rev != c.Rev {
			return false
		}
	}
	return true
}

// take returns the lines since the last call.
func (r *recorder) take() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := strings.Join(r.lines, "")
	r.lines = nil
	return text
}
