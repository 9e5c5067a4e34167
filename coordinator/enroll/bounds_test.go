package enroll_test

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/coordinator/enroll"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store/mem"
)

// TestTheBoundsOfTokensAndCertificates: a life and a number of uses at the bound are taken, beyond
// the bound refused.
func TestTheBoundsOfTokensAndCertificates(t *testing.T) {
	s := mem.Open(mem.Options{})
	defer s.Close()
	e := open(t, s, "c1")
	for _, c := range []struct {
		ttl  time.Duration
		uses int
		good bool
	}{
		{enroll.MinTokenTTL, 1, true}, {enroll.MinTokenTTL - 1, 1, false}, {enroll.MaxTokenTTL, 1, true}, {enroll.MaxTokenTTL + 1, 1, false},
		{time.Hour, enroll.MaxTokenUses, true}, {time.Hour, enroll.MaxTokenUses + 1, false}, {time.Hour, -1, false}, {0, 0, true},
	} {
		_, made, err := e.CreateToken(t.Context(), enroll.TokenOptions{Nodes: "*", TTL: c.ttl, Uses: c.uses})
		if (err == nil) != c.good || err != nil && !errors.Is(err, enroll.ErrInvalid) || c.good && made.Uses != max(1, c.uses) {
			t.Errorf("a token for %s and %d uses: %d uses, %v", c.ttl, c.uses, made.Uses, err)
		}
	}
	for ttl, good := range map[time.Duration]bool{enroll.MinOperatorTTL: true, enroll.MinOperatorTTL - 1: false, enroll.MaxOperatorTTL: true, enroll.MaxOperatorTTL + 1: false, 0: true} {
		if _, err := e.CertifyOperator(t.Context(), "ann", newKey(t).Public(), ttl, "boss"); (err == nil) != good || err != nil && !errors.Is(err, enroll.ErrInvalid) {
			t.Errorf("a certificate for %s: %v", ttl, err)
		}
	}
}

// TestTokensAreListedForADayAfterTheirEnd: and deleted from the store then.
func TestTokensAreListedForADayAfterTheirEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.Open(mem.Options{})
		defer s.Close()
		e := open(t, s, "c1")
		made := token(t, e, enroll.TokenOptions{Nodes: "n1", TTL: time.Hour})
		listed := func() int {
			list, err := e.ListTokens(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return len(list)
		}
		time.Sleep(25*time.Hour - time.Second)
		if n := listed(); n != 1 {
			t.Errorf("within a day after the end %d tokens are listed, want 1", n)
		}
		time.Sleep(time.Second)
		if n := listed(); n != 0 {
			t.Errorf("a day after the end %d tokens are listed, want 0", n)
		}
		if _, found, _, err := s.Get(t.Context(), record.TokenKey(made.ID)); err != nil || found {
			t.Errorf("the store has the token: %t, %v", found, err)
		}
	})
}

// TestARevokedTokenIsTheCheckedToken: a use in between has the token checked again. The end of a
// ban is made once.
func TestARevokedTokenIsTheCheckedToken(t *testing.T) {
	s := &between{Store: mem.Open(mem.Options{})}
	defer s.Close()
	a, b := open(t, s, "c1"), open(t, s.Store, "c2")
	boot := token(t, a, enroll.TokenOptions{Nodes: "n*", Uses: 2})
	s.once = func() {
		if _, err := ask(t, b, boot.Text(), "n1", newKey(t)); err != nil {
			t.Error(err)
		}
	}
	stale, checks := errors.New("another version"), 0
	if _, err := a.RevokeToken(t.Context(), boot.ID, func(r enroll.Token) error {
		if checks++; r.Uses != 2 {
			return stale
		}
		return nil
	}); !errors.Is(err, stale) || checks != 2 {
		t.Errorf("%v after %d checks, want the refusal of the second", err, checks)
	}
	if _, err := ask(t, b, boot.Text(), "n2", newKey(t)); err != nil {
		t.Errorf("the token is good still: %v", err)
	}
	if _, err := a.Ban(t.Context(), "n9", "stolen", "ann"); err != nil {
		t.Fatal(err)
	}
	s.once = func() {
		if _, err := b.Unban(t.Context(), "n9", "bob", nil); err != nil {
			t.Error(err)
		}
		if _, err := b.Ban(t.Context(), "n9", "stolen again", "bob"); err != nil {
			t.Error(err)
		}
	}
	checks = 0
	if _, err := a.Unban(t.Context(), "n9", "ann", func(ban enroll.Banned) error {
		if checks++; ban.Reason != "stolen" {
			return stale
		}
		return nil
	}); !errors.Is(err, stale) || checks != 2 {
		t.Errorf("%v after %d checks, want the refusal of the second", err, checks)
	}
	if list, err := a.Bans(t.Context()); err != nil || len(list) != 1 || list[0].Reason != "stolen again" {
		t.Errorf("the bans are %+v, %v", list, err)
	}
	if again, err := a.Ban(t.Context(), "n9", "another reason", "cat"); err != nil || again.Reason != "stolen again" || again.By != "bob" {
		t.Errorf("a ban of a banned node: %+v, %v", again, err)
	}
}

// TestCertificatesOfOperators: the key of another operator, the same key at the bound, and a second
// revocation.
func TestCertificatesOfOperators(t *testing.T) {
	s := mem.Open(mem.Options{})
	defer s.Close()
	e := open(t, s, "c1")
	key := newKey(t).Public()
	certify := func(name string, of any, want bool) {
		t.Helper()
		if _, err := e.CertifyOperator(t.Context(), name, of, 0, "boss"); (err == nil) != want || err != nil && !errors.Is(err, enroll.ErrInvalid) {
			t.Errorf("a certificate for %s: %v, want %t", name, err, want)
		}
	}
	certify("ann", key, true)
	certify("bob", key, false)
	for range 15 {
		certify("ann", newKey(t).Public(), true)
	}
	certify("ann", newKey(t).Public(), false) // the seventeenth
	certify("ann", key, true)
	for _, by := range []string{"first", "second"} {
		list, err := e.RevokeOperator(t.Context(), "ann", by, nil)
		if err != nil || len(list) != 16 {
			t.Fatalf("%d certificates, %v", len(list), err)
		}
		for _, o := range list {
			if o.RevokedBy != "first" {
				t.Errorf("revoked by %s", o.RevokedBy)
			}
		}
	}
}

// TestTheOperatorOfAProcess: a process replaces the certificate of the same process alone, and never
// a revoked certificate.
func TestTheOperatorOfAProcess(t *testing.T) {
	s := mem.Open(mem.Options{})
	defer s.Close()
	a, b := open(t, s, "c1"), open(t, s, "c2")
	count := func(want int, when string) {
		t.Helper()
		if list, err := a.Operators(t.Context()); err != nil || len(list) != want {
			t.Errorf("%s: %d certificates, %v, want %d", when, len(list), err, want)
		}
	}
	issue := func(e *enroll.Service) {
		t.Helper()
		if _, err := e.IssueOperator(t.Context(), "web"); err != nil {
			t.Fatal(err)
		}
	}
	issue(a)
	issue(a)
	count(1, "the second of a process")
	issue(b)
	count(2, "beside another process")
	if _, err := a.CertifyOperator(t.Context(), "other", newKey(t).Public(), 0, "coordinator c1"); err != nil {
		t.Fatal(err)
	}
	issue(a)
	count(3, "beside another operator")
	if _, err := a.RevokeOperator(t.Context(), "web", "ann", nil); err != nil {
		t.Fatal(err)
	}
	issue(a)
	count(4, "after a revocation")
}

// TestRefusedCreationsCountForTheirToken: guesses at a token by creations from many addresses limit
// enrolments with the token from an address with a refusal, and no others.
func TestRefusedCreationsCountForTheirToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.Open(mem.Options{})
		defer s.Close()
		e := open(t, s, "c1")
		boot := token(t, e, enroll.TokenOptions{Nodes: "n1"})
		for i := range 10 {
			if err := e.AdmitCreation(t.Context(), boot, "elsewhere", fmt.Sprint("10.0.0.", i)); status.Code(err) != codes.PermissionDenied {
				t.Fatal(err)
			}
		}
		if err := from(t, e, net.JoinHostPort("10.0.0.3", "7"), boot.Text(), "n1"); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("an address with a refusal: %v", err)
		}
		time.Sleep(6 * time.Second)
		if err := from(t, e, net.JoinHostPort("10.0.0.3", "7"), boot.Text(), "n1"); err != nil {
			t.Errorf("the address six seconds later: %v", err)
		}
	})
}

// TestAgentsHearOfARetiredAuthority: at once, and of a new authority with their heartbeats.
func TestAgentsHearOfARetiredAuthority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.Open(mem.Options{})
		defer s.Close()
		e := open(t, s, "c1")
		run(t, e)
		synctest.Wait()
		hears := func(what string, want bool, change func() error) {
			t.Helper()
			changed := e.Changed()
			if err := change(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
			select {
			case <-changed:
				if !want {
					t.Errorf("%s wakes the heartbeat streams", what)
				}
			default:
				if want {
					t.Errorf("%s does not wake the heartbeat streams", what)
				}
			}
		}
		list, err := e.Authorities(t.Context())
		if err != nil || len(list) != 1 {
			t.Fatalf("%d authorities, %v", len(list), err)
		}
		hears("a new authority", false, func() error { _, err := e.Rotate(t.Context()); return err })
		hears("the end of an authority", true, func() error { return e.Retire(t.Context(), list[0].ID, true, nil) })
	})
}
