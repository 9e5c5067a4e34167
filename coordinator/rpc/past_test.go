package rpc_test

import (
	"testing"

	"github.com/musterd/muster/coordinator/era"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/rpc"
	"github.com/musterd/muster/coordinator/store/mem"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
)

// blind is the Era of a coordinator whose disk is new.
func blind(t *testing.T) *era.Keeper {
	t.Helper()
	k, err := era.Open(t.TempDir(), "c", "c1", quiet)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestRegistrationsAfterARestoration: who accepts the last restoration takes part, and
// all others are in quarantine, those of older versions by their identity alone.
func TestRegistrationsAfterARestoration(t *testing.T) {
	for name, c := range map[string]struct {
		known        *musterv1.KnownStore
		lost, accept bool
	}{
		"a first registration":          {&musterv1.KnownStore{AcceptsAny: true}, false, true},
		"a reconciled agent":            {&musterv1.KnownStore{AcceptsAny: true, Restored: "*", Revision: 99}, false, true},
		"an agent that knows of it":     {&musterv1.KnownStore{Restored: "the last"}, false, true},
		"an agent of before":            {&musterv1.KnownStore{Revision: 1}, true, false},
		"an agent of an older version":  {nil, true, false},
		"an agent with a later loss":    {&musterv1.KnownStore{Restored: "the last", Revision: 99}, true, false},
		"an agent with another history": {&musterv1.KnownStore{Restored: "another"}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, db := open(t, mem.Options{})
			last, err := era.Declare(t.Context(), db, record.Restored{}, record.Restored{Has: 1, By: "c2"})
			if err != nil {
				t.Fatal(err)
			}
			request := registration(t, first)
			if request.Known = c.known; c.known.GetRestored() == "the last" {
				request.Known.Restored = last.Mark
			}
			r, err := s.Register(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			identity, _ := get[record.NodeIdentity](t, db, record.NodeIdentityKey("n1"))
			accepted := identity.Restored == last.Mark
			if lost := r.GetLost() != ""; lost != c.lost || accepted != c.accept && !(c.lost && c.known.GetRestored() == last.Mark) || r.GetRestored() != last.Mark {
				t.Errorf("lost %q, accepted %t, restored %q", r.GetLost(), accepted, r.GetRestored())
			}
		})
	}
}

// TestAnAgentAloneKnows: the word counts for all nodes where the coordinator's disk is new.
func TestAnAgentAloneKnows(t *testing.T) {
	for name, k := range map[string]*era.Keeper{"a new disk": blind(t), "no knowledge is kept": nil} {
		t.Run(name, func(t *testing.T) {
			s, db := open(t, mem.Options{})
			s = &rpc.Server{Cluster: s.Cluster, Store: db, Logger: quiet, Era: k}
			request := registration(t, first)
			request.Known = &musterv1.KnownStore{Epoch: 7, Term: "lost", Tx: "u.7.1.00", TxRevision: 8}
			r, err := s.Register(t.Context(), request)
			if err != nil || r.GetLost() == "" {
				t.Fatalf("lost %q, %v", r.GetLost(), err)
			}
			if _, found, _, err := db.Get(t.Context(), record.LastRestoredKey); err != nil || found != (k != nil) {
				t.Errorf("declared %t, %v", found, err)
			}
		})
	}
}
