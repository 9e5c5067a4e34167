package enroll_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/enroll"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/pki"
	"github.com/musterd/muster/resource"
)

// Hosts create their own nodes with their bootstrap tokens, and no others.
func TestABootstrapTokenIsGoodForTheCreationOfItsNodes(t *testing.T) {
	const from = "10.0.0.7"
	for name, c := range map[string]struct {
		token  enroll.TokenOptions
		before func(t *testing.T, e *enroll.Service, token pki.Token)
		node   resource.NodeID
		want   codes.Code
		says   string
	}{
		"a node that the pattern fits":      {token: enroll.TokenOptions{Nodes: "gpu-*"}, node: "gpu-1"},
		"a node that the pattern fits not":  {token: enroll.TokenOptions{Nodes: "gpu-*"}, node: "cpu-1", want: codes.PermissionDenied, says: `for nodes "gpu-*"`},
		"the same node again":               {token: enroll.TokenOptions{Nodes: "gpu-*"}, before: creates("gpu-1"), node: "gpu-1"},
		"more nodes than it may let in":     {token: enroll.TokenOptions{Nodes: "gpu-*"}, before: creates("gpu-1"), node: "gpu-2", want: codes.PermissionDenied, says: "used up"},
		"as many nodes as it may let in":    {token: enroll.TokenOptions{Nodes: "gpu-*", Uses: 2}, before: creates("gpu-1"), node: "gpu-2"},
		"a node that has enrolled with it":  {token: enroll.TokenOptions{Nodes: "gpu-*"}, before: enrolls("gpu-1"), node: "gpu-1"},
		"a further node after an enrolment": {token: enroll.TokenOptions{Nodes: "gpu-*"}, before: enrolls("gpu-1"), node: "gpu-2", want: codes.PermissionDenied, says: "used up"},
		"a node that has enrolled with another token": {token: enroll.TokenOptions{Nodes: "gpu-*"}, before: func(t *testing.T, e *enroll.Service, _ pki.Token) {
			enrolls("gpu-1")(t, e, token(t, e, enroll.TokenOptions{Nodes: "gpu-1"}))
		}, node: "gpu-1", want: codes.PermissionDenied, says: "another bootstrap token"},
		"the one node that the token names": {token: enroll.TokenOptions{Nodes: "gpu-1"}, before: func(t *testing.T, e *enroll.Service, _ pki.Token) {
			enrolls("gpu-1")(t, e, token(t, e, enroll.TokenOptions{Nodes: "gpu-*"}))
		}, node: "gpu-1"},
		"a banned node": {token: enroll.TokenOptions{Nodes: "gpu-*"}, before: func(t *testing.T, e *enroll.Service, _ pki.Token) {
			if _, err := e.Ban(t.Context(), "gpu-1", "stolen", "ada"); err != nil {
				t.Fatal(err)
			}
		}, node: "gpu-1", want: codes.PermissionDenied, says: "banned"},
		"a revoked token": {token: enroll.TokenOptions{Nodes: "gpu-*"}, before: func(t *testing.T, e *enroll.Service, token pki.Token) {
			if _, err := e.RevokeToken(t.Context(), token.ID, nil); err != nil {
				t.Fatal(err)
			}
		}, node: "gpu-1", want: codes.Unauthenticated, says: "revoked"},
		"an expired token": {token: enroll.TokenOptions{Nodes: "gpu-*", TTL: time.Minute}, before: func(*testing.T, *enroll.Service, pki.Token) {
			time.Sleep(2 * time.Minute) // of the fake clock
		}, node: "gpu-1", want: codes.PermissionDenied, says: "expired"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := mem.Open(mem.Options{})
				defer s.Close()
				e := open(t, s, "c1")
				made := token(t, e, c.token)
				if !strings.HasPrefix(made.Text(), api.BootstrapTokenPrefix) {
					t.Fatalf("a token begins with %.12s", made.Text())
				}
				if c.before != nil {
					c.before(t, e, made)
				}
				err := e.AdmitCreation(t.Context(), made, c.node, from)
				if status.Code(err) != c.want || !strings.Contains(fmt.Sprint(err), c.says) {
					t.Errorf("got %v, want %s %q", err, c.want, c.says)
				}
			})
		})
	}
}

func creates(node resource.NodeID) func(*testing.T, *enroll.Service, pki.Token) {
	return func(t *testing.T, e *enroll.Service, token pki.Token) {
		if err := e.AdmitCreation(t.Context(), token, node, ""); err != nil {
			t.Fatal(err)
		}
	}
}

func enrolls(node string) func(*testing.T, *enroll.Service, pki.Token) {
	return func(t *testing.T, e *enroll.Service, token pki.Token) {
		if _, err := ask(t, e, token.Text(), node, newKey(t)); err != nil {
			t.Fatal(err)
		}
	}
}

// A node that a host has created with a token enrolls with it, and the token may then
// create no more nodes.
func TestAnEnrolmentTakesTheUseOfItsCreation(t *testing.T) {
	s := mem.Open(mem.Options{})
	defer s.Close()
	e := open(t, s, "c1")
	made := token(t, e, enroll.TokenOptions{Nodes: "gpu-*", Uses: 2})
	creates("gpu-1")(t, e, made)
	enrolls("gpu-1")(t, e, made)
	creates("gpu-2")(t, e, made)
	if err := e.AdmitCreation(t.Context(), made, "gpu-3", ""); status.Code(err) != codes.PermissionDenied {
		t.Errorf("a third node: %v", err)
	}
	_, err := enroll.Documents{Service: e}.AdmitCreation(t.Context(), "muster-boot.zzz", "gpu-2", "")
	refusal, is := err.(*api.Status)
	if !is || refusal.Code != 401 {
		t.Errorf("a text that is no token: %v", err)
	}
}

// An address whose tokens are refused is limited, as it is at enrolment.
func TestRefusedTokensOfCreationsAreLimited(t *testing.T) {
	s := mem.Open(mem.Options{})
	defer s.Close()
	e := open(t, s, "c1")
	unknown := pki.NewToken(pki.Pin{})
	var last error
	for range 20 {
		last = e.AdmitCreation(t.Context(), unknown, "gpu-1", "10.0.0.9")
	}
	if status.Code(last) != codes.ResourceExhausted {
		t.Errorf("after 20 refusals: %v", last)
	}
	if err := e.AdmitCreation(t.Context(), token(t, e, enroll.TokenOptions{Nodes: "gpu-1"}), "gpu-1", "10.0.0.10"); err != nil {
		t.Errorf("another address: %v", err)
	}
}
