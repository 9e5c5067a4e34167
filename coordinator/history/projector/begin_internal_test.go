package projector

import (
	"testing"

	"github.com/musterd/muster/coordinator/history/spool"
	"github.com/musterd/muster/coordinator/record"
	storemem "github.com/musterd/muster/coordinator/store/mem"
)

// TestATermWithoutDatabaseTakesNothingBack: a projector that is elected again while the
// database is away begins where the store says that the history is. It must not write its
// own older position into the store.
func TestATermWithoutDatabaseTakesNothingBack(t *testing.T) {
	s := storemem.Open(storemem.Options{})
	for range 9 {
		if _, err := s.Txn(t.Context(), record.Txn{Then: []record.Op{record.Put(record.ClusterKey, []byte("{}"))}}); err != nil {
			t.Fatal(err)
		}
	}
	p := New(Config{Name: "c1", Cluster: "test", Store: s})
	var err error
	if p.spool, _, err = spool.Open(t.TempDir(), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.endTerm()
		if err := p.spool.Close(); err != nil {
			t.Error(err)
		}
	})
	p.term, p.position, p.known = &term{}, 3, true
	p.stored.position = record.HistoryPosition{Revision: 7}
	if why, err := p.beginWithoutDatabase(t.Context(), t.Context()); why != "" || err != nil {
		t.Fatal(why, err)
	}
	if got := p.durable(); got.Revision != 7 || p.term.narrator.Revision() != 7 {
		t.Errorf("the durable position is %+v, and the rows follow %d; want 7", got, p.term.narrator.Revision())
	}
}
