package lead

import (
	"strings"
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/registry"
)

// observation is what an observation of a node is made of. Two that are equal have the
// same record.
type observation struct {
	flags
	quarantine, suspicion string
	host                  *fit.Host
	// health and local count the changes of the devices' health and of the grants that
	// have no record.
	health, local uint64
}

// flags are the part of an observation that is written without delay.
type flags struct {
	connected, unheard, diskFull, memoryPressure, quarantined, suspected, banned, unregistered bool

	growth      string
	withheld    uint64
	lease       record.LeaseID
	incarnation resource.Incarnation
	conflicts   string // in words
}

// observed is the leader's observation of a node as the store has it.
type observed struct {
	known    bool // the store has the record of seen
	seen     observation
	value    []byte            // of the key
	revision resource.Revision // of the key; 0: the store has none
	followed resource.Revision // the key's in the coordinator's cache of the store
	at       time.Time         // when this term looked last
	writing  bool
	// health and local count as in observation.
	health, local uint64
	// grants is the sum of the grants that have no record in the store, pool the part of
	// it that is in the kubelet's pool; nil for none.
	grants, pool *resource.Assignment
}

// load takes over an earlier leader's observation. A value that cannot be read
// equals no other, so it is written anew.
func (o *observed) load(kv record.KV) {
	o.value, o.revision, o.known, o.writing = kv.Value, kv.ModRev, false, false
}

// follow takes over the revision of the key in the coordinator's cache of the
// store. A key that somebody else has written, or has deleted, is written anew.
func (o *observed) follow(now resource.Revision) {
	if deleted := now == 0 && o.followed == o.revision; !o.writing && (now > o.revision || deleted) {
		o.value, o.revision, o.known = nil, now, false
	}
	o.followed = now
}

// keep notes that the store has the record of an observation.
func (o *observed) keep(seen observation, now time.Time) { o.seen, o.known, o.at = seen, true, now }

// beginWrite notes that a record is being written.
func (o *observed) beginWrite() { o.writing = true }

// noteHealth notes that the health of the devices has changed.
func (o *observed) noteHealth() { o.health++ }

// setLocal takes over the sum of the grants that have no record in the store, and the
// part of it that is in the kubelet's pool.
func (o *observed) setLocal(sum, pool *resource.Assignment) {
	if !isSame(sum, o.grants) || !isSame(pool, o.pool) {
		o.local++
	}
	o.grants, o.pool = sum, pool
}

// wordsOf are conflicts in words, "" for none.
func wordsOf(conflicts []registry.Conflict) string {
	var details []string
	for _, c := range conflicts {
		details = append(details, c.Detail)
	}
	return strings.Join(details, "; ")
}
