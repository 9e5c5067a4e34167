package hosts

import (
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// LostKey is NodeLostKey as the store has it.
type LostKey struct {
	record.NodeLost
	Revision resource.Revision // 0: the store has none
	followed resource.Revision // the key's in the coordinator's cache of the store
	Odd      bool              // the value cannot be read, or is of another writer
	Writing  bool
}

// Load takes over the key, the zero value for none.
func (k *LostKey) Load(kv record.KV) {
	*k = LostKey{Revision: kv.ModRev, followed: k.followed}
	if kv.ModRev == 0 {
		return
	}
	r, err := record.Decode[record.NodeLost](kv.Key, kv.Value)
	k.NodeLost, k.Odd = r, err != nil
}

// Follow takes over the revision of the key in the coordinator's cache of the store. A
// key that somebody else has written, or has deleted, is written anew.
func (k *LostKey) Follow(now resource.Revision) {
	if deleted := now == 0 && k.Revision != 0 && k.followed == k.Revision; !k.Writing && (now > k.Revision || deleted) {
		k.NodeLost, k.Revision, k.Odd = record.NodeLost{}, now, true
	}
	k.followed = now
}

// BeginWrite notes that the key is being written.
func (k *LostKey) BeginWrite() { k.Writing = true }
