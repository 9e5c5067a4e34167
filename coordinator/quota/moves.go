package quota

// Moves returns the consumers that the last call moved, placed or took away,
// in the order in which it first touched them. They are what Allocate,
// Deallocate, Try, Undo, Restore and Rollback did; an update tells its own. The
// last call is the last that could have changed something; a refused one moved
// nobody.
func (m *Manager) Moves() []Move {
	records := m.lastRecords()
	type seatOn struct{ slot, seat int32 }
	touched := map[seatOn]int{}
	var order []seatOn
	var first, last []int32
	for _, r := range records {
		if r.op != opPut && r.op != opTake {
			continue
		}
		key := seatOn{r.slot, r.seat}
		i, known := touched[key]
		if !known {
			i = len(order)
			touched[key] = i
			order, first, last = append(order, key), append(first, none), append(last, none)
			if r.op == opTake {
				first[i] = r.node
			}
		}
		last[i] = none
		if r.op == opPut {
			last[i] = r.node
		}
	}
	var moves []Move
	for i, key := range order {
		if first[i] == last[i] {
			continue
		}
		t := m.slots[key.slot]
		move := Move{Consumer: m.consumers[t.seats[key.seat].consumer].id, Tree: t.name, From: t.nameOf(first[i]), To: t.nameOf(last[i])}
		if m.undone {
			move.From, move.To = move.To, move.From
		}
		moves = append(moves, move)
	}
	return moves
}

// HasMovedOthers reports whether the last call, which has allocated a consumer, has
// also moved or evicted others: a claim may name other victims from then on. It
// reports true where the last call did not place the consumer.
func (m *Manager) HasMovedOthers(id string) bool {
	at, known := m.ids[id]
	placed := false
	if known && !m.undone {
		for _, r := range m.lastRecords() {
			own := m.slots[r.slot].seats[r.seat].consumer == at
			if r.op == opTake && !own {
				return true
			}
			placed = placed || own && r.op == opPut
		}
	}
	return !placed
}

// lastRecords are the changes of the last call.
func (m *Manager) lastRecords() []record {
	if m.undone {
		return m.log.records[m.log.call:m.undoneTo]
	}
	return m.log.records[m.log.call:]
}

// nameOf is a node's name, empty for none.
func (t *tree) nameOf(n int32) string {
	if n == none {
		return ""
	}
	return t.nodes[n].name
}
