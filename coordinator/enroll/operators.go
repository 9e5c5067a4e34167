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
	// maxOperators bounds the operators with certificates that have not expired, and
	// maxOfOperator the certificates of one operator. Agents get all that were
	// revoked. The bounds count apart, so that many operators keep no known one from
	// renewing a certificate.
	maxOperators  = 1000
	maxOfOperator = 16
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
	key := record.OperatorKey(hash)
	for range attempts {
		all, err := s.Operators(ctx)
		if err != nil {
			return err
		}
		var before resource.Revision
		for _, o := range all {
			if o.Key != hash {
				continue
			}
			if o.Revoked != "" || o.Name != name {
				return fmt.Errorf("%w: the key of this request is that of a certificate of operator %s, revoked %t: make another key", ErrInvalid, o.Name, o.Revoked != "")
			}
			before = o.At
		}
		if before == 0 {
			if err := roomForOperator(all, name); err != nil {
				return err
			}
		}
		rec := record.Operator{Name: name, Creator: creator, Certified: stamp(time.Now()), Expires: stamp(leaf.NotAfter)}
		at, err := s.commit(ctx, record.Txn{If: []record.Compare{record.ModRevIs(key, before)}, Then: []record.Op{record.Put(key, record.MustEncode(rec))}})
		if err != nil {
			return fmt.Errorf("note the certificate of operator %s: %w", name, err)
		}
		if at > 0 {
			return nil
		}
	}
	return fmt.Errorf("note the certificate of operator %s: its record kept changing; try again", name)
}

// roomForOperator refuses one more certificate of an operator at the bounds: ErrInvalid.
func roomForOperator(all []OperatorStatus, name string) error {
	names, own := map[string]bool{}, 0
	for _, o := range all {
		names[o.Name] = true
		if o.Name == name {
			own++
		}
	}
	switch {
	case own >= maxOfOperator:
		return fmt.Errorf("%w: operator %s has %d certificates that have not expired, at most %d: wait until one expires", ErrInvalid, name, own, maxOfOperator)
	case own == 0 && len(names) >= maxOperators:
		return fmt.Errorf("%w: %d operators have certificates that have not expired, at most %d: wait until those of one expire", ErrInvalid, len(names), maxOperators)
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
		key := record.OperatorKey(o.Key)
		result, err := s.config.Store.Txn(ctx, record.Txn{If: []record.Compare{record.ModRevIs(key, o.At)}, Then: []record.Op{record.Delete(key)}})
		if err != nil {
			return fmt.Errorf("forget the certificate of operator %s: %w", name, err)
		}
		if result.Succeeded { // else it was revoked or issued anew meanwhile
			s.known.drop(key)
		}
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
			unchanged := record.ModRevIs(kv.Key, kv.ModRev) // else the key has a later certificate
			if _, err := s.config.Store.Txn(ctx, record.Txn{If: []record.Compare{unchanged}, Then: []record.Op{record.Delete(kv.Key)}}); err != nil {
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
// no error for the certificate that was changed last. It looks and checks again where
// a certificate changes meanwhile. ErrNotFound where none is good.
func (s *Service) RevokeOperator(ctx context.Context, name, by string, check Check[OperatorStatus]) ([]OperatorStatus, error) {
	for range attempts {
		ended, err := s.operatorsNamed(ctx, name)
		if err != nil {
			return nil, err
		}
		if err := check.of(slices.MaxFunc(ended, func(a, b OperatorStatus) int { return cmp.Compare(a.At, b.At) })); err != nil {
			return nil, err
		}
		changed := false
		for some := range slices.Chunk(ended, putAtOnce) {
			at, ok, err := s.revoke(ctx, some, by)
			if err != nil {
				return nil, fmt.Errorf("revoke the certificates of operator %s: %w", name, err)
			}
			if at > 0 {
				check = nil // these are revoked, which has changed them: the rest follows
			}
			if changed = !ok; changed {
				break
			}
		}
		if !changed {
			s.log.Warn("operator_revoked", "operator", name, "by", by, "certificates", len(ended))
			return ended, nil
		}
	}
	return nil, fmt.Errorf("revoke the certificates of operator %s: they kept changing; try again", name)
}

// operatorsNamed are the certificates of an operator: at least one, or ErrNotFound.
func (s *Service) operatorsNamed(ctx context.Context, name string) ([]OperatorStatus, error) {
	all, err := s.Operators(ctx)
	if err != nil {
		return nil, err
	}
	named := slices.DeleteFunc(all, func(o OperatorStatus) bool { return o.Name != name })
	if len(named) == 0 {
		return nil, fmt.Errorf("%w: operator %q has no certificate that is good", ErrNotFound, name)
	}
	return named, nil
}

// revoke ends those of the certificates that are not revoked, in one Txn, notes the end
// in the list and returns the revision, 0 where all were revoked before. ok is false, and
// nothing is written, where one of them has changed since it was read.
func (s *Service) revoke(ctx context.Context, list []OperatorStatus, by string) (at resource.Revision, ok bool, err error) {
	var txn record.Txn
	var ended []int
	now := stamp(time.Now())
	for i, o := range list {
		if o.Revoked == "" {
			key := record.OperatorKey(o.Key)
			txn.If = append(txn.If, record.ModRevIs(key, o.At))
			o.Revoked, o.RevokedBy = now, by
			txn.Then = append(txn.Then, record.Put(key, record.MustEncode(o.Operator)))
			ended = append(ended, i)
		}
	}
	if len(ended) == 0 {
		return 0, true, nil
	}
	at, err = s.commit(ctx, txn)
	if err != nil || at == 0 {
		return 0, false, err
	}
	for _, i := range ended {
		list[i].Revoked, list[i].RevokedBy, list[i].At = now, by, at
	}
	return at, true, nil
}
