package rig

import (
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
)

// attempt is what a transaction's attempt is called: an epoch and a counter
// within it. None is used for two transactions, whoever leads.
type attempt struct {
	epoch   resource.Epoch
	counter uint64
}

// told takes a message of a leader.
func (a *audit) told(m *musterv1.LeaderMessage) {
	r := m.GetReserve()
	if r == nil {
		return
	}
	tx := resource.TxID(r.GetTx())
	_, epoch, counter, err := tx.Attempt()
	if err != nil {
		a.t.Errorf("a leader asks for %q: %v", tx, err)
		return
	}
	if int64(epoch) > r.GetEpoch() {
		a.t.Errorf("the leader of epoch %d asks for %s", r.GetEpoch(), tx)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	at := attempt{epoch, counter}
	if other, used := a.attempts[at]; used && other != tx {
		a.t.Errorf("attempt %d of epoch %d is %s and %s", counter, epoch, other, tx)
	}
	a.attempts[at] = tx
}
