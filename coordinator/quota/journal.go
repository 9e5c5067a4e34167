package quota

import "slices"

// journal holds every change to the trees' seats since the oldest checkpoint
// that is open, or since the last call began where none is. So a refused attempt,
// a step of an attempt, a try, or all calls since a checkpoint can be taken back
// exactly.
//
// Invariant: victims has one entry for each record of opEvict, in order, settled
// one for each record of opSettle since the oldest open checkpoint; marks ascend
// by serial.
type journal struct {
	records []record
	victims []victim   // the evicted consumers
	settled []stay     // see opSettle
	marks   []openMark // the open checkpoints, outermost first
	serial  uint64     // of the last checkpoint
	// call and callVictims are the lengths of records and victims when the last
	// call began.
	call, callVictims int
	// protected is the earliest time at which MinRunTime is over for a consumer
	// that the call could not evict because of it, in nanoseconds; 0 for none.
	protected int64
}

// victim is an evicted seat.
type victim struct {
	slot, seat, consumer int32
}

// record is one change, with what its reversal needs. A charge and a discharge
// are of the nodes from node up to via.
type record struct {
	order          int64
	slot           int32 // tree
	seat           int32
	node, via      int32
	prev, bandPrev int32
	op             operation
}

type operation uint8

const (
	opPut       operation = iota // listed at the end
	opTake                       // taken off a list
	opCharge                     // counted on a node
	opDischarge                  // not counted on a node any more
	opEnter                      // counted as its group's use
	opLeave                      // not counted as its group's use any more
	opEvict                      // named a victim
	opSettle                     // prepared for an allocation, while a checkpoint is open
)

func (j *journal) add(r record) { j.records = append(j.records, r) }

// addStep records a charge or discharge of one node. Steps of one seat up its
// path, with nothing between them, make one record: whoever marked the journal
// between them has gone on without taking back. A checkpoint between two calls is
// such a mark that is still in use, so steps of two calls stay apart.
func (j *journal) addStep(op operation, t *tree, s, n int32) {
	if last := len(j.records) - 1; last >= j.call {
		r := &j.records[last]
		if r.op == op && r.seat == s && r.slot == t.slot && t.nodes[r.via].parent == n {
			r.via = n
			return
		}
	}
	j.records = append(j.records, record{op: op, slot: t.slot, seat: s, node: n, via: n})
}

func (j *journal) mark() int { return len(j.records) }

// evicted names a seat a victim.
func (t *tree) evicted(s int32) {
	t.log.victims = append(t.log.victims, victim{t.slot, s, t.seats[s].consumer})
	t.log.add(record{op: opEvict, slot: t.slot, seat: s})
}

// rollback takes back all of this tree's changes since mark; no other tree has
// changed since.
func (t *tree) rollback(mark int) {
	for _, r := range slices.Backward(t.log.records[mark:]) {
		t.revert(&r)
	}
	t.log.records = t.log.records[:mark]
}

// rollback takes back everything since mark on all trees.
func (m *Manager) rollback(mark int) {
	for _, r := range slices.Backward(m.log.records[mark:]) {
		m.slots[r.slot].revert(&r)
	}
	m.log.records = m.log.records[:mark]
}

// revert takes back one change; everything after it is taken back already.
func (t *tree) revert(r *record) {
	switch r.op {
	case opPut:
		t.unlink(r.seat)
		t.order--
	case opTake:
		t.link(r.seat, r.node, r.via, r.order, r.prev, t.bandOf(r.node, r.seat), r.bandPrev)
	case opCharge:
		for n, end := r.node, t.nodes[r.via].parent; n != end; n = t.nodes[n].parent {
			t.subAllocated(r.seat, n)
		}
	case opDischarge:
		for n, end := r.node, t.nodes[r.via].parent; n != end; n = t.nodes[n].parent {
			t.addAllocated(r.seat, n)
		}
	case opEnter:
		t.subUse(r.seat)
	case opLeave:
		t.addUse(r.seat)
	case opEvict:
		t.log.victims = t.log.victims[:len(t.log.victims)-1]
	case opSettle:
		last := len(t.log.settled) - 1
		t.seats[r.seat].stay = t.log.settled[last]
		t.log.settled = t.log.settled[:last]
	}
}
