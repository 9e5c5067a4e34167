package transcript_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/musterd/muster/coordinator/record"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource/bitset"
)

// names gives short names to what differs from run to run, in the order in
// which it first appears: tx1, tx2; E1, E2; journal 1, journal 2 of a node.
type names struct {
	txs    []string
	epochs []int64
}

func (n *names) tx(id string) string {
	i := slices.Index(n.txs, id)
	if i < 0 {
		i = len(n.txs)
		n.txs = append(n.txs, id)
	}
	return fmt.Sprintf("tx%d", i+1)
}

func (n *names) epoch(e int64) string {
	i := slices.Index(n.epochs, e)
	if i < 0 {
		i = len(n.epochs)
		n.epochs = append(n.epochs, e)
	}
	return fmt.Sprintf("E%d", i+1)
}

// order says what the leader asks an agent; "" is not shown.
func (n *names) order(m *musterv1.LeaderMessage) string {
	switch {
	case m.GetHello() != nil:
		return "Hello, I lead in epoch " + n.epoch(m.GetHello().GetEpoch())
	case m.GetReserve() != nil:
		r := m.GetReserve()
		var members []string
		for _, want := range r.GetMembers() {
			members = append(members, fmt.Sprintf("member %d wants %d GPUs", want.GetMember(), want.GetRequest().GetGpus()))
		}
		after := ""
		for _, victim := range r.GetAfter() {
			after += ", after " + n.tx(victim)
		}
		return fmt.Sprintf("Reserve %s in %s%s: %s", n.tx(r.GetTx()), n.epoch(r.GetEpoch()), after, strings.Join(members, ", "))
	case m.GetCommit() != nil:
		return "Commit " + n.tx(m.GetCommit().GetTx())
	case m.GetAbort() != nil:
		return "Abort " + n.tx(m.GetAbort().GetTx())
	case m.GetRelease() != nil:
		return "Release " + n.tx(m.GetRelease().GetTx())
	case m.GetEvict() != nil:
		return fmt.Sprintf("Evict %s, with a grace of %ds", n.tx(m.GetEvict().GetTx()), m.GetEvict().GetGraceMillis()/1000)
	case m.GetForget() != nil:
		return "Forget " + n.tx(m.GetForget().GetTx())
	}
	return ""
}

// answer says what an agent tells the leader; "" is not shown.
func (n *names) answer(m *musterv1.AgentMessage) string {
	switch {
	case m.GetHello() != nil:
		held := "nothing is held here"
		if grants := m.GetHello().GetOccupancy().GetGrants(); len(grants) > 0 {
			var lines []string
			for _, g := range grants {
				lines = append(lines, n.tx(g.GetTx())+" is "+g.GetState().String()+members(g.GetMembers()))
			}
			held = strings.Join(lines, ", ")
		}
		if m.GetHello().GetRegisteredRevision() == 0 {
			return "Hello, not registered yet; nothing to tell before that"
		}
		return "Hello, " + held
	case m.GetRegistered() != nil:
		return "Registered, and the store's records for this node applied"
	case m.GetReply() != nil:
		r := m.GetReply()
		words := map[musterv1.Reply_State]string{
			musterv1.Reply_NONE: "None: %s is not known here", musterv1.Reply_NO: "No to %s", musterv1.Reply_RESERVED: "Yes to %s",
			musterv1.Reply_WAITING: "Waiting: %s", musterv1.Reply_EVICTING: "Notice given: %s",
			musterv1.Reply_HELD: "Held: %s", musterv1.Reply_FREED: "Freed: %s", musterv1.Reply_STOPPING: "Stopping: %s",
		}
		text, known := words[r.GetState()]
		if !known {
			text = r.GetState().String() + ": %s"
		}
		text = fmt.Sprintf(text, n.tx(r.GetTx())) + members(r.GetMembers())
		for _, reason := range r.GetReasons() {
			text += fmt.Sprintf("; %s: %d of %s wanted, %d there", reason.GetCode(), reason.GetWant(), reason.GetResource(), reason.GetHave())
		}
		return text
	}
	return ""
}

func members(list []*musterv1.MemberAssignment) string {
	var text strings.Builder
	for _, m := range list {
		var gpus bitset.Set
		for _, g := range m.GetAssignment().GetGpus() {
			gpus.Add(int(g.GetIndex()))
		}
		fmt.Fprintf(&text, ", member %d has GPUs %s", m.GetMember(), gpus.String())
	}
	return text.String()
}

// key names a key of the store for people; "" is not shown.
func (n *names) key(key string) string {
	if tx, err := record.ParseTxKey(key); err == nil {
		return n.tx(string(tx))
	}
	if unit, err := record.ParseUnitKey(key); err == nil {
		return "unit " + unit.Name
	}
	if _, name, err := record.ParseJobKey(key); err == nil {
		return "job " + name
	}
	if strings.HasPrefix(key, record.LeaderPrefix) {
		return "the leader's key"
	}
	if node, err := record.ParseNodeKey(key); err == nil {
		switch node.Part {
		case record.NodeIdentityPart:
			return "identity of " + string(node.ID)
		case record.NodeTxPart:
			return "index of " + string(node.ID)
		}
		return ""
	}
	if strings.HasPrefix(key, record.OrderPrefix) {
		return "place in the queue"
	}
	if strings.HasPrefix(key, record.RequestsPrefix) {
		return "request id"
	}
	return ""
}

// condition says what a compare of a Txn demands.
func (n *names) condition(c record.Compare) string {
	name := n.key(c.Key)
	switch {
	case c.Rev == 0:
		return name + " is absent"
	case strings.HasPrefix(c.Key, record.LeaderPrefix):
		return "epoch is " + n.epoch(int64(c.Rev))
	}
	return name + " is unchanged"
}

// write says what an operation of a Txn writes; "" is not shown.
func (n *names) write(op record.Op) string {
	name := n.key(op.Key)
	switch {
	case name == "":
		return ""
	case op.Delete:
		return "delete " + name
	}
	switch {
	case strings.HasPrefix(op.Key, record.TxPrefix):
		if r, err := record.Decode[record.Tx](op.Key, op.Value); err == nil {
			return fmt.Sprintf("%s = %s", name, r.State)
		}
	case strings.HasPrefix(op.Key, record.UnitsPrefix):
		if r, err := record.Decode[record.Unit](op.Key, op.Value); err == nil {
			return fmt.Sprintf("%s = %s", name, r.Phase)
		}
	case strings.HasPrefix(op.Key, record.JobsPrefix):
		if r, err := record.Decode[record.Job](op.Key, op.Value); err == nil && r.Cancelled != nil {
			return fmt.Sprintf("%s = %s", name, r.Phase)
		}
	}
	return name
}
