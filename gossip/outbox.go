package gossip

import (
	"math"
	"slices"
	"sync"
)

// outbox is the digests that a member still passes on: of each node the newest, a
// bounded number of times. It does the work of memberlist.TransmitLimitedQueue, with
// lists in place of a tree that is searched for each message of each packet.
//
// Invariant: letters[node] is in tiers[letters[node].sent], at its place; no other
// letter is in tiers. Each tier is in the order of arrival.
type outbox struct {
	members func() int // of the ring
	mult    int        // see limit

	mu      sync.Mutex
	letters map[string]*letter
	tiers   [][]*letter // by the number of times that they were sent
}

// letter is one digest on its way.
type letter struct {
	node string
	raw  []byte
	sent int
}

func newOutbox(members func() int, mult int) *outbox {
	return &outbox{members: members, mult: mult, letters: map[string]*letter{}}
}

// put has a digest sent, in place of an older one of the node.
func (o *outbox) put(node string, raw []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.letters[node]
	if l == nil {
		l = &letter{node: node}
		o.letters[node] = l
	} else {
		o.tiers[l.sent] = slices.DeleteFunc(o.tiers[l.sent], func(other *letter) bool { return other == l })
	}
	l.raw, l.sent = raw, 0
	o.file(l)
}

// file puts a letter into its tier. mu is held.
func (o *outbox) file(l *letter) {
	for len(o.tiers) <= l.sent {
		o.tiers = append(o.tiers, nil)
	}
	o.tiers[l.sent] = append(o.tiers[l.sent], l)
}

// limit is how often a digest is sent: mult times the decimal digits that the number
// of members needs, as memberlist has it.
func (o *outbox) limit() int {
	return o.mult * int(math.Ceil(math.Log10(float64(o.members()+1))))
}

// take returns the messages of the next packet, those that were sent least first and
// of these the newest first. Each costs its length and overhead, all together at most
// limit bytes.
func (o *outbox) take(overhead, limit int) [][]byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.letters) == 0 {
		return nil
	}
	var taken []*letter
	var packet [][]byte
	for i, tier := range o.tiers {
		kept := len(tier) // tier[kept:] has the newer letters that found no room
		for k := len(tier) - 1; k >= 0; k-- {
			l := tier[k]
			if cost := overhead + len(l.raw); cost <= limit {
				limit -= cost
				taken, packet = append(taken, l), append(packet, l.raw)
				continue
			}
			kept--
			tier[kept] = l
		}
		clear(tier[copy(tier, tier[kept:]):])
		o.tiers[i] = tier[:len(tier)-kept]
	}
	most := o.limit()
	for _, l := range slices.Backward(taken) {
		if l.sent++; l.sent >= most {
			delete(o.letters, l.node)
		} else {
			o.file(l)
		}
	}
	return packet
}
