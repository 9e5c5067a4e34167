package ledger

import "github.com/musterd/muster/resource"

// Hash sums up the grants and their assignments: the sum, modulo 2^64, of
// GrantHash over all grants but tombstones, so in any order; 0 when there are
// none. The leader computes the same from its cached view: equal hashes mean an
// equal view. A Waiting grant counts with its assignment, for it too keeps
// others out.
func (l *Ledger) Hash() uint64 { return l.hash }

// GrantHash is the fingerprint of a transaction with its members, in ascending
// order of Index. States and requests are not part of it. After Rehost it means
// nothing to a leader that has the old inventory: it begins a new session with
// the new one.
func GrantHash(tx resource.TxID, members []Holding) uint64 {
	f := resource.NewFingerprint(tx)
	for i := range members {
		f.Add(members[i].Index, &members[i].Assignment)
	}
	return f.Sum()
}
