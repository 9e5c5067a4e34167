package lead

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/resource"
)

// retired holds the transactions whose records are terminal and still in the
// store. A record is collected when it is old enough and every node of it has
// reported that it holds nothing of it.
//
// Invariant: no transaction is both in terminal and in unheard.
type retired struct {
	terminal []terminalRecord // ascending by when
	// unheard are the records that wait for reports, with the nodes whose report is
	// missing.
	unheard map[resource.TxID]map[resource.NodeID]bool
	// collecting are the records whose deletion is under way.
	collecting map[resource.TxID]bool
	// doubtful are transactions that ended while a Txn for them was in doubt: their
	// records stay in this epoch.
	doubtful map[resource.TxID]bool
	// ready are the transactions, ended or not, that may have a key of
	// record.ReadyPrefix: the key goes with the record.
	ready map[resource.TxID]bool
}

// terminalRecord waits to be collected.
type terminalRecord struct {
	tx   resource.TxID
	when time.Time
}

func newRetired() retired {
	return retired{unheard: map[resource.TxID]map[resource.NodeID]bool{}, collecting: map[resource.TxID]bool{}, doubtful: map[resource.TxID]bool{}, ready: map[resource.TxID]bool{}}
}

// add takes in a terminal record; nodes are those whose report is missing.
func (r *retired) add(tx resource.TxID, nodes []resource.NodeID, now time.Time) {
	if len(nodes) == 0 { // model: mutant COLLECT_UNHEARD
		r.terminal = append(r.terminal, terminalRecord{tx, now})
		return
	}
	r.unheard[tx] = map[resource.NodeID]bool{}
	for _, id := range nodes {
		r.unheard[tx][id] = true
	}
}

// keepReady notes that a transaction has a key of record.ReadyPrefix, or may have.
func (r *retired) keepReady(tx resource.TxID) { r.ready[tx] = true }

// dropReady notes that the key is deleted.
func (r *retired) dropReady(tx resource.TxID) { delete(r.ready, tx) }

// doubt keeps a record for the rest of the epoch.
func (r *retired) doubt(tx resource.TxID) { r.doubtful[tx] = true }

// report takes in that a node holds nothing of a transaction.
func (r *retired) report(tx resource.TxID, id resource.NodeID, now time.Time) {
	waits := r.unheard[tx]
	if !waits[id] {
		return
	}
	if delete(waits, id); len(waits) == 0 {
		delete(r.unheard, tx)
		r.add(tx, nil, now)
	}
}

// waitingFor lists the records that wait for a node's report, in order.
func (r *retired) waitingFor(id resource.NodeID) []resource.TxID {
	var txs []resource.TxID
	for _, tx := range slices.Sorted(maps.Keys(r.unheard)) {
		if r.unheard[tx][id] {
			txs = append(txs, tx)
		}
	}
	return txs
}

// all are the transactions whose records are known here.
func (r *retired) all() map[resource.TxID]bool {
	all := maps.Clone(r.doubtful)
	for _, t := range r.terminal {
		all[t.tx] = true
	}
	maps.Copy(all, r.collecting)
	for tx := range r.unheard {
		all[tx] = true
	}
	return all
}

// hasOld reports whether takeOld could take or forget a record.
func (r *retired) hasOld(before time.Time) bool {
	return len(r.collecting) > 0 || len(r.terminal) > 0 && r.terminal[0].when.Before(before)
}

// takeOld takes out records, once each, that were terminal before a time, at most as many as
// most; named are transactions whose records stay.
func (r *retired) takeOld(before time.Time, named map[resource.TxID]bool, most int) []terminalRecord {
	var old []terminalRecord
	r.terminal = slices.DeleteFunc(r.terminal, func(t terminalRecord) bool {
		if r.collecting[t.tx] { // retired twice, by its fence and by the sweep of fences
			return true
		}
		if len(old) == most || named[t.tx] || !t.when.Before(before) {
			return false
		}
		old = append(old, t)
		r.collecting[t.tx] = true
		return true
	})
	return old
}

// finishCollection notes that the deletion of records has an answer.
func (r *retired) finishCollection(old []terminalRecord) {
	for _, t := range old {
		delete(r.collecting, t.tx)
	}
}

// putBack takes records in again that takeOld has taken out.
func (r *retired) putBack(old []terminalRecord) {
	r.terminal = append(old, r.terminal...)
	slices.SortStableFunc(r.terminal, func(a, b terminalRecord) int { return cmp.Compare(a.when.UnixNano(), b.when.UnixNano()) })
}
