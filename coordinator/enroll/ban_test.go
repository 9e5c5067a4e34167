package enroll_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/coordinator/enroll"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/pki"
	"github.com/musterd/muster/pki/folder"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/rpcauth"
)

// host enrolls a node and returns its identity.
func host(t *testing.T, e *enroll.Service, node string, replace bool) *rpcauth.TLS {
	t.Helper()
	key := newKey(t)
	r, err := ask(t, e, token(t, e, enroll.TokenOptions{Nodes: node, Replace: replace}).Text(), node, key)
	if err != nil {
		t.Fatal(err)
	}
	return identity(t, r, key)
}

func callerOf(p *rpcauth.TLS) rpcauth.Caller {
	return rpcauth.Caller{Identity: p.Identity(), Certificate: p.Material().Chain[0]}
}

// refused checks that a coordinator takes nothing of a party, nil for want.
func refused(t *testing.T, when string, e *enroll.Service, p *rpcauth.TLS, want string) {
	t.Helper()
	for what, err := range map[string]error{"a call": e.Admit(t.Context(), callerOf(p)), "a message": e.Holds(callerOf(p))} {
		if (err == nil) != (want == "") || (err != nil && (status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), want))) {
			t.Errorf("%s, at %s, %s of %s: %v, want %q", when, e.TLS().Identity(), what, p.Identity(), err, want)
		}
	}
}

func TestABannedNodeIsOutEverywhereUntilItIsLetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.Open(mem.Options{})
		defer s.Close()
		a, b := open(t, s, "c1"), open(t, s, "c2")
		run(t, a, b)
		n1, n3 := host(t, a, "n1", false), host(t, a, "n3", false)
		boot := token(t, a, enroll.TokenOptions{Nodes: "*", Uses: 9})
		synctest.Wait()

		ban, err := a.Ban(t.Context(), "n3", "it is hostile", "ann")
		if err != nil || !ban.Banned || !ban.Enrolled {
			t.Fatalf("banned: %+v, %v", ban, err)
		}
		synctest.Wait()
		for _, e := range []*enroll.Service{a, b} {
			refused(t, "banned", e, n3, "node n3 was banned at")
			refused(t, "banned", e, n1, "")
			if _, err := renew(t, e, n3, newKey(t)); status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "by ann (it is hostile)") {
				t.Errorf("it renews: %v", err)
			}
			if _, err := ask(t, e, boot.Text(), "n3", newKey(t)); status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "muster node unban n3") {
				t.Errorf("it enrolls: %v", err)
			}
			replacing := token(t, e, enroll.TokenOptions{Nodes: "n3", Replace: true})
			if _, err := ask(t, e, replacing.Text(), "n3", newKey(t)); status.Code(err) != codes.PermissionDenied {
				t.Errorf("it enrolls by a token that replaces it: %v", err)
			}
		}
		if again, err := b.Ban(t.Context(), "n3", "another reason", "bob"); err != nil || again != ban {
			t.Errorf("banned again: %+v, %v", again, err)
		}
		if _, err := b.Ban(t.Context(), "n9", "before it ever came", "bob"); err != nil {
			t.Error(err)
		}
		if list, err := b.Bans(t.Context()); err != nil || len(list) != 2 || list[0].Node != "n3" || list[1].Node != "n9" || list[1].Enrolled {
			t.Errorf("bans: %+v, %v", list, err)
		}
		if _, err := ask(t, a, boot.Text(), "n9", newKey(t)); status.Code(err) != codes.PermissionDenied {
			t.Errorf("a node that was banned before it came enrolls: %v", err)
		}
		if _, err := a.Ban(t.Context(), "n/9", "", "bob"); !errors.Is(err, enroll.ErrInvalid) {
			t.Errorf("a name that there is not: %v", err)
		}

		if _, err := b.Unban(t.Context(), "n3", "bob", nil); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Unban(t.Context(), "n3", "bob", nil); !errors.Is(err, enroll.ErrNotFound) {
			t.Errorf("unbanned twice: %v", err)
		}
		synctest.Wait()
		refused(t, "unbanned", a, n3, "ended at")
		back := host(t, a, "n3", false) // it has never registered, or an administrator says --replace
		refused(t, "enrolled again", a, back, "")
		refused(t, "enrolled again", b, back, "")
		refused(t, "enrolled again", b, n3, "replaced")
	})
}

// Which of two coordinators hears of a ban by its watch, and when, makes no
// difference for a host that it has certified a moment ago.
func TestAHostThatAnotherCoordinatorCertifiedIsKnownAtOnce(t *testing.T) {
	s := mem.Open(mem.Options{})
	defer s.Close()
	a, b := open(t, s, "c1"), open(t, s, "c2") // neither follows the store
	n1 := host(t, a, "n1", false)
	if err := b.Holds(callerOf(n1)); err == nil {
		t.Error("b knows it without having looked")
	}
	if err := b.Admit(t.Context(), callerOf(n1)); err != nil {
		t.Errorf("b looks: %v", err)
	}
	if err := b.Holds(callerOf(n1)); err != nil {
		t.Errorf("b has looked: %v", err)
	}
}

func TestAReplacedNodeIsOutAtOnceAndTheGossipKeyChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.Open(mem.Options{})
		defer s.Close()
		a, b := open(t, s, "c1"), open(t, s, "c2")
		run(t, a, b)
		old := host(t, a, "n1", false)
		key := a.Keyring().Keys()[0]
		time.Sleep(time.Minute)
		if got := a.Keyring().Keys(); len(got) != 1 || !bytes.Equal(got[0], key) {
			t.Error("a new node rotates the gossip key")
		}
		fresh := host(t, a, "n1", true)
		synctest.Wait()
		for _, e := range []*enroll.Service{a, b} {
			refused(t, "replaced", e, old, "has been replaced")
			refused(t, "replaced", e, fresh, "")
		}
		time.Sleep(10 * time.Second)
		for _, e := range []*enroll.Service{a, b} {
			if got := e.Keyring().Keys(); len(got) != 1 || bytes.Equal(got[0], key) {
				t.Errorf("%s has %d gossip keys, or the old one", e.TLS().Identity(), len(got))
			}
		}
	})
}

// The gossip key is replaced in an order in which nobody who follows is ever
// without a key that others send with, whoever crashes.
func TestABanRotatesTheGossipKeyStepByStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.Open(mem.Options{})
		defer s.Close()
		a, b := open(t, s, "c1"), open(t, s, "c2")
		first, crash := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); a.Run(first) }()
		run(t, b)
		host(t, a, "n3", false)
		synctest.Wait()
		old := b.Keyring().Keys()[0]
		changed, before := b.Changed(), b.Fingerprint()
		if _, err := a.Ban(t.Context(), "n3", "", "ann"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		select {
		case <-changed:
		default:
			t.Error("nobody who waits is told")
		}
		if b.Fingerprint() == before {
			t.Error("the fingerprint is the same")
		}
		keys := b.Keyring().Keys()
		if len(keys) != 2 || !bytes.Equal(keys[0], old) {
			t.Fatalf("installed: %d keys", len(keys))
		}
		fresh := keys[1]
		crash() // c1 dies in between, and c2 goes on
		<-ended
		time.Sleep(3500 * time.Millisecond)
		if keys := b.Keyring().Keys(); len(keys) != 2 || !bytes.Equal(keys[0], fresh) || !bytes.Equal(keys[1], old) {
			t.Errorf("in use: %d keys, or another first one", len(keys))
		}
		time.Sleep(3500 * time.Millisecond)
		if keys := b.Keyring().Keys(); len(keys) != 1 || !bytes.Equal(keys[0], fresh) {
			t.Errorf("removed: %d keys", len(keys))
		}
		c := open(t, s, "c3")
		if keys := c.Keyring().Keys(); len(keys) != 1 || !bytes.Equal(keys[0], fresh) {
			t.Errorf("a coordinator that starts has %d keys", len(keys))
		}
	})
}

// Two bans, the second while the keys of the first are being spread: the second
// host may have the first one's new key.
func TestASecondBanBeginsTheRotationAnew(t *testing.T) {
	for name, pause := range map[string]time.Duration{"at once": 0, "while the first new key is in use": 4 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := mem.Open(mem.Options{})
				defer s.Close()
				a := open(t, s, "c1")
				run(t, a)
				seen := [][]byte{a.Keyring().Keys()[0]}
				for _, node := range []string{"n3", "n4"} {
					if _, err := a.Ban(t.Context(), "n3", "", "ann"); err != nil {
						t.Fatal(err)
					}
					if node == "n4" {
						if _, err := a.Ban(t.Context(), "n4", "", "ann"); err != nil {
							t.Fatal(err)
						}
						continue
					}
					time.Sleep(pause)
					synctest.Wait()
					seen = append(seen, a.Keyring().Keys()...)
				}
				time.Sleep(20 * time.Second)
				got := a.Keyring().Keys()
				if len(got) != 1 || slices.ContainsFunc(seen, func(k []byte) bool { return bytes.Equal(k, got[0]) }) {
					t.Errorf("%d keys in the end, or one that the second host has", len(got))
				}
			})
		})
	}
}

// A backup that is older than a decision does not undo it.
func TestDecisionsSurviveARestoredBackup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.Open(mem.Options{})
		defer s.Close()
		f, err := folder.Open(filepath.Join(t.TempDir(), "private"))
		if err != nil {
			t.Fatal(err)
		}
		kept := func(c *enroll.Config) { c.Folder = f }
		a := open(t, s, "c1", kept)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); a.Run(ctx) }()
		good, hostile, replaced, pardoned := host(t, a, "n1", false), host(t, a, "n3", false), host(t, a, "n4", false), host(t, a, "n5", false)
		if _, err := a.Ban(t.Context(), "n5", "by mistake", "ann"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		leaked := a.Keyring().Keys()[0]
		boot := token(t, a, enroll.TokenOptions{Nodes: "n3", Replace: true})
		backup := s.Backup()

		if _, err := a.Ban(t.Context(), "n3", "hostile", "ann"); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Unban(t.Context(), "n5", "ann", nil); err != nil {
			t.Fatal(err)
		}
		fresh := host(t, a, "n4", true)
		late := host(t, a, "n6", false)
		pardonedAgain := host(t, a, "n5", false)
		leaf, err := a.CertifyOperator(t.Context(), "eve", newKey(t).Public(), 0, "ann")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.RevokeOperator(t.Context(), "eve", "ann", nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		check := func(when string, e *enroll.Service) {
			t.Helper()
			refused(t, when, e, good, "")
			refused(t, when, e, hostile, "was banned")
			refused(t, when, e, replaced, "has been replaced")
			refused(t, when, e, fresh, "")
			refused(t, when, e, late, "")
			refused(t, when, e, pardoned, "has been replaced")
			refused(t, when, e, pardonedAgain, "")
			eve := rpcauth.Caller{Identity: pki.Identity{Cluster: "c", Role: pki.Operator, ID: "eve"}, Certificate: leaf}
			if err := e.Holds(eve); status.Code(err) != codes.PermissionDenied {
				t.Errorf("%s: the operator is accepted: %v", when, err)
			}
			if list, err := e.Bans(t.Context()); err != nil || len(list) != 1 || list[0].Node != "n3" {
				t.Errorf("%s: bans %+v, %v", when, list, err)
			}
			if keys := e.Keyring().Keys(); len(keys) != 1 || bytes.Equal(keys[0], leaked) {
				t.Errorf("%s: %d gossip keys, or the one that the banned host has", when, len(keys))
			}
		}
		check("before the restore", a)

		s.Restore(backup)
		acknowledge(t, s)
		if _, err := ask(t, a, boot.Text(), "n3", newKey(t)); status.Code(err) != codes.PermissionDenied {
			t.Errorf("a host enrolls whose ban the store has just lost: %v", err)
		}
		time.Sleep(time.Minute)
		check("restored under a running coordinator", a)

		stop()
		<-ended
		s.Restore(backup)
		acknowledge(t, s)
		again := open(t, s, "c1", kept)
		run(t, again)
		time.Sleep(time.Minute)
		check("restored while it was down", again)
		other := open(t, s, "c2")
		run(t, other)
		check("at another coordinator", other)
		if err := f.SaveKnown([]byte(`{"half a fi`)); err != nil {
			t.Fatal(err)
		}
		damaged := open(t, s, "c3", kept) // the store has it all
		run(t, damaged)
		check("with a damaged file", damaged)
	})
}

// acknowledge does what the coordinator's follower does after a restore.
func acknowledge(t *testing.T, s *mem.Store) {
	t.Helper()
	_, _, _, err := s.Get(t.Context(), record.GossipKeysKey)
	var back *record.WentBackError
	if errors.As(err, &back) {
		s.Acknowledge(back)
	}
}

func register(t *testing.T, s *mem.Store, node string) {
	t.Helper()
	i := record.NodeIdentity{}
	i.Incarnation.JournalID, i.Incarnation.BootID = "j", "b"
	if _, err := s.Txn(t.Context(), record.Txn{Then: []record.Op{record.Put(record.NodeIdentityKey("n1"), record.MustEncode(i))}}); err != nil {
		t.Error(err)
	}
}

// from enrolls as a host at an address.
func from(t *testing.T, e *enroll.Service, address, text, node string) error {
	t.Helper()
	ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("authorization", "Bearer "+text))
	at, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	ctx = peer.NewContext(ctx, &peer.Peer{Addr: at})
	_, err = e.Enroll(ctx, &musterv1.EnrollRequest{Cluster: "c", NodeId: node, Csr: csr(t, newKey(t))})
	return err
}

func TestGuessersAreLimitedAndHonestHostsAreNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.Open(mem.Options{})
		defer s.Close()
		registry := prometheus.NewRegistry()
		e := open(t, s, "c1", func(c *enroll.Config) { c.Metrics = registry })
		boot := token(t, e, enroll.TokenOptions{Nodes: "*", Uses: 100})
		parts := strings.Split(boot.Text(), ".")
		guess := strings.Join([]string{parts[0], parts[1], strings.Repeat("0", 32), parts[3]}, ".")
		limited := 0
		for i := range 100 {
			err := from(t, e, "192.0.2.66:1234", guess, fmt.Sprintf("n%d", i))
			switch status.Code(err) {
			case codes.ResourceExhausted:
				limited++
				if !strings.Contains(err.Error(), "try again in") {
					t.Errorf("limited: %v", err)
				}
			case codes.Unauthenticated:
			default:
				t.Errorf("a guess: %v", err)
			}
		}
		if limited < 85 {
			t.Errorf("%d of 100 guesses were limited", limited)
		}
		if err := from(t, e, "192.0.2.66:99", boot.Text(), "n200"); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("the address of the guesser: %v", err)
		}
		if err := from(t, e, "192.0.2.7:1", boot.Text(), "n201"); err != nil {
			t.Errorf("an honest host elsewhere, with the token that was guessed at: %v", err)
		}
		for i := range 20 { // addresses of one host's /64
			_ = from(t, e, fmt.Sprintf("[2001:db8::%d]:1", i+1), guess, "n1")
		}
		if err := from(t, e, "[2001:db8::ffff]:1", guess, "n1"); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("another address of the same /64: %v", err)
		}
		time.Sleep(5 * time.Minute)
		if err := from(t, e, "192.0.2.66:99", boot.Text(), "n200"); err != nil {
			t.Errorf("the address of the guesser, later: %v", err)
		}
		count := func(reason string) float64 {
			families, err := registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range families {
				for _, m := range f.GetMetric() {
					if m.GetLabel()[0].GetValue() == reason {
						return m.GetCounter().GetValue()
					}
				}
			}
			return 0
		}
		if count("limited") < 85 || count("token") < 10 {
			t.Errorf("counted %g limited, %g by their token", count("limited"), count("token"))
		}
	})
}
