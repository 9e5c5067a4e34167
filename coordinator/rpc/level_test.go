package rpc_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store/mem"
)

func TestAnAgentTellsItsLevel(t *testing.T) {
	s, db := open(t, mem.Options{})
	request := registration(t, first)
	if _, err := s.Register(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if _, found, _, err := db.Get(t.Context(), record.NodeLevelKey("n1")); found || err != nil {
		t.Errorf("an agent of an older version has a level: %v", err)
	}
	request.FeatureLevel = 2
	if _, err := s.Register(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	known, _ := get[record.KnownLevel](t, db, record.NodeLevelKey("n1"))
	spec, _ := get[record.NodeSpec](t, db, record.NodeSpecKey("n1"))
	if known.Level != 2 || known.Registered != spec.Registrations[len(spec.Registrations)-1] {
		t.Errorf("%+v beside the registrations %v", known, spec.Registrations)
	}
}

func TestTheClusterRefusesAgentsBelowItsLevel(t *testing.T) {
	s, db := open(t, mem.Options{})
	put(t, db, record.Put(record.ClusterKey, []byte(`{"v":1,"name":"c","level":2}`)))
	request := registration(t, first)
	for told, want := range map[int32]codes.Code{0: codes.FailedPrecondition, 1: codes.FailedPrecondition, 2: codes.OK, 3: codes.OK} {
		request.FeatureLevel = told
		if _, err := s.Register(t.Context(), request); status.Code(err) != want || want != codes.OK && !strings.Contains(err.Error(), "feature level 2") {
			t.Errorf("an agent of level %d: %v, want %v", told, err, want)
		}
	}
}

func TestNoAgentRegistersDuringARaise(t *testing.T) {
	s, db := open(t, mem.Options{})
	put(t, db, record.Put(record.RaiseKey, record.MustEncode(record.Raise{To: 2})))
	if _, err := s.Register(t.Context(), registration(t, first)); status.Code(err) != codes.Aborted {
		t.Errorf("during a raise: %v, want Aborted", err)
	}
	put(t, db, record.Delete(record.RaiseKey))
	if _, err := s.Register(t.Context(), registration(t, first)); err != nil {
		t.Errorf("after the raise: %v", err)
	}
}
