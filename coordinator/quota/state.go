package quota

import (
	"maps"
	"slices"
	"strconv"
)

// AppendState appends the live state as text: mode, forests, and of every tree
// the nodes with their amounts and their consumers in order. Two managers with
// the same text behave the same from now on, given the same specifications.
func (m *Manager) AppendState(b []byte) []byte {
	b = append(b, "mode "...)
	b = append(append(b, m.mode.String()...), '\n')
	for _, name := range m.ForestNames() {
		b = strconv.AppendQuote(append(b, "forest "...), name)
		for _, t := range m.forests[name].trees {
			b = strconv.AppendQuote(append(b, ' '), t.name)
		}
		b = append(b, '\n')
	}
	for _, name := range slices.Sorted(maps.Keys(m.trees)) {
		b = m.appendTree(b, m.trees[name])
	}
	return b
}

func (m *Manager) appendTree(b []byte, t *tree) []byte {
	b = strconv.AppendQuote(append(b, "tree "...), t.name)
	for _, name := range t.resources {
		b = strconv.AppendQuote(append(b, ' '), string(name))
	}
	b = strconv.AppendInt(append(b, " next "...), t.order, 10)
	b = append(b, '\n')
	for n := range t.nodes {
		b = strconv.AppendQuote(append(b, " node "...), t.nodes[n].name)
		b = strconv.AppendInt(append(b, ' '), int64(t.nodes[n].parent), 10)
		b = strconv.AppendBool(append(b, ' '), t.nodes[n].hard)
		for kind := range amountKinds {
			b = append(b, " |"...)
			for _, a := range t.amount(int32(n), kind) {
				b = strconv.AppendInt(append(b, ' '), a, 10)
			}
		}
		b = append(b, '\n')
		for s := t.nodes[n].head; s != none; s = t.seats[s].next {
			b = m.appendSeat(b, t, &t.seats[s])
		}
	}
	return b
}

// appendSeat appends a seat and its place in the tree's order.
func (m *Manager) appendSeat(b []byte, t *tree, c *seat) []byte {
	b = strconv.AppendQuote(append(b, "  seat "...), m.consumers[c.consumer].id)
	b = strconv.AppendQuote(append(b, " group "...), c.groupName)
	b = strconv.AppendInt(append(b, " order "...), c.order, 10)
	b = strconv.AppendInt(append(b, " via "...), int64(c.via), 10)
	b = strconv.AppendInt(append(b, " since "...), c.since, 10)
	for _, a := range t.request(m.consumers[c.consumer].demands[c.demand].seat) {
		b = strconv.AppendInt(append(b, ' '), a, 10)
	}
	return append(b, '\n')
}
