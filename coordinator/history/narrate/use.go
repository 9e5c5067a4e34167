package narrate

import (
	"cmp"
	"maps"
	"slices"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/resource"
)

// memberKey names a member of a transaction.
type memberKey struct {
	tx     resource.TxID
	member int
}

// hearUses takes the measured use of members out of the status of their node. A host
// speaks for the members that its node has alone.
func (n *Narrator) hearUses(id resource.NodeID, before, after *node) {
	if after == nil || after.status == nil || before != nil && before.status == after.status {
		return
	}
	at := parsed(after.status.HeardAt)
	if at.IsZero() {
		return
	}
	for _, w := range after.status.Work {
		t := n.txs[w.Tx]
		if t == nil || t.record.State.Terminal() || !t.has(w.Member, id) {
			continue
		}
		use := history.Use{Tx: w.Tx, Member: w.Member, At: at, CPUMillis: w.Use.CPUMillis}
		for _, d := range w.Use.Devices {
			use.AddDevice(d.BusyMillis)
		}
		n.uses[memberKey{w.Tx, w.Member}] = use
	}
}

// has reports whether a member of the transaction is on a node.
func (t *tx) has(member int, node resource.NodeID) bool {
	for _, m := range t.record.Members {
		if m.Member == member {
			return m.Node == node
		}
	}
	return false
}

// Uses returns the newest use of each live member whose node has reported since the last
// call, ascending by transaction and member.
func (n *Narrator) Uses() []history.Use {
	uses := slices.SortedFunc(maps.Values(n.uses), func(a, b history.Use) int { return cmp.Or(cmp.Compare(a.Tx, b.Tx), cmp.Compare(a.Member, b.Member)) })
	clear(n.uses)
	return uses
}
