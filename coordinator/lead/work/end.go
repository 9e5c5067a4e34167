package work

import (
	"github.com/musterd/muster/coordinator/record"
)

// UnitEnd is the outcome for a unit whose transaction is RELEASED.
//
// Invariant: it is fixed with the first Txn that writes it, whichever of
// several lands.
type UnitEnd struct {
	Record record.Unit
	// Waiting is the reason why a requeued unit is not tried at once; nil for another unit.
	Waiting *record.Waiting
	// Removed: an allocation deleted by the owner, or a replacement whose gang does not run any
	// more.
	Removed bool
	// Requeued: the unit is back at the old place in the order. The unit is an evicted unit of
	// a job, a unit of a job whose work starts again, or an allocation suspended by the owner.
	Requeued bool
}

// Ops returns the writes of the outcome: of the unit, and of the order key where requeued.
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
