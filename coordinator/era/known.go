package era

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

// Known is the knowledge of a coordinator or an agent about the store's past. The zero
// value is no knowledge.
type Known struct {
	// Revision is a past revision of the store.
	Revision resource.Revision
	// Epoch and Mark are of the newest term in the store; Mark may be "".
	Epoch resource.Epoch
	Mark  string
	// Anchor is a past write.
	Anchor Anchor
	// Restored is the mark of the last known restoration, or "".
	Restored string
}

// Anchor is a key of the store at a revision; the zero value is no key.
type Anchor struct {
	Key      string
	Revision resource.Revision
	// Hash is HashOf the value written at Revision; with 0 only the presence of the key
	// is known.
	Hash uint64
}

// HashOf is a value's hash, the same in every process and never 0.
func HashOf(value []byte) uint64 {
	h := fnv.New64a()
	h.Write(value)
	return max(h.Sum64(), 1)
}

// Contradiction describes how the store contradicts k, "" where both agree. has is the
// store's revision at the first read. restored is the last restoration in the store, or
// the zero value. A restoration declared after k explains every difference, and is no
// contradiction. Contradiction reads linearizably; errors are the store's.
func Contradiction(ctx context.Context, s store.KVStore, k Known) (why string, has resource.Revision, restored record.Restored, err error) {
	kv, found, has, err := s.Get(ctx, record.LastRestoredKey)
	if err == nil && found {
		restored, err = record.Decode[record.Restored](kv.Key, kv.Value)
	}
	if err != nil {
		return "", 0, restored, fmt.Errorf("read the last restoration of the store: %w", err)
	}
	if k.Restored != restored.Mark {
		why, err = lostRestoration(ctx, s, k.Restored)
		return why, has, restored, err
	}
	if k.Revision > has {
		return fmt.Sprintf("the store is at revision %d and was at revision %d", has, k.Revision), has, restored, nil
	}
	if why, err = lostTerm(ctx, s, k); err == nil && why == "" {
		why, err = lostWrite(ctx, s, k.Anchor)
	}
	return why, has, restored, err
}

// lostRestoration is the contradiction of a store without an earlier restoration.
func lostRestoration(ctx context.Context, s store.KVStore, mark string) (string, error) {
	if mark == "" {
		return "", nil
	}
	kvs, _, err := s.Range(ctx, record.RestoredPrefix, store.RangeOptions{})
	if err != nil {
		return "", fmt.Errorf("read the restorations of the store: %w", err)
	}
	for _, kv := range kvs {
		if r, err := record.Decode[record.Restored](kv.Key, kv.Value); err == nil && r.Mark == mark {
			return "", nil
		}
	}
	return "the store has lost an earlier restoration", nil
}

// lostTerm is the contradiction of a store without k's term. Terms older than the oldest
// kept term are not known.
func lostTerm(ctx context.Context, s store.KVStore, k Known) (string, error) {
	if k.Mark == "" {
		return "", nil
	}
	kv, found, _, err := s.Get(ctx, record.TermKey(k.Mark))
	if err != nil {
		return "", fmt.Errorf("read the term of epoch %d: %w", k.Epoch, err)
	}
	if found && kv.CreateRev == resource.Revision(k.Epoch) {
		return "", nil
	}
	terms, _, err := s.Range(ctx, record.TermsPrefix, store.RangeOptions{})
	if err != nil {
		return "", fmt.Errorf("read the terms: %w", err)
	}
	older := len(terms) < store.KeptTerms // all terms are kept
	for _, t := range terms {
		older = older || t.CreateRev <= resource.Revision(k.Epoch)
	}
	if !older {
		return "", nil
	}
	return fmt.Sprintf("the store has no term of epoch %d with the mark that was known", k.Epoch), nil
}

// lostWrite is the contradiction of a store with another value at the revision of a
// write. Compacted revisions are not known.
func lostWrite(ctx context.Context, s store.KVStore, a Anchor) (string, error) {
	if a.Key == "" {
		return "", nil
	}
	lost := fmt.Sprintf("at revision %d the store does not have what %s had then", a.Revision, a.Key)
	kvs, _, err := s.Range(ctx, a.Key, store.RangeOptions{AtRevision: a.Revision, Limit: 1})
	var compacted *record.CompactedError
	switch {
	case errors.As(err, &compacted):
		return "", nil
	case errors.Is(err, store.ErrFutureRevision):
		return lost, nil
	case err != nil:
		return "", fmt.Errorf("read %s at revision %d: %w", a.Key, a.Revision, err)
	case len(kvs) == 1 && kvs[0].Key == a.Key && (a.Hash == 0 || kvs[0].ModRev == a.Revision && HashOf(kvs[0].Value) == a.Hash):
		return "", nil
	}
	return lost, nil
}
