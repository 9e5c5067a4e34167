package rig

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
)

// Step is one side of something that a process does to the world: a write of
// the journal or the store, a read, a message. Steps names them all.
type Step struct {
	Name  string
	After bool // it is done, and nobody was told
	// Coordinator and Node are who takes part: of a message both, otherwise the
	// one that acts. A coordinator that writes or reads for an agent names it.
	Coordinator string
	Node        resource.NodeID
}

// ErrTorn, from a step's hook before "journal append", leaves half of the write.
var ErrTorn = errors.New("the process died in the middle of a write")

// OnStep lets f see every step from now on, in the goroutine that takes it; nil
// ends it. f may kill or pause processes. An error from f is what the step ends
// with: before it nothing was done, after it everything was. Of a write of the
// store it leaves the outcome unknown; of a message it ends the stream.
func (c *Cluster) OnStep(f func(Step) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.step = f
}

func (c *Cluster) at(s Step) error {
	c.mu.Lock()
	f := c.step
	if f != nil {
		c.busy.Add(1)
	}
	c.mu.Unlock()
	if f == nil {
		return nil
	}
	defer c.busy.Done()
	return f(s)
}

// TxnSteps names what a Txn does: the records it writes, each by its state, or
// else the one thing it is for. node is the agent on whose behalf it is sent,
// if any.
func TxnSteps(t record.Txn) (names []string, node resource.NodeID) {
	if !slices.ContainsFunc(t.Then, func(op record.Op) bool { return op.Delete || !strings.HasPrefix(op.Key, record.OrderPrefix) }) {
		return []string{"txn waiting"}, ""
	}
	seen := map[string]bool{}
	for _, op := range t.Then {
		name, of := opStep(op)
		if of != "" {
			node = of
		}
		seen[name] = true
	}
	if swaps(t) {
		seen["txn swap"] = true
		delete(seen, "txn released")
		delete(seen, "txn committed")
	}
	if seen["txn committed"] && comparesSpec(t) {
		seen["txn adoption"] = true
		delete(seen, "txn committed")
	}
	for _, name := range []string{"txn unit", "txn unit ends", "txn job", "txn job ends", "txn enqueue", "txn dequeue", "txn node spec", "txn request", ""} {
		if len(seen) > 1 {
			delete(seen, name)
		}
	}
	return slices.Sorted(maps.Keys(seen)), node
}

// swaps reports whether a Txn commits a preemptor and ends its victims.
func swaps(t record.Txn) bool {
	committed, by := map[resource.TxID]bool{}, map[resource.TxID]bool{}
	for _, op := range t.Then {
		tx, err := record.ParseTxKey(op.Key)
		if err != nil || op.Delete {
			continue
		}
		r, err := record.Decode[record.Tx](op.Key, op.Value)
		switch {
		case err != nil:
		case r.State == grant.RecordCommitted:
			committed[tx] = true
		case r.State == grant.RecordReleased:
			by[r.By] = true
		}
	}
	for tx := range committed {
		if by[tx] {
			return true
		}
	}
	return false
}

// comparesSpec reports whether a Txn counts on what a host has: only one that
// adopts does.
func comparesSpec(t record.Txn) bool {
	return slices.ContainsFunc(t.If, func(c record.Compare) bool {
		key, err := record.ParseNodeKey(c.Key)
		return err == nil && key.Part == record.NodeSpecPart
	})
}

// opStep names one write by its key and value.
func opStep(op record.Op) (name string, node resource.NodeID) {
	switch {
	case strings.HasPrefix(op.Key, record.TxPrefix):
		return recordStep(op)
	case strings.HasPrefix(op.Key, record.NodesPrefix):
		return nodeStep(op)
	}
	for _, row := range []struct{ prefix, put, deleted string }{
		{record.UnitsPrefix, "txn unit", "txn unit ends"},
		{record.OrderPrefix, "txn enqueue", "txn dequeue"},
		{record.ReadyPrefix, "txn ready", "txn collect"},
		{record.JobsPrefix, "txn job", "txn job ends"},
		{record.RequestsPrefix, "txn request", "txn request"},
		{record.QuotaPrefix, "txn quota", "txn quota"},
		{record.LeaderPrefix, "txn candidacy", ""},
		{record.TermsPrefix, "txn candidacy", ""}, // beside the candidate's key
		{record.LastRestoredKey, "txn restored", ""},
		{record.ClusterKey, "txn level", ""},
		{record.LevelsPrefix, "txn candidacy", ""},
	} {
		if strings.HasPrefix(op.Key, row.prefix) {
			if op.Delete {
				return row.deleted, ""
			}
			return row.put, ""
		}
	}
	return "txn of " + op.Key, ""
}

func recordStep(op record.Op) (string, resource.NodeID) {
	if op.Delete {
		return "txn collect", ""
	}
	rec, err := record.Decode[record.Tx](op.Key, op.Value)
	if err != nil {
		return "txn unreadable record", ""
	}
	if rec.State != grant.RecordAborted {
		return "txn " + strings.ToLower(rec.State.String()), ""
	}
	if node, ours := strings.CutPrefix(rec.Reason, "fenced for "); ours {
		return "txn agent's fence", resource.NodeID(node)
	}
	switch rec.Reason {
	case "a creation had no answer":
		return "txn guard's fence", ""
	case "StoreRestored":
		return "txn disowning", ""
	}
	return "txn fence", ""
}

func nodeStep(op record.Op) (string, resource.NodeID) {
	key, err := record.ParseNodeKey(op.Key)
	if err != nil {
		return "txn unreadable key", ""
	}
	if op.Delete && key.Part <= record.NodeStatusPart {
		return "txn node deletion", key.ID
	}
	switch key.Part {
	case record.NodeIdentityPart:
		i, err := record.Decode[record.NodeIdentity](op.Key, op.Value)
		switch assumed := strings.HasPrefix(i.FencedFor, "assume-dead policy"); {
		case err != nil || !i.Fenced:
			return "txn registration", key.ID
		case assumed && i.ConfirmedDead:
			return "txn assumed death", key.ID
		case assumed:
			return "txn assumed fence", key.ID
		}
		return "txn node fence", key.ID
	case record.NodeTxPart:
		return "", "" // always beside its record
	}
	return "txn node " + nodeParts[key.Part], key.ID
}

var nodeParts = map[record.NodePart]string{
	record.NodeIdentityPart: "identity", record.NodeSpecPart: "spec", record.NodeStatusPart: "status", record.NodeLeasePart: "lease", record.NodeTxPart: "index",
	record.NodeObservedPart: "observed", record.NodeLostPart: "observed", // two keys of one kind of write
}

// readStep names a read or a watch by what it is of.
func readStep(verb, key string) (name string, node resource.NodeID) {
	if id, err := record.ParseNodeKey(key); err == nil {
		return verb + " node " + nodeParts[id.Part], id.ID
	}
	if strings.HasPrefix(key, record.NodesPrefix) && strings.HasSuffix(key, "/tx/") {
		return verb + " node index", ""
	}
	if id, err := record.ParseEnrolledKey(key); err == nil {
		return verb + " enrolment", id
	}
	for _, row := range []struct{ prefix, name string }{
		{record.TxPrefix, "record"},
		{record.ReadyPrefix, "record"}, // it stands beside the record, and is read for the same reason
		{record.UnitsPrefix, "unit"},
		{record.JobsPrefix, "job"},
		{record.OrderPrefix, "order"},
		{record.LeaderPrefix, "leader"},
		{record.TermsPrefix, "leader"},
		{record.LastRestoredKey, "restored"},
		{record.ClusterKey, "level"},
		{record.QuotaPrefix, "quota"},
		{record.RequestsPrefix, "request"},
		{record.NodesPrefix, "nodes"},
	} {
		if strings.HasPrefix(key, row.prefix) {
			return verb + " " + row.name, ""
		}
	}
	if key == record.Root {
		return verb + " everything", ""
	}
	return verb + " of " + key, ""
}

// messageStep names a message of a session.
func messageStep(m Message) string {
	if m.ToAgent != nil {
		return "tell " + kind(m.ToAgent.GetMessage())
	}
	if r := m.FromAgent.GetReply(); r != nil {
		return "hear " + strings.ToLower(r.GetState().String())
	}
	return "hear " + kind(m.FromAgent.GetMessage())
}

func kind(message any) string {
	switch message.(type) {
	case *musterv1.LeaderMessage_Hello, *musterv1.AgentMessage_Hello:
		return "hello"
	case *musterv1.LeaderMessage_Reserve:
		return "reserve"
	case *musterv1.LeaderMessage_Commit:
		return "commit"
	case *musterv1.LeaderMessage_Abort:
		return "abort"
	case *musterv1.LeaderMessage_Release:
		return "release"
	case *musterv1.LeaderMessage_Evict:
		return "evict"
	case *musterv1.LeaderMessage_Forget:
		return "forget"
	case *musterv1.LeaderMessage_Resync:
		return "resync"
	case *musterv1.LeaderMessage_Cordon:
		return "cordon"
	case *musterv1.LeaderMessage_Reconcile:
		return "reconcile"
	case *musterv1.LeaderMessage_KubeletPool:
		return "kubelet pool"
	case *musterv1.AgentMessage_Occupancy:
		return "occupancy"
	case *musterv1.AgentMessage_Registered:
		return "registered"
	case *musterv1.AgentMessage_Health:
		return "health"
	}
	return "something else"
}
