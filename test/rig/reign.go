package rig

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/musterd/muster/coordinator/record"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
)

// reign is who led when, and whose Txns landed: after a newer epoch is elected
// none of an older one takes effect in the store (I12). That the code compares
// the leader's key is not taken for granted: what only a leader may write must
// come from it.
type reign struct {
	candidates map[string]resource.Epoch // that are there now, by key
	leaders    []tenure                  // by revision
	writes     map[resource.Revision]written
}

// tenure says who leads after a revision; epoch 0 is nobody.
type tenure struct {
	from  resource.Revision
	epoch resource.Epoch
}

// written is a Txn of a coordinator that landed.
type written struct {
	by    string
	what  []string
	epoch resource.Epoch // that it compared; 0 for none
}

func newReign() reign {
	return reign{candidates: map[string]resource.Epoch{}, writes: map[resource.Revision]written{}}
}

// follow takes a change of a candidate's key: the oldest leads.
func (r *reign) follow(revision resource.Revision, e record.Event) {
	if e.Type == record.EventDelete {
		delete(r.candidates, e.KV.Key)
	} else {
		r.candidates[e.KV.Key] = resource.Epoch(e.KV.CreateRev)
	}
	first := resource.Epoch(0)
	for _, epoch := range r.candidates {
		if first == 0 || epoch < first {
			first = epoch
		}
	}
	r.leaders = append(r.leaders, tenure{revision, first})
}

// others are the writes that are not the leader's alone; quotas and a node's
// specification are, but are compared with revisions that agents change too.
var others = []string{"txn candidacy", "txn registration", "txn node", "txn agent's fence", "txn fence"}

// landed notes a Txn of a coordinator.
func (a *audit) landed(coordinator string, revision resource.Revision, t record.Txn) {
	names, _ := TxnSteps(t)
	if slices.ContainsFunc(names, func(name string) bool {
		return slices.ContainsFunc(others, func(other string) bool { return strings.HasPrefix(name, other) })
	}) {
		return
	}
	w := written{by: coordinator, what: names}
	for _, c := range t.If {
		if strings.HasPrefix(c.Key, record.LeaderPrefix) {
			w.epoch = resource.Epoch(c.Rev)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reign.writes[revision] = w
}

// check compares the writes up to a revision with the leaders of their time.
func (r *reign) check(upTo resource.Revision) []string {
	var problems []string
	for _, revision := range slices.Sorted(maps.Keys(r.writes)) {
		w := r.writes[revision]
		at, _ := slices.BinarySearchFunc(r.leaders, revision, func(t tenure, rev resource.Revision) int { return cmp.Compare(t.from, rev) })
		if revision > upTo || at == 0 {
			continue
		}
		if leader := r.leaders[at-1].epoch; leader != w.epoch {
			problems = append(problems, fmt.Sprintf("I12: revision %d is %s of %s in epoch %d, while %d leads", revision, strings.Join(w.what, ", "), w.by, w.epoch, leader))
		}
	}
	return problems
}

// promises is what an agent was heard to have promised since it let the leader
// of the newest epoch in. A promise of an older epoch that is new then is one
// that a deposed leader got (I12).
type promises struct {
	epoch resource.Epoch // of the newest leader that was told what the agent holds
	known map[resource.TxID]bool
}

// heard takes a message of an agent in the session of a leader.
func (a *audit) heard(node resource.NodeID, epoch resource.Epoch, m *musterv1.AgentMessage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.promises[node]
	if p == nil {
		p = &promises{known: map[resource.TxID]bool{}}
		a.promises[node] = p
	}
	a.rid(node, m)
	if epoch < p.epoch {
		return // it was sent before
	}
	switch {
	case m.GetHello() != nil && m.GetHello().GetRegisteredRevision() > 0:
		p.tell(epoch, m.GetHello().GetOccupancy())
	case m.GetOccupancy() != nil:
		p.tell(epoch, m.GetOccupancy())
	case m.GetReply() != nil:
		tx := resource.TxID(m.GetReply().GetTx())
		promised := m.GetReply().GetState() == musterv1.Reply_RESERVED || m.GetReply().GetState() == musterv1.Reply_WAITING
		if _, of, _, err := tx.Attempt(); promised && err == nil && of < p.epoch && !p.known[tx] {
			a.t.Errorf("I12: %s promises %s of epoch %d after it has let epoch %d in", node, tx, of, p.epoch)
		}
		p.known[tx] = true
	}
}

// rid notes what an agent says it has nothing of, and what it holds; mu is held.
func (a *audit) rid(node resource.NodeID, m *musterv1.AgentMessage) {
	switch r := m.GetReply(); r.GetState() {
	case musterv1.Reply_FREED, musterv1.Reply_NONE:
		a.freed(node, resource.TxID(r.GetTx()))
	case musterv1.Reply_HELD:
		a.running[notice{node, resource.TxID(r.GetTx())}] = true
	}
	for _, o := range []*musterv1.Occupancy{m.GetHello().GetOccupancy(), m.GetOccupancy()} {
		for _, g := range o.GetGrants() {
			switch g.GetState() {
			case musterv1.Reply_FREED:
				a.freed(node, resource.TxID(g.GetTx()))
			case musterv1.Reply_HELD:
				a.running[notice{node, resource.TxID(g.GetTx())}] = true
			}
		}
	}
}

func (p *promises) tell(epoch resource.Epoch, o *musterv1.Occupancy) {
	p.epoch = epoch
	for _, g := range o.GetGrants() {
		p.known[resource.TxID(g.GetTx())] = true
	}
}
