package assignment

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"github.com/musterd/muster/agent/handoff"
	"github.com/musterd/muster/resource"
)

// TestFilesThatAreAwaitedAreToldOf: even if the wish changes in between.
func TestFilesThatAreAwaitedAreToldOf(t *testing.T) {
	for name, c := range map[string]struct {
		before func(*Writer)
		ready  bool
		after  func(*Writer)
		told   bool
	}{
		"not written yet":                    {before: func(s *Writer) { s.Put(handoff.Grant{Tx: "a"}) }, told: true},
		"written":                            {before: func(s *Writer) { s.Put(handoff.Grant{Tx: "a"}); s.work(context.Background(), false) }, ready: true},
		"no files wanted":                    {before: func(*Writer) {}, ready: true},
		"removed before they were written":   {before: func(s *Writer) { s.Put(handoff.Grant{Tx: "a"}) }, after: func(s *Writer) { s.Remove("a") }},
		"withheld, then confirmed":           {before: func(s *Writer) { s.Withhold(handoff.Grant{Tx: "a"}) }, after: func(s *Writer) { s.Confirm("a") }, told: true},
		"withheld":                           {before: func(s *Writer) { s.Withhold(handoff.Grant{Tx: "a"}) }},
		"taken away and given back, unseen":  {before: written(false), after: reopened, told: true},
		"taken away and given back, in turn": {before: written(true), after: reopened, told: true},
	} {
		t.Run(name, func(t *testing.T) {
			files, err := handoff.Open(t.TempDir(), handoff.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var told []resource.TxID
			s := New("n1", files, slog.New(slog.DiscardHandler), Listener{Arrived: func(_ context.Context, tx resource.TxID) { told = append(told, tx) }})
			c.before(s)
			if got := s.Ready("a"); got != c.ready {
				t.Errorf("ready: %t, want %t", got, c.ready)
			}
			if c.after != nil {
				c.after(s)
			}
			s.work(context.Background(), false)
			s.work(context.Background(), false)
			if got := slices.Contains(told, "a"); got != c.told || len(told) > 1 {
				t.Errorf("told of %v, want that: %t", told, c.told)
			}
		})
	}
}

// written has the files of a written and then taken away from launchers; seen:
// the disk has followed.
func written(seen bool) func(*Writer) {
	return func(s *Writer) {
		s.Put(handoff.Grant{Tx: "a"})
		s.work(context.Background(), false)
		s.Close()
		if seen {
			s.work(context.Background(), false)
		}
	}
}

// reopened gives them back.
func reopened(s *Writer) { s.Confirm("a"); s.Reopen() }
