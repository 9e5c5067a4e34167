package enroll

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/pki"
	"github.com/musterd/muster/resource"
)

// followed are the prefixes of the records that known copies.
var followed = []string{record.EnrolledPrefix, record.BansPrefix, record.OperatorsPrefix}

// putAtOnce bounds the records of one Txn.
const putAtOnce = 50

// load takes all enrolled keys, bans and operators of the store at one revision,
// which it returns. Records that are known here and newer than the store's were
// lost by a restore from a backup: they are put back. A ban or a replacement
// among them rotates the gossip keys again, since the restored ones are those
// that the banned host has.
func (s *Service) load(ctx context.Context) (resource.Revision, error) {
	stored, revisions := newKnown(), map[string]resource.Revision{}
	var kvs []record.KV
	var revision resource.Revision
	for _, prefix := range followed {
		got, at, err := s.config.Store.Range(ctx, prefix, store.RangeOptions{AtRevision: revision})
		if err != nil {
			return 0, fmt.Errorf("read %s: %w", prefix, err)
		}
		if revision == 0 {
			revision = at
		}
		kvs = append(kvs, got...)
	}
	for _, kv := range kvs {
		revisions[kv.Key] = kv.ModRev
		if _, err := stored.take(kv); err != nil {
			s.log.Error("identity_unreadable", "key", kv.Key, "error", err)
		}
		s.learn(kv)
	}
	s.forget(revisions)
	missing := s.known.missing(stored, time.Now())
	for list := range slices.Chunk(missing, putAtOnce) {
		var txn record.Txn
		for _, p := range list {
			txn.If = append(txn.If, record.ModRevIs(p.key, revisions[p.key]))
			txn.Then = append(txn.Then, record.Put(p.key, p.value))
		}
		if err := s.rotateKeys(ctx, &txn, "the store was restored from a backup that is older than a ban or a certificate"); err != nil {
			return 0, err
		}
		result, err := s.config.Store.Txn(ctx, txn)
		switch {
		case err != nil:
			return 0, fmt.Errorf("put %d records back that the store has lost: %w", len(list), err)
		case !result.Succeeded:
			return 0, fmt.Errorf("put %d records back that the store has lost: they changed meanwhile; trying again", len(list))
		}
		for _, p := range list {
			s.log.Warn("identity_put_back", "key", p.key, "reason", "the store has none, or an older one: it was restored from a backup")
		}
	}
	s.save()
	return revision, nil
}

// forget drops what is known here and is neither in the store nor to be put
// back: certificates that are over.
func (s *Service) forget(stored map[string]resource.Revision) {
	s.known.mu.RLock()
	var gone []string
	now := time.Now()
	for node, r := range s.known.enrolled {
		if key := record.EnrolledKey(node); stored[key] == 0 && (over(r.Expires, now) || r.Generation == 0) {
			gone = append(gone, key)
		}
	}
	for hash, o := range s.known.operators {
		if key := record.OperatorKey(hash); stored[key] == 0 && over(o.Expires, now) {
			gone = append(gone, key)
		}
	}
	s.known.mu.RUnlock()
	for _, key := range gone {
		s.lost(key)
	}
}

// lost takes that a key has left the store.
func (s *Service) lost(key string) {
	s.known.drop(key)
	if node, err := record.ParseEnrolledKey(key); err == nil {
		s.tls.Recheck(pki.Identity{Cluster: s.config.Cluster, Role: pki.Node, ID: string(node)})
	}
}

// taken takes a change of the store, and reports whether it is of the
// authorities or the gossip keys, which are read anew.
func (s *Service) taken(b record.Batch) (readAnew bool) {
	for i := range b.Events {
		e := &b.Events[i]
		switch {
		case e.KV.Key == record.AuthoritiesKey || e.KV.Key == record.GossipKeysKey:
			readAnew = true
		case e.Type == record.EventDelete:
			s.lost(e.KV.Key)
		default:
			s.learn(e.KV)
		}
	}
	return readAnew
}
