package enroll_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/coordinator/enroll"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/pki"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/rpcauth"
)

func TestOnlyAGoodTokenLetsAHostIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.Open(mem.Options{})
		defer s.Close()
		e := open(t, s, "c1")
		other := open(t, mem.Open(mem.Options{}), "c1")
		good := token(t, e, enroll.TokenOptions{Nodes: "gpu-*", TTL: time.Hour, Uses: 100})
		once := token(t, e, enroll.TokenOptions{Nodes: "*"})
		if _, err := ask(t, e, once.Text(), "first", newKey(t)); err != nil {
			t.Fatal(err)
		}
		revoked := token(t, e, enroll.TokenOptions{Nodes: "*"})
		if _, err := e.RevokeToken(t.Context(), revoked.ID, nil); err != nil {
			t.Fatal(err)
		}
		short := token(t, e, enroll.TokenOptions{Nodes: "*", TTL: time.Minute})
		time.Sleep(time.Minute)
		parts := strings.Split(good.Text(), ".")
		guessed := strings.Join([]string{parts[0], parts[1], strings.Repeat("0", 32), parts[3]}, ".")
		if _, err := s.Txn(t.Context(), record.Txn{Then: []record.Op{record.Put(record.NodeIdentityKey("gpu-old"),
			record.MustEncode(record.NodeIdentity{Incarnation: resource.Incarnation{JournalID: "j", BootID: "b"}}))}}); err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string]struct {
			text, node string
			want       codes.Code
			wantText   string
		}{
			"a good one":                      {good.Text(), "gpu-1", codes.OK, ""},
			"for a node that does not fit":    {good.Text(), "cpu-1", codes.PermissionDenied, `is for nodes "gpu-*", not for "cpu-1"`},
			"for a node that enrolled before": {good.Text(), "gpu-0", codes.AlreadyExists, "muster token create --node gpu-0 --replace"},
			"for a node that registered once": {good.Text(), "gpu-old", codes.AlreadyExists, "node gpu-old exists already"},
			"used up":                         {once.Text(), "second", codes.PermissionDenied, "is used up"},
			"revoked":                         {revoked.Text(), "gpu-1", codes.Unauthenticated, "revoked, or never was"},
			"expired":                         {short.Text(), "gpu-1", codes.PermissionDenied, "expired at"},
			"a guessed secret":                {guessed, "gpu-1", codes.Unauthenticated, "revoked, or never was"},
			"of another cluster":              {token(t, other, enroll.TokenOptions{Nodes: "*"}).Text(), "gpu-1", codes.Unauthenticated, "revoked, or never was"},
			"no token":                        {"", "gpu-1", codes.Unauthenticated, "want muster-boot.ID.SECRET.PIN"},
			"a name with a slash":             {good.Text(), "gpu-1/x", codes.InvalidArgument, "want cluster and id"},
		} {
			if name == "for a node that enrolled before" {
				if _, err := ask(t, e, good.Text(), c.node, newKey(t)); err != nil {
					t.Fatal(err)
				}
			}
			key := newKey(t)
			r, err := ask(t, e, c.text, c.node, key)
			switch {
			case status.Code(err) != c.want || (err != nil && !strings.Contains(err.Error(), c.wantText)):
				t.Errorf("%s: got %v, want %s with %q", name, err, c.want, c.wantText)
			case err == nil:
				if got := identity(t, r, key).Identity(); got != (pki.Identity{Cluster: "c", Role: pki.Node, ID: c.node}) {
					t.Errorf("%s: certified as %s", name, got)
				}
			case strings.Contains(err.Error(), parts[2]):
				t.Errorf("%s: the refusal shows the secret: %v", name, err)
			}
		}
	})
}

func TestAUseIsTakenOnceHoweverManyHostsRaceForIt(t *testing.T) {
	s := mem.Open(mem.Options{})
	defer s.Close()
	services := []*enroll.Service{open(t, s, "c1"), open(t, s, "c2")}
	boot := token(t, services[0], enroll.TokenOptions{Nodes: "*", Uses: 3})
	var mu sync.Mutex
	in := 0
	var wg sync.WaitGroup
	for i := range 8 {
		key := newKey(t)
		wg.Go(func() {
			for { // Aborted means that the others were faster too often
				_, err := ask(t, services[i%2], boot.Text(), fmt.Sprintf("n%d", i), key)
				if status.Code(err) == codes.Aborted {
					continue
				}
				if err == nil {
					mu.Lock()
					in++
					mu.Unlock()
				}
				return
			}
		})
	}
	wg.Wait()
	if in != 3 {
		t.Errorf("%d hosts were let in by a token for 3", in)
	}
}

func TestALostAnswerCostsNoUseAndAnotherHostDoesNotProfit(t *testing.T) {
	s := mem.Open(mem.Options{})
	defer s.Close()
	e := open(t, s, "c1")
	boot := token(t, e, enroll.TokenOptions{Nodes: "*"})
	key := newKey(t)
	for range 3 {
		if _, err := ask(t, e, boot.Text(), "n1", key); err != nil {
			t.Fatalf("the same host again: %v", err)
		}
	}
	if _, err := ask(t, e, boot.Text(), "n1", newKey(t)); status.Code(err) != codes.PermissionDenied {
		t.Errorf("another key: %v", err)
	}
	list, err := e.ListTokens(t.Context())
	if err != nil || len(list) != 1 || list[0].Uses != 0 {
		t.Errorf("tokens: %+v, %v", list, err)
	}
}

func TestAReplacedNodeLosesItsCertificate(t *testing.T) {
	s := mem.Open(mem.Options{})
	defer s.Close()
	e := open(t, s, "c1")
	oldKey, fresh := newKey(t), newKey(t)
	r, err := ask(t, e, token(t, e, enroll.TokenOptions{Nodes: "n1"}).Text(), "n1", oldKey)
	if err != nil {
		t.Fatal(err)
	}
	old := identity(t, r, oldKey)
	if _, err := renew(t, e, old, oldKey); err != nil {
		t.Fatalf("it renews: %v", err)
	}
	r, err = ask(t, e, token(t, e, enroll.TokenOptions{Nodes: "n1", Replace: true}).Text(), "n1", fresh)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := renew(t, e, old, newKey(t)); status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "has been replaced") {
		t.Errorf("the old host renews: %v", err)
	}
	caller := rpcauth.Caller{Identity: old.Identity(), Certificate: old.Material().Chain[0]}
	if err := e.Admit(t.Context(), caller); status.Code(err) != codes.PermissionDenied {
		t.Errorf("the old host is current: %v", err)
	}
	now := identity(t, r, fresh)
	if err := e.Admit(t.Context(), rpcauth.Caller{Identity: now.Identity(), Certificate: now.Material().Chain[0]}); err != nil {
		t.Errorf("the new host is not current: %v", err)
	}
	for name, o := range map[string]enroll.TokenOptions{
		"many nodes": {Nodes: "*", Replace: true}, "many times": {Nodes: "n1", Uses: 2, Replace: true}, "no nodes": {}, "for ever": {Nodes: "*", TTL: 999 * time.Hour},
		"negative uses": {Nodes: "*", Uses: -1},
	} {
		if _, _, err := e.CreateToken(t.Context(), o); !errors.Is(err, enroll.ErrInvalid) {
			t.Errorf("a token for %s: %v", name, err)
		}
	}
}

// Whichever answers to a renewal get lost, the node is never locked out.
func TestLostRenewalsLockNobodyOut(t *testing.T) {
	s := mem.Open(mem.Options{})
	defer s.Close()
	e := open(t, s, "c1")
	key := newKey(t)
	r, err := ask(t, e, token(t, e, enroll.TokenOptions{Nodes: "n1"}).Text(), "n1", key)
	if err != nil {
		t.Fatal(err)
	}
	shown := identity(t, r, key)
	for round := range 6 {
		next := newKey(t)
		r, err := renew(t, e, shown, next)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if round%3 == 2 { // the others are lost
			shown = identity(t, r, next)
		}
	}
}

func TestEveryCoordinatorHasTheSameAuthorityAndKeys(t *testing.T) {
	s := mem.Open(mem.Options{})
	defer s.Close()
	var all [4]*enroll.Service
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() { all[i] = open(t, s, fmt.Sprintf("c%d", i)) })
	}
	wg.Wait()
	for _, e := range all[1:] {
		if e.Fingerprint() != all[0].Fingerprint() {
			t.Errorf("%s trusts or encrypts otherwise than %s", e.TLS().Identity(), all[0].TLS().Identity())
		}
	}
	if _, err := enroll.Open(t.Context(), enroll.Config{Cluster: "d", ID: "c1", Store: s}, nil); err == nil || !strings.Contains(err.Error(), `is of cluster "c"`) {
		t.Errorf("another cluster on the same store: %v", err)
	}
}

// run runs services until the test's bubble ends.
func run(t *testing.T, services ...*enroll.Service) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for _, e := range services {
		wg.Go(func() { e.Run(ctx) })
	}
	t.Cleanup(func() { cancel(); wg.Wait() })
}

func TestAuthoritiesAreRotatedAndRetired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.Open(mem.Options{})
		defer s.Close()
		a, b := open(t, s, "c1"), open(t, s, "c2")
		run(t, a, b)
		key := newKey(t)
		boot := token(t, a, enroll.TokenOptions{Nodes: "*", Uses: 9})
		r, err := ask(t, a, boot.Text(), "n1", key)
		if err != nil {
			t.Fatal(err)
		}
		node := identity(t, r, key)
		before := a.Fingerprint()
		first := a.Roots()[0]

		made, err := a.Rotate(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if a.Fingerprint() == before || a.Fingerprint() != b.Fingerprint() || len(b.Roots()) != 2 {
			t.Errorf("b has not followed: %d roots", len(b.Roots()))
		}
		if _, err := a.Rotate(t.Context()); !errors.Is(err, enroll.ErrInUse) {
			t.Errorf("a third authority: %v", err)
		}
		old := fmt.Sprintf("%x", first.SubjectKeyId)
		if err := a.Retire(t.Context(), old, false, nil); !errors.Is(err, enroll.ErrInUse) || !strings.Contains(err.Error(), "the first is n1") {
			t.Errorf("retired while a node uses it: %v", err)
		}
		if err := a.Retire(t.Context(), made, false, nil); !errors.Is(err, enroll.ErrInUse) {
			t.Errorf("the one that signs is retired: %v", err)
		}
		if err := a.Retire(t.Context(), "nonsense", true, nil); !errors.Is(err, enroll.ErrNotFound) {
			t.Errorf("an authority that there is not: %v", err)
		}
		// A host with a token that pins the old one, and a node that knows it
		// alone, meet coordinators whose certificates the new one signed.
		roots, err := pki.Pinned(b.TLS().Material().Chain, boot.Pin)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pki.Verify(b.TLS().Material().Chain, roots, time.Now(), pki.AsServer); err != nil {
			t.Errorf("an old token does not find the cluster: %v", err)
		}
		next := newKey(t)
		if r, err = renew(t, b, node, next); err != nil {
			t.Fatal(err)
		}
		node = identity(t, r, next)
		list, err := a.Authorities(t.Context())
		if err != nil || len(list) != 2 || list[0].Nodes != 0 || list[1].Nodes != 1 || list[0].Signs || !list[1].Signs {
			t.Errorf("authorities: %+v, %v", list, err)
		}
		if err := a.Retire(t.Context(), old, false, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if len(a.Roots()) != 1 || len(b.Roots()) != 1 {
			t.Errorf("still trusted: %d and %d roots", len(a.Roots()), len(b.Roots()))
		}
		if _, err := renew(t, a, node, newKey(t)); err != nil {
			t.Errorf("the node is locked out: %v", err)
		}
		if _, err := pki.Pinned(b.TLS().Material().Chain, boot.Pin); err == nil {
			t.Error("a token for the retired authority still finds it")
		}
		if _, err := ask(t, a, token(t, a, enroll.TokenOptions{Nodes: "*"}).Text(), "n2", newKey(t)); err != nil {
			t.Error(err)
		}
	})
}

func TestCoordinatorsRenewTheirOwnCertificates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.Open(mem.Options{})
		defer s.Close()
		e := open(t, s, "c1")
		run(t, e)
		for range 10 {
			time.Sleep(ttl)
			if left := time.Until(e.TLS().Material().Chain[0].NotAfter); left < ttl/4 {
				t.Fatalf("its certificate ends in %s", left)
			}
		}
	})
}

func TestAnAuthorityFromFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		files := &enroll.Files{Certificates: filepath.Join(dir, "ca.pem"), Key: filepath.Join(dir, "ca.key")}
		write := func(mode os.FileMode, signer *pki.Authority, more ...*pki.Authority) {
			t.Helper()
			der, err := pki.MarshalKey(signer.Key)
			if err != nil {
				t.Fatal(err)
			}
			certificates := []*x509.Certificate{signer.Certificate}
			for _, a := range more {
				certificates = append(certificates, a.Certificate)
			}
			_ = os.Remove(files.Key)
			if err := errors.Join(os.WriteFile(files.Certificates, pki.FormatPEM(certificates), 0o644), os.WriteFile(files.Key, pki.FormatKeyPEM(der), mode)); err != nil {
				t.Fatal(err)
			}
		}
		first, err := pki.NewAuthority("c", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		second, err := first.Succeed("c", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		s := mem.Open(mem.Options{})
		defer s.Close()
		write(0o644, first)
		if _, err := enroll.Open(t.Context(), enroll.Config{Cluster: "c", ID: "c1", Store: s, Files: files}, nil); err == nil || !strings.Contains(err.Error(), "chmod 0600") {
			t.Errorf("a key that others can read: %v", err)
		}
		write(0o600, first)
		e := open(t, s, "c1", func(c *enroll.Config) { c.Files = files })
		run(t, e)
		if _, err := e.Rotate(t.Context()); !errors.Is(err, enroll.ErrFixed) {
			t.Errorf("rotated: %v", err)
		}
		if _, found, _, _ := s.Get(t.Context(), record.AuthoritiesKey); found {
			t.Error("a built-in authority was made")
		}
		write(0o600, second, first)
		time.Sleep(5 * time.Second)
		if got := e.TLS().Material(); len(got.Roots) != 2 || !bytes.Equal(got.Chain[0].AuthorityKeyId, second.Certificate.SubjectKeyId) {
			t.Errorf("the new files are not in use: %d roots", len(got.Roots))
		}
		write(0o600, first, second)
		if err := os.WriteFile(files.Certificates, []byte("half a fi"), 0o644); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if got := e.TLS().Material(); len(got.Roots) != 2 {
			t.Error("damaged files are in use")
		}
	})
}

func TestNodesOfThisProcessAreCertifiedTogether(t *testing.T) {
	s := mem.Open(mem.Options{})
	defer s.Close()
	e := open(t, s, "c1")
	var nodes []resource.NodeID
	for i := range 120 {
		nodes = append(nodes, resource.NodeID(fmt.Sprintf("node-%d", i)))
	}
	issued, err := e.IssueNodes(t.Context(), nodes)
	if err != nil || len(issued) != len(nodes) {
		t.Fatalf("%d certificates, %v", len(issued), err)
	}
	p, err := rpcauth.NewTLS(issued["node-7"])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := renew(t, e, p, newKey(t)); err != nil {
		t.Errorf("it renews: %v", err)
	}
	if _, err := ask(t, e, token(t, e, enroll.TokenOptions{Nodes: "*"}).Text(), "node-8", newKey(t)); status.Code(err) != codes.AlreadyExists {
		t.Errorf("another host takes its name: %v", err)
	}
	for range 3 { // a process that starts again
		person, err := e.IssueOperator(t.Context(), "dev")
		if err != nil || len(person.Chain) == 0 {
			t.Errorf("operator: %v", err)
		}
	}
	if list, err := e.Operators(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("operators: %+v, %v", list, err)
	}
}

func BenchmarkRenew(b *testing.B) {
	s := mem.Open(mem.Options{})
	defer s.Close()
	e := open(b, s, "c1")
	issued, err := e.IssueNodes(b.Context(), []resource.NodeID{"n"})
	if err != nil {
		b.Fatal(err)
	}
	p, err := rpcauth.NewTLS(issued["n"])
	if err != nil {
		b.Fatal(err)
	}
	key := newKey(b)
	for b.Loop() {
		r, err := renew(b, e, p, key)
		if err != nil {
			b.Fatal(err)
		}
		p = identity(b, r, key)
	}
}
