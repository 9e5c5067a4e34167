package ledger

import (
	"math/bits"

	"github.com/musterd/muster/resource"
)

// Hash sums up who holds what: the sum, modulo 2^64, of GrantHash over all
// grants but tombstones, so in any order; 0 when there are none. The leader
// computes the same from its cached view: equal hashes mean an equal view. A
// Waiting grant counts with its assignment, for it too keeps others out.
func (l *Ledger) Hash() uint64 { return l.hash }

// GrantHash hashes a transaction with its members' assignments, in ascending
// order of Index. States, requests and UUIDs are not part of it: both sides
// know a device by its index in the inventory that they share.
func GrantHash(tx resource.TxID, members []Member) uint64 {
	h := uint64(len(tx)) ^ 0x9e3779b97f4a7c15
	for i := 0; i < len(tx); i += 8 {
		var word uint64
		for j := i; j < min(i+8, len(tx)); j++ {
			word = word<<8 | uint64(tx[j])
		}
		h = mix(h, word)
	}
	for _, m := range members {
		a := m.Assignment
		h = mix(h, uint64(m.Index))
		h = mix(h, uint64(len(a.CPUs))<<40|uint64(len(a.Memory))<<20|uint64(len(a.GPUs)))
		for _, c := range a.CPUs {
			h = mix(h, uint64(c.ID)<<32|uint64(c.Milli))
		}
		for _, g := range a.Memory {
			h = mix(mix(h, uint64(g.Node)), uint64(g.Bytes))
		}
		for _, g := range a.GPUs {
			h = mix(h, uint64(g.Index)<<32|uint64(g.Milli))
		}
	}
	return mix(h, uint64(len(members)))
}

// mix folds a word into a hash by a 128-bit product (the construction of
// wyhash, github.com/wangyi-fudan/wyhash).
func mix(h, word uint64) uint64 {
	high, low := bits.Mul64(h^0xa0761d6478bd642f, word^0xe7037ed1a0b428db^h)
	return high ^ low ^ h
}
