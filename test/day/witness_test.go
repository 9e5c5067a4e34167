package day_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// witness keeps the transactions that ever committed, from their records alone, without the
// rules of the history.
type witness struct {
	txs  map[resource.TxID]*seen
	lost int // members whose nodes were confirmed dead
}

// seen is a transaction: its newest record, with the instants at which nodes freed members.
type seen struct {
	record record.Tx
	freed  map[resource.NodeID]int64
}

func newWitness() *witness { return &witness{txs: map[resource.TxID]*seen{}} }

// follow takes a change of the store.
func (w *witness) follow(t *testing.T, b record.Batch) {
	for _, e := range b.Events {
		if e.Type == record.EventDelete {
			continue
		}
		switch key := e.KV.Key; {
		case strings.HasPrefix(key, record.TxPrefix):
			id, err := record.ParseTxKey(key)
			r, wrong := record.Decode[record.Tx](key, e.KV.Value)
			if err != nil || wrong != nil {
				t.Fatal(err, wrong)
			}
			w.put(id, r)
		case strings.HasPrefix(key, record.ReadyPrefix):
			id, err := record.ParseReadyKey(key)
			r, wrong := record.Decode[record.Ready](key, e.KV.Value)
			if err != nil || wrong != nil {
				t.Fatal(err, wrong)
			}
			x := w.tx(id)
			clear(x.freed) // a node that holds its members again is taken back
			for _, f := range r.Freed {
				x.freed[f.Node] = f.AtMillis
			}
		}
	}
}

func (w *witness) tx(id resource.TxID) *seen {
	if w.txs[id] == nil {
		w.txs[id] = &seen{freed: map[resource.NodeID]int64{}}
	}
	return w.txs[id]
}

func (w *witness) put(id resource.TxID, r record.Tx) {
	if r.State == grant.RecordAborted {
		return
	}
	x := w.tx(id)
	w.lost += len(r.LostMembers) - len(x.record.LostMembers)
	x.record = r
}

// part is a member of a transaction.
type part struct {
	tx     resource.TxID
	member int
}

// held are the milliseconds for which each member held its part, times the thousandths of
// devices of the part. Members of a live transaction count up to an instant.
func (w *witness) held(upto int64) map[part]int64 {
	sums := map[part]int64{}
	for id, x := range w.txs {
		r := x.record
		end := upto
		if r.State.Terminal() {
			end = r.EndedMillis
		}
		for _, m := range r.Members {
			until := end
			if at, freed := x.freed[m.Node]; freed {
				until = min(until, at)
			}
			sums[part{id, m.Member}] += max(0, until-r.CommittedMillis) * devicesOf(m.Assignment)
		}
		for _, m := range r.LostMembers {
			sums[part{id, m.Member}] += max(0, min(end, m.AtMillis)-r.CommittedMillis) * devicesOf(m.Assignment)
		}
	}
	maps.DeleteFunc(sums, func(_ part, n int64) bool { return n == 0 })
	return sums
}

func devicesOf(a resource.Assignment) (milli int64) {
	for _, g := range a.GPUs {
		milli += int64(g.Milli)
	}
	return milli
}

// differences compares the witness with the slices of a history.
func (w *witness) differences(all []history.Slice, upto int64) (found []string) {
	got := map[part]int64{}
	for _, s := range all {
		if s.Slot == resource.GPU {
			got[part{s.Tx, s.Member}] += s.To.Sub(s.From).Milliseconds() * s.Allocated
		}
	}
	want := w.held(upto)
	for _, at := range slices.SortedFunc(maps.Keys(want), func(a, b part) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }) {
		if got[at] != want[at] {
			found = append(found, fmt.Sprintf("%s member %d: slices of %d GPU ms, the records tell %d", at.tx, at.member, got[at], want[at]))
		}
	}
	for at := range got {
		if want[at] == 0 {
			found = append(found, fmt.Sprintf("%s member %d: slices of %d GPU ms, the records tell none", at.tx, at.member, got[at]))
		}
	}
	return found
}
