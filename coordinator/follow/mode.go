package follow

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/charges"
	"github.com/musterd/muster/coordinator/record"
)

// QuotaMode returns the mode of the quota trees, as far as this coordinator has
// followed the store. It does not block.
func (f *Follower) QuotaMode() api.QuotaMode {
	if m := f.mode.Load(); m != nil {
		return *m
	}
	return charges.QuotaModeOf(record.QuotaMode{}, 0)
}

// noteMode takes the mode in a key that has changed; kv is nil for a key that was
// deleted. f.mu is held.
func (f *Follower) noteMode(key string, kv *record.KV) {
	if key != record.QuotaModeKey {
		return
	}
	f.mode.Store(nil)
	if kv == nil {
		return
	}
	rec, err := record.Decode[record.QuotaMode](kv.Key, kv.Value)
	if err != nil { // the next leader refuses to lead with the same record
		f.log.Error("quota_mode_unreadable", "key", kv.Key, "error", err)
		return
	}
	m := charges.QuotaModeOf(rec, kv.ModRev)
	f.mode.Store(&m)
}
