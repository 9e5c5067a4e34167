package enroll

import (
	"cmp"
	"context"
	"crypto"
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/pki"
	"github.com/musterd/muster/resource"
)

// Default and bounds of operators' certificates.
const (
	DefaultOperatorTTL = 12 * time.Hour
	MinOperatorTTL     = time.Minute
	MaxOperatorTTL     = 30 * 24 * time.Hour
	// maxOperators bounds the certificates that are good at a time. Agents are
	// told of all that were revoked.
	maxOperators = 1000
)

// CertifyOperator certifies an operator's key for ttl, 0 for DefaultOperatorTTL.
// Errors: ErrInvalid, and those of the store.
func (s *Service) CertifyOperator(ctx context.Context, name string, public crypto.PublicKey, ttl time.Duration, creator string) (*x509.Certificate, error) {
	ttl = cmp.Or(ttl, DefaultOperatorTTL)
	if ttl < MinOperatorTTL || ttl > MaxOperatorTTL {
		return nil, fmt.Errorf("%w: spec.ttl: %s is outside %s..%s", ErrInvalid, ttl, MinOperatorTTL, MaxOperatorTTL)
	}
	t := s.trust.Load()
	leaf, err := t.signer.Issue(public, pki.Identity{Cluster: s.config.Cluster, Role: pki.Operator, ID: name}, nil, time.Now(), ttl)
	if err != nil {
		return nil, err
	}
	if err := s.noteOperator(ctx, name, creator, leaf); err != nil {
		return nil, err
	}
	s.log.Info("operator_certified", "operator", name, "creator", creator, "expires", stamp(leaf.NotAfter))
	return leaf, nil
}

// noteOperator writes down a certificate before it is handed out, so that it can
// be revoked. The same key again keeps a revocation: ErrInvalid.
func (s *Service) noteOperator(ctx context.Context, name, creator string, leaf *x509.Certificate) error {
	hash, err := pki.KeyHash(leaf.PublicKey)
	if err != nil {
		return err
	}
	all, err := s.Operators(ctx)
	if err != nil {
		return err
	}
	for _, o := range all {
		if o.Key == hash && (o.Revoked != "" || o.Name != name) {
			return fmt.Errorf("%w: the key of this request is that of a certificate of operator %s, revoked %t: make another key", ErrInvalid, o.Name, o.Revoked != "")
		}
	}
	if len(all) >= maxOperators {
		return fmt.Errorf("%w: %d certificates of operators are good already, at most %d: wait until some expire", ErrInvalid, len(all), maxOperators)
	}
	rec := record.Operator{Name: name, Creator: creator, Certified: stamp(time.Now()), Expires: stamp(leaf.NotAfter)}
	if _, err := s.commit(ctx, record.Txn{Then: []record.Op{record.Put(record.OperatorKey(hash), record.MustEncode(rec))}}); err != nil {
		return fmt.Errorf("note the certificate of operator %s: %w", name, err)
	}
	return nil
}

// forgetOperator removes the records of certificates that creator made for name
// and that were not revoked.
func (s *Service) forgetOperator(ctx context.Context, name, creator string) error {
	all, err := s.Operators(ctx)
	if err != nil {
		return err
	}
	for _, o := range all {
		if o.Name != name || o.Creator != creator || o.Revoked != "" {
			continue
		}
		if _, err := s.config.Store.Txn(ctx, record.Txn{Then: []record.Op{record.Delete(record.OperatorKey(o.Key))}}); err != nil {
			return fmt.Errorf("forget the certificate of operator %s: %w", name, err)
		}
		s.known.drop(record.OperatorKey(o.Key))
	}
	return nil
}

// OperatorStatus is one certificate of an operator.
type OperatorStatus struct {
	Key string // pki.KeyHash
	record.Operator
	At resource.Revision // of its last change
}

// Operators lists the operators' certificates that have not expired, by name,
// oldest first, and forgets the others.
func (s *Service) Operators(ctx context.Context) ([]OperatorStatus, error) {
	all, _, err := s.config.Store.Range(ctx, record.OperatorsPrefix, store.RangeOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the operators: %w", err)
	}
	var list []OperatorStatus
	for _, kv := range all {
		hash, err := record.ParseOperatorKey(kv.Key)
		if err != nil {
			return nil, err
		}
		rec, err := record.Decode[record.Operator](kv.Key, kv.Value)
		if err != nil {
			return nil, err
		}
		if over(rec.Expires, time.Now()) {
			if _, err := s.config.Store.Txn(ctx, record.Txn{Then: []record.Op{record.Delete(kv.Key)}}); err != nil {
				return nil, fmt.Errorf("forget a certificate of operator %s: %w", rec.Name, err)
			}
			continue
		}
		list = append(list, OperatorStatus{hash, rec, kv.ModRev})
	}
	slices.SortFunc(list, func(a, b OperatorStatus) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Certified, b.Certified), cmp.Compare(a.Key, b.Key))
	})
	return list, nil
}

// RevokeOperator ends all certificates of an operator and returns them, if check returns
// no error for the certificate that was changed last. ErrNotFound where none is good.
func (s *Service) RevokeOperator(ctx context.Context, name, by string, check Check[OperatorStatus]) ([]OperatorStatus, error) {
	all, err := s.Operators(ctx)
	if err != nil {
		return nil, err
	}
	ended := slices.DeleteFunc(all, func(o OperatorStatus) bool { return o.Name != name })
	if len(ended) == 0 {
		return nil, fmt.Errorf("%w: operator %q has no certificate that is good", ErrNotFound, name)
	}
	if err := check.of(slices.MaxFunc(ended, func(a, b OperatorStatus) int { return cmp.Compare(a.At, b.At) })); err != nil {
		return nil, err
	}
	for some := range slices.Chunk(ended, putAtOnce) {
		if err := s.revoke(ctx, some, by); err != nil {
			return nil, fmt.Errorf("revoke the certificates of operator %s: %w", name, err)
		}
	}
	s.log.Warn("operator_revoked", "operator", name, "by", by, "certificates", len(ended))
	return ended, nil
}

// revoke ends those of the certificates that are not revoked, in one Txn, and notes the
// end in the list.
func (s *Service) revoke(ctx context.Context, list []OperatorStatus, by string) error {
	var txn record.Txn
	for i := range list {
		if o := &list[i]; o.Revoked == "" {
			o.Revoked, o.RevokedBy = stamp(time.Now()), by
			txn.Then = append(txn.Then, record.Put(record.OperatorKey(o.Key), record.MustEncode(o.Operator)))
		}
	}
	if len(txn.Then) == 0 {
		return nil
	}
	revision, err := s.commit(ctx, txn)
	for i := range list {
		if slices.ContainsFunc(txn.Then, func(op record.Op) bool { return op.Key == record.OperatorKey(list[i].Key) }) {
			list[i].At = revision
		}
	}
	return err
}
