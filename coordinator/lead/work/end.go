package work

import (
	"github.com/musterd/muster/coordinator/record"
)

// UnitEnd is what becomes of a unit when its transaction is RELEASED.
//
// Invariant: it is fixed with the first Txn that writes it, whichever of
// several lands.
type UnitEnd struct {
	Record record.Unit
	// Waiting is why a unit that waits again is not tried at once; nil for another unit.
	Waiting *record.Waiting
	// Removed: an allocation that its owner has deleted, or a replacement whose gang does not
	// run any more.
	Removed bool
	// Requeued: a job's unit that was evicted or whose work starts again, or an
	// allocation that its owner has suspended, is back at its place in the order.
	Requeued bool
}

func (e *UnitEnd) Ops() []record.Op {
	key := e.Record.Path().Key()
	switch {
	case e.Removed:
		return []record.Op{record.Delete(key)}
	case e.Requeued:
		return []record.Op{
			record.Put(key, record.MustEncode(e.Record)),
			record.Put(e.Record.Order().Key(), record.MustEncode(record.Order{UnitUID: e.Record.UID, Waiting: e.Waiting})),
		}
	}
	return []record.Op{record.Put(key, record.MustEncode(e.Record))}
}
