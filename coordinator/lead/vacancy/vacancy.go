// Package vacancy keeps the instants at which the nodes of a transaction freed its members,
// until the end of its record: the members of a gang end at different times, and the next
// unit gets the devices of a free node while another node still holds its own.
//
// A Book decides which nodes the key beside the record (record.Ready) has to name, and since
// when. Whether a node has freed its members decides the leader, which also writes the key.
package vacancy

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// Book has the transactions with nodes that have freed their members. Only a single
// goroutine may use a Book.
//
// Invariant: the nodes of each transaction ascend, each once.
type Book struct {
	of map[resource.TxID]*entry
	// closing are the instants at which the ends of records were first written.
	closing map[resource.TxID]int64
	// first are the instants of first writes of keys, while those have no answer.
	first map[resource.TxID]int64
}

// New returns an empty Book.
func New() Book {
	return Book{of: map[resource.TxID]*entry{}, closing: make(map[resource.TxID]int64, 8), first: make(map[resource.TxID]int64, 8)}
}

type entry struct {
	freed []record.FreedNode // never changed in place: records have them
	since time.Time          // of the last change
	asked time.Time          // begin of the write under way; zero: there is no such write
}

// Note takes in a node that has freed its members of a transaction. The first instant of a
// node, in milliseconds of the leader's clock, stays. now is the present time.
func (b *Book) Note(tx resource.TxID, node resource.NodeID, now time.Time, millis int64) {
	e := b.of[tx]
	if e != nil && record.HasFreed(e.freed, node) {
		return
	}
	if e == nil {
		e = b.add(tx)
	}
	e.freed, e.since = with(e.freed, node, millis), now
}

// with is a list with a further node.
func with(freed []record.FreedNode, node resource.NodeID, millis int64) []record.FreedNode {
	freed = append(slices.Clip(freed), record.FreedNode{Node: node, AtMillis: millis})
	slices.SortFunc(freed, func(x, y record.FreedNode) int { return strings.Compare(string(x.Node), string(y.Node)) })
	return freed
}

func (b *Book) add(tx resource.TxID) *entry {
	b.of[tx] = &entry{}
	return b.of[tx]
}

// Restore takes over the nodes of an earlier leader's key.
func (b *Book) Restore(tx resource.TxID, freed []record.FreedNode) {
	if len(freed) > 0 {
		b.add(tx).freed = freed
	}
}

// Retract takes back that a dead node has freed its members: the node is there again.
func (b *Book) Retract(tx resource.TxID, node resource.NodeID, now time.Time) {
	if e := b.of[tx]; e != nil && record.HasFreed(e.freed, node) {
		e.freed = slices.DeleteFunc(slices.Clone(e.freed), func(f record.FreedNode) bool { return f.Node == node })
		e.since = now
	}
}

// Close notes a write of a record's end, for which all nodes have freed their members.
func (b *Book) Close(tx resource.TxID, millis int64) {
	if b.closing[tx] == 0 {
		b.closing[tx] = millis
	}
}

// Reopen notes that the write has failed: the next write comes later than the freeing of the
// transaction's nodes.
func (b *Book) Reopen(tx resource.TxID, nodes []resource.NodeID, now time.Time) {
	if at := b.closing[tx]; at != 0 {
		delete(b.closing, tx)
		for _, id := range nodes {
			b.Note(tx, id, now, at)
		}
	}
}

// Forget drops a transaction at the end of its record.
func (b *Book) Forget(tx resource.TxID) {
	delete(b.of, tx)
	delete(b.closing, tx)
	delete(b.first, tx)
}

// First is the first key of a transaction all of whose members are held since an instant, and
// notes that a write of the key is under way.
func (b *Book) First(tx resource.TxID, millis int64) record.Ready {
	b.first[tx] = millis
	return record.Ready{AtMillis: millis}
}

// Answered notes the end of a write of a key.
func (b *Book) Answered(tx resource.TxID, written record.Ready) {
	b.Ask(tx, time.Time{})
	if len(written.Freed) == 0 {
		delete(b.first, tx)
	}
}

// With is a transaction's key with nodes that have freed their members. The key has the instant
// of a first write without an answer: that write may have landed.
func (b *Book) With(tx resource.TxID, k Key, freed []record.FreedNode) record.Ready {
	next := k.Ready
	next.AtMillis, next.Freed = cmp.Or(k.AtMillis, b.first[tx]), freed
	return next
}

// Of are the nodes of a transaction that have freed their members, ascending.
func (b *Book) Of(tx resource.TxID) []record.FreedNode {
	if e := b.of[tx]; e != nil {
		return e.freed
	}
	return nil
}

// patience is the time for which a write without an answer counts as under way.
const patience = 10 * time.Second

// Ask notes that a write of a transaction's key is under way.
func (b *Book) Ask(tx resource.TxID, now time.Time) {
	if e := b.of[tx]; e != nil {
		e.asked = now
	}
}

func (e *entry) isAsked(now time.Time) bool { return !e.asked.IsZero() && now.Sub(e.asked) < patience }

// settled is the time without a change after which a key is written: most units end on all
// nodes at about the same time.
const settled = time.Second

// End is the instant of a record's end: the last freeing of the transaction's nodes, so many
// of them, where the book has all, else the present instant.
func (b *Book) End(tx resource.TxID, nodes int, millis int64) int64 {
	e := b.of[tx]
	if e == nil || len(e.freed) < nodes {
		return millis
	}
	last := int64(0)
	for _, f := range e.freed {
		last = max(last, f.AtMillis)
	}
	return last
}

// AtEnd are the nodes to name in the key at the end of the record, an instant: nil where all
// ended then, and while another write of the key is under way. A preemptor has claimed the
// devices of a claimed transaction: less than a second between the freeing of its nodes and
// the preemptor's commit is not worth a write.
func (b *Book) AtEnd(tx resource.TxID, end int64, claimed bool, now time.Time) []record.FreedNode {
	e := b.of[tx]
	if e == nil || e.isAsked(now) || claimed && now.Sub(e.since) < settled ||
		!slices.ContainsFunc(e.freed, func(f record.FreedNode) bool { return f.AtMillis < end }) {
		return nil
	}
	return e.freed
}

// Due are the transactions without a change for a second and without a write under way,
// ascending.
func (b *Book) Due(now time.Time) []resource.TxID {
	if b.IsEmpty() {
		return nil
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(b.of)), func(tx resource.TxID) bool { return b.of[tx].isAsked(now) || now.Sub(b.of[tx].since) < settled })
}

// Write is a key to be written.
type Write struct {
	Tx    resource.TxID
	Ready record.Ready
}

// mostAhead bounds the keys in the Txn of another transaction.
const mostAhead = 16

// Ahead are the keys, at most 16, that lack a freed node of some nodes, ascending: the next
// holder of the devices writes them with its commit. While the end of a record is
// being written, all nodes are free. key is the store's key of a transaction and the nodes, or
// false for a transaction to leave out. The writes count as under way.
func (b *Book) Ahead(nodes []resource.NodeID, now time.Time, key func(resource.TxID) (Key, []resource.NodeID, bool)) (writes []Write) {
	for _, tx := range b.open() {
		if e := b.of[tx]; len(writes) == mostAhead || e != nil && e.isAsked(now) {
			continue
		}
		k, all, counts := key(tx)
		freed := b.freedBy(tx, all)
		if !counts || !k.Lacks(freed) || !slices.ContainsFunc(nodes, func(id resource.NodeID) bool { return record.HasFreed(freed, id) }) {
			continue
		}
		b.Ask(tx, now)
		writes = append(writes, Write{tx, b.With(tx, k, freed)})
	}
	return writes
}

// open are the transactions with freed nodes, ascending.
func (b *Book) open() []resource.TxID {
	all := slices.AppendSeq(slices.Collect(maps.Keys(b.of)), maps.Keys(b.closing))
	slices.Sort(all)
	return slices.Compact(all)
}

// freedBy is Of with the nodes that have freed since.
func (b *Book) freedBy(tx resource.TxID, nodes []resource.NodeID) []record.FreedNode {
	freed, at := b.Of(tx), b.closing[tx]
	for _, id := range nodes {
		if at != 0 && !record.HasFreed(freed, id) {
			freed = with(freed, id, at)
		}
	}
	return freed
}

// IsEmpty reports whether no transaction has such a node.
func (b *Book) IsEmpty() bool { return len(b.of)+len(b.closing) == 0 }

// Key is the key of a transaction in the store; the zero value: the store has no such key.
type Key struct {
	record.Ready
	Revision resource.Revision
}

// Lacks reports whether the key has to name other nodes. An empty key is not written.
func (k *Key) Lacks(freed []record.FreedNode) bool {
	return !slices.Equal(freed, k.Freed) && (len(freed) > 0 || k.AtMillis != 0)
}

// Written is the key after a write of it that landed at a revision.
func (k *Key) Written(r record.Ready, rev resource.Revision) Key {
	r.SignaledMillis = max(r.SignaledMillis, k.SignaledMillis)
	return Key{Ready: r, Revision: rev}
}
