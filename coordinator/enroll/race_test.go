package enroll_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/coordinator/enroll"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/rpcauth"
)

// between is a store that lets somebody else write between a service's reads and
// its Txn.
type between struct {
	*mem.Store
	once func()
}

func (b *between) Txn(ctx context.Context, t record.Txn) (record.TxnResult, error) {
	if once := b.once; once != nil {
		b.once = nil
		once()
	}
	return b.Store.Txn(ctx, t)
}

// Whatever is decided once fails its Txn if somebody else decided meanwhile.
func TestDecisionsThatRaceAreMadeAnew(t *testing.T) {
	setup := func(t *testing.T) (*between, *enroll.Service, *enroll.Service) {
		s := &between{Store: mem.Open(mem.Options{})}
		t.Cleanup(func() { _ = s.Close() })
		return s, open(t, s, "c1"), open(t, s.Store, "c2") // c2 writes in between
	}
	t.Run("a renewal and a replacement", func(t *testing.T) {
		s, a, b := setup(t)
		old := host(t, a, "n1", false)
		var fresh *rpcauth.TLS
		s.once = func() { fresh = host(t, b, "n1", true) }
		if _, err := renew(t, a, old, newKey(t)); status.Code(err) != codes.PermissionDenied {
			t.Errorf("the replaced host renews: %v", err)
		}
		refused(t, "replaced", b, fresh, "")
		refused(t, "replaced", b, old, "has been replaced")
	})
	t.Run("a renewal and a ban", func(t *testing.T) {
		s, a, b := setup(t)
		old := host(t, a, "n1", false)
		s.once = func() {
			if _, err := b.Ban(t.Context(), "n1", "", "ann"); err != nil {
				t.Error(err)
			}
		}
		if _, err := renew(t, a, old, newKey(t)); status.Code(err) != codes.PermissionDenied {
			t.Errorf("the banned host renews: %v", err)
		}
		refused(t, "banned", b, old, "was banned")
	})
	t.Run("a renewal and a ban that is put back after a restoration", func(t *testing.T) {
		s, a, _ := setup(t)
		old := host(t, a, "n1", false)
		s.once = func() { // alone: the certificate is as the store has it
			ban := record.Ban{Banned: true, By: "ann", At: "2026-03-01T12:00:00Z", Generation: 1}
			if _, err := s.Store.Txn(t.Context(), record.Txn{Then: []record.Op{record.Put(record.BanKey("n1"), record.MustEncode(ban))}}); err != nil {
				t.Error(err)
			}
		}
		if _, err := renew(t, a, old, newKey(t)); status.Code(err) != codes.PermissionDenied {
			t.Errorf("the banned host renews: %v", err)
		}
	})
	t.Run("an enrolment and a ban", func(t *testing.T) {
		s, a, b := setup(t)
		boot := token(t, a, enroll.TokenOptions{Nodes: "n1"})
		s.once = func() {
			if _, err := b.Ban(t.Context(), "n1", "", "ann"); err != nil {
				t.Error(err)
			}
		}
		if _, err := ask(t, a, boot.Text(), "n1", newKey(t)); status.Code(err) != codes.PermissionDenied {
			t.Errorf("the banned host enrolls: %v", err)
		}
	})
	t.Run("an enrolment and a registration", func(t *testing.T) {
		s, a, _ := setup(t)
		boot := token(t, a, enroll.TokenOptions{Nodes: "n1"})
		s.once = func() { register(t, s.Store, "n1") }
		if _, err := ask(t, a, boot.Text(), "n1", newKey(t)); status.Code(err) != codes.AlreadyExists {
			t.Errorf("another host takes the name: %v", err)
		}
	})
	t.Run("two enrolments of one name", func(t *testing.T) {
		s, a, b := setup(t)
		boot := token(t, a, enroll.TokenOptions{Nodes: "n1", Uses: 2})
		var first *rpcauth.TLS
		s.once = func() {
			key := newKey(t)
			r, err := ask(t, b, boot.Text(), "n1", key)
			if err != nil {
				t.Error(err)
				return
			}
			first = identity(t, r, key)
		}
		if _, err := ask(t, a, boot.Text(), "n1", newKey(t)); status.Code(err) != codes.AlreadyExists {
			t.Errorf("the second: %v", err)
		}
		refused(t, "enrolled", b, first, "")
	})
	t.Run("two enrolments of one name by two tokens", func(t *testing.T) {
		s, a, b := setup(t)
		mine, theirs := token(t, a, enroll.TokenOptions{Nodes: "n1"}), token(t, a, enroll.TokenOptions{Nodes: "n1"})
		s.once = func() {
			if _, err := ask(t, b, theirs.Text(), "n1", newKey(t)); err != nil {
				t.Error(err)
			}
		}
		if _, err := ask(t, a, mine.Text(), "n1", newKey(t)); status.Code(err) != codes.AlreadyExists {
			t.Errorf("the second: %v", err)
		}
	})
	t.Run("two uses of a token for one", func(t *testing.T) {
		s, a, b := setup(t)
		boot := token(t, a, enroll.TokenOptions{Nodes: "n*"})
		s.once = func() {
			if _, err := ask(t, b, boot.Text(), "n2", newKey(t)); err != nil {
				t.Error(err)
			}
		}
		if _, err := ask(t, a, boot.Text(), "n1", newKey(t)); status.Code(err) != codes.PermissionDenied {
			t.Errorf("the second: %v", err)
		}
	})
	t.Run("a revocation and another one", func(t *testing.T) {
		s, a, b := setup(t)
		if _, err := a.CertifyOperator(t.Context(), "eve", newKey(t).Public(), 0, "boss"); err != nil {
			t.Fatal(err)
		}
		s.once = func() {
			if _, err := b.RevokeOperator(t.Context(), "eve", "bob", nil); err != nil {
				t.Error(err)
			}
		}
		ended, err := a.RevokeOperator(t.Context(), "eve", "ann", nil)
		if err != nil || len(ended) != 1 || ended[0].RevokedBy != "bob" {
			t.Errorf("%+v, %v, want the revocation of bob", ended, err)
		}
		if list, err := a.Operators(t.Context()); err != nil || len(list) != 1 || list[0].RevokedBy != "bob" || ended[0].At != list[0].At {
			t.Errorf("%+v, %v, want the revocation of bob", list, err)
		}
	})
	t.Run("a revocation with preconditions and another one", func(t *testing.T) {
		s, a, b := setup(t)
		if _, err := a.CertifyOperator(t.Context(), "eve", newKey(t).Public(), 0, "boss"); err != nil {
			t.Fatal(err)
		}
		s.once = func() {
			if _, err := b.RevokeOperator(t.Context(), "eve", "bob", nil); err != nil {
				t.Error(err)
			}
		}
		stale, checks := errors.New("another version"), 0
		if _, err := a.RevokeOperator(t.Context(), "eve", "ann", func(o enroll.OperatorStatus) error {
			if checks++; o.Revoked != "" {
				return stale
			}
			return nil
		}); !errors.Is(err, stale) || checks != 2 {
			t.Errorf("%v after %d checks, want the refusal of the second", err, checks)
		}
	})
	t.Run("a certificate of the same key and a revocation", func(t *testing.T) {
		s, a, b := setup(t)
		key := newKey(t)
		if _, err := a.CertifyOperator(t.Context(), "eve", key.Public(), 0, "boss"); err != nil {
			t.Fatal(err)
		}
		s.once = func() {
			if _, err := b.RevokeOperator(t.Context(), "eve", "bob", nil); err != nil {
				t.Error(err)
			}
		}
		if _, err := a.CertifyOperator(t.Context(), "eve", key.Public(), 0, "boss"); !errors.Is(err, enroll.ErrInvalid) {
			t.Errorf("%v, want a refusal: the key is revoked", err)
		}
	})
	t.Run("the end of a certificate and another one of the same key", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, a, b := setup(t)
			key := newKey(t)
			if _, err := a.CertifyOperator(t.Context(), "eve", key.Public(), time.Hour, "boss"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Hour)
			s.once = func() {
				if _, err := b.CertifyOperator(t.Context(), "eve", key.Public(), time.Hour, "boss"); err != nil {
					t.Error(err)
				}
			}
			if _, err := a.Operators(t.Context()); err != nil {
				t.Error(err)
			}
			if ended, err := a.RevokeOperator(t.Context(), "eve", "ann", nil); err != nil || len(ended) != 1 {
				t.Errorf("%+v, %v, want a revocation of the later certificate", ended, err)
			}
		})
	})
	t.Run("two bans", func(t *testing.T) {
		s, a, b := setup(t)
		var first enroll.Banned
		s.once = func() {
			var err error
			if first, err = b.Ban(t.Context(), "n1", "b's", "bob"); err != nil {
				t.Error(err)
			}
		}
		if ban, err := a.Ban(t.Context(), "n1", "a's", "ann"); err != nil || ban != first {
			t.Errorf("%+v, %v, want the first", ban, err)
		}
	})
}
