package enroll

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/pki"
	"github.com/musterd/muster/resource"
)

// known is this coordinator's copy of the enrolled keys, bans and operators'
// certificates in the store. It answers each call without a read of the store,
// and it remembers the newest record of each node over a restored backup: a
// record of a smaller generation replaces none. Methods may be called by any
// goroutine and do not block.
type known struct {
	mu        sync.RWMutex
	enrolled  map[resource.NodeID]record.Enrolled
	bans      map[resource.NodeID]record.Ban
	operators map[string]record.Operator // by pki.KeyHash
	unsaved   bool                       // something changed since the file was written
}

func newKnown() *known {
	return &known{enrolled: map[resource.NodeID]record.Enrolled{}, bans: map[resource.NodeID]record.Ban{}, operators: map[string]record.Operator{}}
}

// generation is that of the record which follows one of generation before:
// milliseconds of the wall clock as long as clocks go forward, so that an
// operator's decision after a restore outranks the decisions that the backup
// lost.
func generation(before int64, now time.Time) int64 { return max(before+1, now.UnixMilli()) }

// newerEnrolled reports whether a goes before b.
func newerEnrolled(a, b record.Enrolled) bool { return a.Generation > b.Generation }

// newerBan reports whether a goes before b. Of two decisions that say nothing of
// their order the ban goes first: it is the safe one.
func newerBan(a, b record.Ban) bool {
	return a.Generation > b.Generation || a.Generation == b.Generation && a.Banned && !b.Banned
}

// newerOperator reports whether a goes before b: a revocation is for good.
func newerOperator(a, b record.Operator) bool { return a.Revoked != "" && b.Revoked == "" }

// change is a record that was taken: whose it is, and what follows.
type change struct {
	peer pki.Identity // without the cluster; zero: nothing has changed
	// decided: a ban, its end, the end of a certificate or a revocation, which is
	// to be kept over a restored backup from now on.
	decided bool
}

// take notes a key of the store. Keys that cannot be read change nothing; the
// error names them.
func (k *known) take(kv record.KV) (change, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	none := change{}
	switch {
	case strings.HasPrefix(kv.Key, record.EnrolledPrefix):
		node, err := record.ParseEnrolledKey(kv.Key)
		if err != nil {
			return none, err
		}
		rec, err := record.Decode[record.Enrolled](kv.Key, kv.Value)
		if err != nil {
			return none, err
		}
		return k.takeEnrolled(node, rec), nil
	case strings.HasPrefix(kv.Key, record.BansPrefix):
		node, err := record.ParseBanKey(kv.Key)
		if err != nil {
			return none, err
		}
		rec, err := record.Decode[record.Ban](kv.Key, kv.Value)
		if err != nil {
			return none, err
		}
		return k.takeBan(node, rec), nil
	case strings.HasPrefix(kv.Key, record.OperatorsPrefix):
		hash, err := record.ParseOperatorKey(kv.Key)
		if err != nil {
			return none, err
		}
		rec, err := record.Decode[record.Operator](kv.Key, kv.Value)
		if err != nil {
			return none, err
		}
		return k.takeOperator(hash, rec), nil
	}
	return none, nil
}

func (k *known) takeEnrolled(node resource.NodeID, rec record.Enrolled) change {
	before, had := k.enrolled[node]
	if had && (newerEnrolled(before, rec) || sameEnrolled(before, rec)) {
		return change{}
	}
	k.enrolled[node], k.unsaved = rec, true
	gone := func(key string) bool { return !slices.Contains(rec.Keys, key) }
	if !slices.ContainsFunc(before.Keys, gone) {
		return change{}
	}
	return change{peer: pki.Identity{Role: pki.Node, ID: string(node)}, decided: rec.Ended != "" || len(rec.Keys) == 1}
}

func sameEnrolled(a, b record.Enrolled) bool {
	keys := slices.Equal(a.Keys, b.Keys)
	a.Keys, b.Keys = nil, nil
	return keys && a.Issuer == b.Issuer && a.Expires == b.Expires && a.Ended == b.Ended && a.Generation == b.Generation
}

func (k *known) takeBan(node resource.NodeID, rec record.Ban) change {
	before, had := k.bans[node]
	if had && (newerBan(before, rec) || before == rec) {
		return change{}
	}
	k.bans[node], k.unsaved = rec, true
	return change{peer: pki.Identity{Role: pki.Node, ID: string(node)}, decided: true}
}

func (k *known) takeOperator(hash string, rec record.Operator) change {
	before, had := k.operators[hash]
	if had && (newerOperator(before, rec) || before == rec) {
		return change{}
	}
	k.operators[hash], k.unsaved = rec, true
	if before.Revoked == rec.Revoked {
		return change{}
	}
	return change{peer: pki.Identity{Role: pki.Operator, ID: rec.Name}, decided: true}
}

// drop notes that a key left the store: records of certificates that are over.
func (k *known) drop(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if node, err := record.ParseEnrolledKey(key); err == nil && strings.HasPrefix(key, record.EnrolledPrefix) {
		delete(k.enrolled, node)
		k.unsaved = true
	}
	if hash, err := record.ParseOperatorKey(key); err == nil && strings.HasPrefix(key, record.OperatorsPrefix) {
		delete(k.operators, hash)
		k.unsaved = true
	}
}

// node returns what is known of a node.
func (k *known) node(id resource.NodeID) (enrolled record.Enrolled, has bool, ban record.Ban) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	enrolled, has = k.enrolled[id]
	return enrolled, has, k.bans[id]
}

// operator returns the record of an operator's certificate, zero for none.
func (k *known) operator(hash string) record.Operator {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.operators[hash]
}

// revoked lists the keys of operators' certificates that were revoked and would
// be good otherwise, in order.
func (k *known) revoked(now time.Time) []string {
	k.mu.RLock()
	defer k.mu.RUnlock()
	var list []string
	for hash, o := range k.operators {
		if o.Revoked != "" && !over(o.Expires, now) {
			list = append(list, hash)
		}
	}
	slices.Sort(list)
	return list
}

// over reports whether a time has passed. One that cannot be read has.
func over(text string, now time.Time) bool {
	end, err := time.Parse(time.RFC3339, text)
	return err != nil || !end.After(now)
}

// missing returns the records that the store has not, or has older ones of:
// the store was restored from a backup. Records of certificates that are over
// are not among them.
func (k *known) missing(stored *known, now time.Time) []put {
	k.mu.RLock()
	defer k.mu.RUnlock()
	var list []put
	for _, node := range slices.Sorted(maps.Keys(k.bans)) {
		if has, ok := stored.bans[node]; !ok || newerBan(k.bans[node], has) {
			list = append(list, put{key: record.BanKey(node), value: record.MustEncode(k.bans[node])})
		}
	}
	for _, node := range slices.Sorted(maps.Keys(k.enrolled)) {
		rec := k.enrolled[node]
		if has, ok := stored.enrolled[node]; (!ok || newerEnrolled(rec, has)) && rec.Generation > 0 && !over(rec.Expires, now) {
			list = append(list, put{key: record.EnrolledKey(node), value: record.MustEncode(rec)})
		}
	}
	for _, hash := range slices.Sorted(maps.Keys(k.operators)) {
		rec := k.operators[hash]
		if has, ok := stored.operators[hash]; (!ok || newerOperator(rec, has)) && !over(rec.Expires, now) {
			list = append(list, put{key: record.OperatorKey(hash), value: record.MustEncode(rec)})
		}
	}
	return list
}

// put is a record to be written.
type put struct {
	key   string
	value []byte
}

// kept is the file of known in the private folder. Values are those of the
// store's keys.
type kept map[string]json.RawMessage

// save writes what is known to the private folder, if it has changed.
func (s *Service) save() {
	if s.config.Folder == nil {
		return
	}
	k := s.known
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.unsaved {
		return
	}
	file := kept{}
	for node, r := range k.enrolled {
		file[record.EnrolledKey(node)] = record.MustEncode(r)
	}
	for node, r := range k.bans {
		file[record.BanKey(node)] = record.MustEncode(r)
	}
	for hash, r := range k.operators {
		file[record.OperatorKey(hash)] = record.MustEncode(r)
	}
	text, err := json.Marshal(file)
	if err == nil {
		err = s.config.Folder.SaveKnown(text)
	}
	if err != nil {
		s.log.Warn("known_identities_not_saved", "error", err)
		return
	}
	k.unsaved = false
}

// loadKept takes what the process before knew. A damaged file counts as none:
// the store has what it has.
func (s *Service) loadKept() {
	if s.config.Folder == nil {
		return
	}
	text, err := s.config.Folder.LoadKnown()
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	file := kept{}
	if err == nil {
		err = json.Unmarshal(text, &file)
	}
	for key, value := range file {
		if _, bad := s.known.take(record.KV{Key: key, Value: value}); bad != nil {
			err = errors.Join(err, bad)
		}
	}
	if err != nil {
		s.log.Warn("known_identities_unreadable", "error", err)
	}
}
