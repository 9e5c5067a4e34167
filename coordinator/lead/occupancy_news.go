package lead

import (
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/resource"
)

// occupancyNews names whose occupants are to be derived anew. The zero value names
// nobody.
type occupancyNews struct {
	units map[string]bool
	txs   map[resource.TxID]bool
	nodes map[resource.NodeID]bool // with all transactions there
}

// noteUnit notes that the unit's attempt or the request to end the unit has changed.
func (w *occupancyNews) noteUnit(u *work.Unit) { w.noteOccupant(u.Path) }

// noteOccupant notes that the occupant of a unit may be another.
func (w *occupancyNews) noteOccupant(unit string) {
	if w.units == nil {
		w.units = map[string]bool{}
	}
	w.units[unit] = true
}

// noteReservation notes that the reservation of a transaction on a node has
// changed. With one that waits, or waited, others may become contested or cease to
// be.
func (w *occupancyNews) noteReservation(id resource.NodeID, tx resource.TxID, waits bool) {
	if waits {
		w.noteNode(id)
	}
	if w.txs == nil {
		w.txs = map[resource.TxID]bool{}
	}
	w.txs[tx] = true
}

// noteNode notes that any reservation of the node may have changed.
func (w *occupancyNews) noteNode(id resource.NodeID) {
	if w.nodes == nil {
		w.nodes = map[resource.NodeID]bool{}
	}
	w.nodes[id] = true
}

// isEmpty reports whether no occupant is to be derived anew.
func (w *occupancyNews) isEmpty() bool { return len(w.units)+len(w.txs)+len(w.nodes) == 0 }
