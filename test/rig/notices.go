package rig

import (
	"time"

	"github.com/musterd/muster/coordinator/record"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
)

// notices are what agents were told to end with a grace. A member is not freed
// before that has passed since its record became EVICTING, from which the agent
// may know of it (I8); unless its owner ended it, or its host restarted: then it
// ended by itself.
type notices map[notice]promise

type notice struct {
	node resource.NodeID
	tx   resource.TxID
}

// promise is the longest grace that was told. It is void once something else
// ends the member, or may have.
type promise struct {
	grace time.Duration
	void  bool
}

// noticed takes a message to an agent.
func (a *audit) noticed(node resource.NodeID, m *musterv1.LeaderMessage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r := m.GetRelease(); r != nil {
		a.notices.revoke(notice{node, resource.TxID(r.GetTx())})
	}
	e := m.GetEvict()
	if e == nil {
		return
	}
	key := notice{node, resource.TxID(e.GetTx())}
	p, again := a.notices[key]
	if !again {
		p.void = !a.restarts[node].Before(a.evicting[key.tx])
	}
	p.grace = max(p.grace, time.Duration(e.GetGraceMillis())*time.Millisecond)
	a.notices[key] = p
}

func (n notices) revoke(key notice) {
	p := n[key]
	p.void = true
	n[key] = p
}

// restarted voids what a host was told: what ran there has ended.
func (a *audit) restarted(node resource.NodeID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.restarts[node] = time.Now()
	for key := range a.running {
		if key.node == node {
			delete(a.running, key)
		}
	}
	for key := range a.notices {
		if key.node == node {
			a.notices.revoke(key)
		}
	}
}

// freed takes an agent's word that nothing runs any more; mu is held.
func (a *audit) freed(node resource.NodeID, tx resource.TxID) {
	a.free[notice{node, tx}] = true
	p, told := a.notices[notice{node, tx}]
	if passed := time.Since(a.evicting[tx]); told && !p.void && passed < p.grace {
		a.t.Errorf("I8: %s freed %s %v after its record became EVICTING, which promised %v", node, tx, passed, p.grace)
	}
}

// checkVictim looks at a record that became EVICTING for a preemptor: that is
// undecided then, and of higher priority unless quota may have named the victim
// (I7). mu is held.
func (a *audit) checkVictim(revision resource.Revision, tx resource.TxID, r record.Tx) {
	a.evicting[tx] = time.Now()
	for _, m := range r.Members {
		if key := (notice{m.Node, tx}); !a.running[key] && !a.restarts[m.Node].IsZero() {
			a.notices.revoke(key) // its restart has ended it, and it was not started again
		}
	}
	if r.By == "" {
		return
	}
	if by, decided := a.records[record.TxKey(r.By)]; decided {
		a.t.Errorf("I7: revision %d evicts %s for %s, which is %s", revision, tx, r.By, by.State)
	}
	uid, _, _, err := r.By.Attempt()
	if err != nil {
		a.t.Errorf("revision %d evicts %s for %q: %v", revision, tx, r.By, err)
		return
	}
	victim, preemptor := a.units[r.UnitUID], a.units[uid]
	claimsBack := len(a.trees) > 0 // which quota then decides, not the audit
	if victim.Priority >= preemptor.Priority && !claimsBack {
		a.t.Errorf("I7: revision %d evicts %s of priority %d for %s of priority %d", revision, tx, victim.Priority, r.By, preemptor.Priority)
	}
}

// checkFreed is called when a charge ends: every member's agent has said that
// its part is free, or its node is confirmed dead (I10). mu is held.
func (a *audit) checkFreed(revision resource.Revision, tx resource.TxID, r record.Tx) {
	for _, m := range r.Members {
		if node := a.nodes[m.Node]; !a.free[notice{m.Node, tx}] && (!node.Fenced || !node.ConfirmedDead) {
			a.t.Errorf("I10: revision %d ends the charge of %s, of which %s was not heard to be rid", revision, tx, m.Node)
		}
	}
}
