package resource

import "math/bits"

// Fingerprint hashes the resources of a transaction on a host, so that two sides
// can compare their views by a single number: begin it with NewFingerprint,
// Add the members in ascending order of index, take the Sum.
//
// UUIDs, page and profile names are not part of it: both sides name a device
// or instance by its position in the inventory that they share, so only sides with the
// same inventory can compare fingerprints.
type Fingerprint struct {
	hash    uint64
	members uint64
}

// NewFingerprint begins the fingerprint of a transaction.
func NewFingerprint(tx TxID) Fingerprint {
	return Fingerprint{hash: mixText(0x9e3779b97f4a7c15, string(tx))}
}

// mixText folds a text into a hash.
func mixText(h uint64, text string) uint64 {
	h ^= uint64(len(text))
	for i := 0; i < len(text); i += 8 {
		var word uint64
		for j := i; j < min(i+8, len(text)); j++ {
			word = word<<8 | uint64(text[j])
		}
		h = mix(h, word)
	}
	return h
}

// Add takes in the assignment of the member with the given index.
func (f *Fingerprint) Add(member int, a *Assignment) {
	f.members++
	h := mix(f.hash, uint64(member))
	counts := uint64(len(a.CPUs))<<40 | uint64(len(a.Memory))<<20 | uint64(len(a.GPUs))
	more := len(a.Hugepages)+len(a.MIG)+len(a.Counts) > 0
	if more {
		counts |= 1 << 63 // another word of counts follows
	}
	h = mix(h, counts)
	for _, c := range a.CPUs {
		h = mix(h, uint64(c.ID)<<32|uint64(c.Milli))
	}
	for _, g := range a.Memory {
		h = mix(mix(h, uint64(g.Node)), uint64(g.Bytes))
	}
	for _, g := range a.GPUs {
		h = mix(h, uint64(g.Index)<<32|uint64(g.Milli))
	}
	if more {
		h = mix(h, uint64(len(a.Hugepages))<<20|uint64(len(a.MIG)))
		for _, g := range a.Hugepages {
			h = mix(mix(mix(h, uint64(g.Node)), uint64(g.Size)), uint64(g.Bytes))
		}
		for _, g := range a.MIG {
			h = mix(h, uint64(g.GPU)<<32|uint64(g.Instance))
		}
	}
	for i := range a.Counts {
		h = mix(mixText(h, string(a.Counts[i].Name)), uint64(a.Counts[i].Amount))
	}
	f.hash = h
}

// Sum is the fingerprint.
func (f Fingerprint) Sum() uint64 { return mix(f.hash, f.members) }

// mix folds a word into a hash by a 128-bit product (the construction of
// wyhash, github.com/wangyi-fudan/wyhash).
func mix(h, word uint64) uint64 {
	high, low := bits.Mul64(h^0xa0761d6478bd642f, word^0xe7037ed1a0b428db^h)
	return high ^ low ^ h
}
