package projector

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/history/narrate"
	"github.com/musterd/muster/coordinator/history/spool"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	storemem "github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/resource"
)

// TestWhoWritesThePosition: a projector in office, and a projector without office whose
// spool is drained. Each has rows up to revision 7 in the database.
func TestWhoWritesThePosition(t *testing.T) {
	own, drained := record.HistoryPosition{Revision: 5, SpoolOwner: "c1", SpoolAfter: 3}, record.HistoryPosition{Revision: 7}
	other := record.HistoryPosition{Revision: 5, SpoolOwner: "c2", SpoolAfter: 3}
	office := func(s *storemem.Store, deposed bool) *term {
		r, err := s.Txn(t.Context(), record.Txn{Then: []record.Op{record.Put("/office", nil)}})
		if err != nil {
			t.Fatal(err)
		}
		if deposed {
			r.Revision++
		}
		return &term{office: &store.Leadership{Key: "/office", Epoch: resource.Epoch(r.Revision)}, narrator: narrate.New("test")}
	}
	for name, c := range map[string]struct {
		term   func(s *storemem.Store) *term
		stored record.HistoryPosition
		want   record.HistoryPosition
	}{
		"without office, the own spool is drained": {nil, own, drained},
		"without office, the spool of another":     {nil, other, other},
		"in office":                                {func(s *storemem.Store) *term { return office(s, false) }, other, drained},
		"another was elected":                      {func(s *storemem.Store) *term { return office(s, true) }, other, other},
	} {
		t.Run(name, func(t *testing.T) {
			s := storemem.Open(storemem.Options{})
			p := New(Config{Name: "c1", Cluster: "test", Store: s})
			var err error
			if p.spool, _, err = spool.Open(t.TempDir(), 0); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { p.must(p.spool.Close()) })
			if _, err := s.Txn(t.Context(), record.Txn{Then: []record.Op{record.MustPutRecord(record.HistoryPositionKey, c.stored)}}); err != nil {
				t.Fatal(err)
			}
			if p.position, p.known = 7, true; c.term != nil {
				p.term = c.term(s)
			}
			if _, err := p.readPosition(t.Context()); err != nil {
				t.Fatal(err)
			}
			p.storePosition(t.Context())
			kv, _, _, err := s.Get(t.Context(), record.HistoryPositionKey)
			if err != nil {
				t.Fatal(err)
			}
			got, err := record.Decode[record.HistoryPosition](kv.Key, kv.Value)
			if d := cmp.Diff(c.want, got); err != nil || d != "" {
				t.Errorf("%v; the store's position (-want +got):\n%s", err, d)
			}
		})
	}
}

// TestTheFirstPauseIsShortAgainOnceTheDatabaseAnswers.
func TestTheFirstPauseIsShortAgainOnceTheDatabaseAnswers(t *testing.T) {
	p := New(Config{Name: "c1", Cluster: "test"})
	for range 5 {
		p.fail(errors.New("away"))
	}
	long := p.retry
	p.recover()
	if p.fail(errors.New("away")); p.retry != firstRetry || long <= firstRetry || p.Status().Away == "" {
		t.Errorf("the pause is %s after an answer and was %s before, want %s and more; status %+v", p.retry, long, firstRetry, p.Status())
	}
}
