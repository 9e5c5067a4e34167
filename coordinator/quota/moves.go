package quota

// Moves returns the consumers that the last call moved, placed or took away,
// in the order in which it first touched them. They are what Allocate,
// Deallocate, Try, Undo, Restore and Rollback did; an update tells its own. The
// last call is the last that could have changed something; a refused one moved
// nobody.
func (m *Manager) Moves() []Move {
	records := m.log.records[m.log.call:]
	if m.undone {
		records = m.log.records[m.log.call:m.undoneTo]
	}
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

// nameOf is a node's name, empty for none.
func (t *tree) nameOf(n int32) string {
	if n == none {
		return ""
	}
	return t.nodes[n].name
}
