package lead

import (
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
)

// lostKey is NodeLostKey as the store has it.
type lostKey struct {
	record.NodeLost
	revision resource.Revision // 0: the store has none
	followed resource.Revision // the key's in the coordinator's cache of the store
	odd      bool              // its value cannot be read, or is somebody else's
	writing  bool
}

// load takes over the key, the zero value for none.
func (k *lostKey) load(kv record.KV) {
	*k = lostKey{revision: kv.ModRev, followed: k.followed}
	if kv.ModRev == 0 {
		return
	}
	r, err := record.Decode[record.NodeLost](kv.Key, kv.Value)
	k.NodeLost, k.odd = r, err != nil
}

// follow takes over the revision of the key in the coordinator's cache of the store. A
// key that somebody else has written, or has deleted, is written anew.
func (k *lostKey) follow(now resource.Revision) {
	if deleted := now == 0 && k.revision != 0 && k.followed == k.revision; !k.writing && (now > k.revision || deleted) {
		k.NodeLost, k.revision, k.odd = record.NodeLost{}, now, true
	}
	k.followed = now
}

// beginWrite notes that the key is being written.
func (k *lostKey) beginWrite() { k.writing = true }

// lossOf is a node's key of lost devices.
func (l *Leader) lossOf(id resource.NodeID) shown.Loss {
	if n := l.nodes[id]; n != nil {
		return shown.Loss{NodeLost: n.lost.NodeLost, Revision: n.lost.revision}
	}
	return shown.Loss{}
}
