package enroll_test

import (
	"crypto"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/coordinator/enroll"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/pki"
)

// The bound of operators keeps no known operator from a renewal, with the key before or
// with a new one.
func TestAnOperatorRenewsWhereNoOtherGetsIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.Open(mem.Options{})
		defer s.Close()
		a := open(t, s, "c1")
		run(t, a)
		first := newKey(t)
		if _, err := a.CertifyOperator(t.Context(), "op-0", first.Public(), 0, "boss"); err != nil {
			t.Fatal(err)
		}
		for i := 1; i < 1000; i++ {
			rec := record.Operator{Name: fmt.Sprintf("op-%d", i), Creator: "boss", Certified: "2000-01-01T00:00:00Z", Expires: "2000-02-01T00:00:00Z"}
			if _, err := s.Txn(t.Context(), record.Txn{Then: []record.Op{record.Put(record.OperatorKey(fmt.Sprintf("%064x", i)), record.MustEncode(rec))}}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := a.CertifyOperator(t.Context(), "new", newKey(t).Public(), 0, "boss"); !errors.Is(err, enroll.ErrInvalid) {
			t.Errorf("one operator more than the bound: %v", err)
		}
		for name, key := range map[string]crypto.PublicKey{"the key before": first.Public(), "a new key": newKey(t).Public()} {
			if _, err := a.CertifyOperator(t.Context(), "op-0", key, 0, "boss"); err != nil {
				t.Errorf("a renewal with %s: %v", name, err)
			}
		}
	})
}

func TestOperatorsAreListedAndRevoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.Open(mem.Options{})
		defer s.Close()
		a, b := open(t, s, "c1"), open(t, s, "c2")
		run(t, a, b)
		key := newKey(t)
		leaf, err := a.CertifyOperator(t.Context(), "ann", key.Public(), 0, "boss")
		if err != nil || leaf.NotAfter.Sub(time.Now()) > enroll.DefaultOperatorTTL {
			t.Fatalf("until %s, %v", leaf.NotAfter, err)
		}
		if _, err := a.CertifyOperator(t.Context(), "bob", newKey(t).Public(), time.Hour, "boss"); err != nil {
			t.Fatal(err)
		}
		for _, ttl := range []time.Duration{time.Second, 31 * 24 * time.Hour} {
			if _, err := a.CertifyOperator(t.Context(), "bob", newKey(t).Public(), ttl, "boss"); !errors.Is(err, enroll.ErrInvalid) {
				t.Errorf("for %s: %v", ttl, err)
			}
		}
		synctest.Wait()
		before, changed := b.Fingerprint(), b.Changed()
		if ended, err := a.RevokeOperator(t.Context(), "ann", "boss", nil); err != nil || len(ended) != 1 {
			t.Fatalf("revoked %+v, %v", ended, err)
		}
		if _, err := a.RevokeOperator(t.Context(), "nobody", "boss", nil); !errors.Is(err, enroll.ErrNotFound) {
			t.Errorf("nobody is revoked: %v", err)
		}
		if _, err := a.CertifyOperator(t.Context(), "ann", key.Public(), 0, "boss"); !errors.Is(err, enroll.ErrInvalid) {
			t.Errorf("a revoked key is certified again: %v", err)
		}
		synctest.Wait()
		select {
		case <-changed:
		default:
			t.Error("agents are not told")
		}
		hash, err := pki.KeyHash(key.Public())
		if err != nil {
			t.Fatal(err)
		}
		if b.Fingerprint() == before {
			t.Error("the fingerprint is the same")
		}
		n1 := newKey(t)
		r, err := ask(t, b, token(t, b, enroll.TokenOptions{Nodes: "n1"}).Text(), "n1", n1)
		if err != nil || !slices.Equal(r.GetRevokedKeys(), []string{hash}) {
			t.Errorf("a node is told of %q, %v", r.GetRevokedKeys(), err)
		}
		time.Sleep(13 * time.Hour)
		if list, err := a.Operators(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("still listed: %+v, %v", list, err)
		}
		if b.Fingerprint() != before {
			t.Error("agents are told of a certificate that has expired")
		}
	})
}

// TestAnAnswerIsRepeatedForTheSameTokenAlone: the same key by another token is
// another enrolment of a node that exists.
func TestAnAnswerIsRepeatedForTheSameTokenAlone(t *testing.T) {
	s := mem.Open(mem.Options{})
	t.Cleanup(func() { _ = s.Close() })
	e, key := open(t, s, "c1"), newKey(t)
	first, second := token(t, e, enroll.TokenOptions{Nodes: "n1"}), token(t, e, enroll.TokenOptions{Nodes: "n1"})
	for range 2 {
		if _, err := ask(t, e, first.Text(), "n1", key); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ask(t, e, second.Text(), "n1", key); status.Code(err) != codes.AlreadyExists {
		t.Errorf("by another token: %v", err)
	}
}
