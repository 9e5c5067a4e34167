package assignment_test

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/agent/assignment"
	"github.com/musterd/muster/agent/follow"
	"github.com/musterd/muster/agent/handoff"
	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// grants is a ledger that has these grants.
type grants struct {
	list         []ledger.Grant
	unregistered bool
}

func (l grants) Lookup(tx resource.TxID) (ledger.Grant, bool) {
	for _, g := range l.list {
		if g.Tx == tx {
			return g, true
		}
	}
	return ledger.Grant{}, false
}

func (l grants) Snapshot() *ledger.View        { return &ledger.View{Grants: l.list} }
func (l grants) Quarantine() ledger.Quarantine { return ledger.Quarantine{} }
func (l grants) Registration() resource.Revision {
	if l.unregistered {
		return 0
	}
	return 7
}

var now = time.Unix(1000, 0)

func a(state grant.State) ledger.Grant {
	g := ledger.Grant{Tx: "a", State: state, Deadline: now.Add(time.Second)}
	if state != grant.Tombstone {
		g.Members = []ledger.Holding{{}}
	}
	return g
}

func orphan() ledger.Grant {
	g := a(grant.Held)
	g.Origin = ledger.OriginOrphan
	return g
}

func overdue() ledger.Grant {
	g := a(grant.Evicting)
	g.Deadline = now
	return g
}

// TestChangesGiveAndTakeFiles: each change comes to a writer that has the files of
// a, or has not.
func TestChangesGiveAndTakeFiles(t *testing.T) {
	event := func(e ledger.Event) follow.Change { return follow.Change{Event: e} }
	notice := func(n follow.Notice) follow.Change { return follow.Change{Notice: n} }
	for name, c := range map[string]struct {
		had    bool
		change follow.Change
		then   ledger.Grant
		want   bool
	}{
		"a commit gives files":                              {false, event(ledger.Committed{Tx: "a"}), a(grant.Held), true},
		"a reservation gives none":                          {false, event(ledger.Granted{Grant: a(grant.Reserved)}), a(grant.Reserved), false},
		"an adopted grant gets files":                       {false, event(ledger.Granted{Grant: a(grant.Held)}), a(grant.Held), true},
		"a commit that ends in the same group gives none":   {false, event(ledger.Committed{Tx: "a"}), a(grant.Tombstone), false},
		"an orphan gets none":                               {false, event(ledger.Granted{Grant: orphan()}), orphan(), false},
		"a notice leaves the files":                         {true, event(ledger.Noticed{Tx: "a"}), a(grant.Evicting), true},
		"the end takes them":                                {true, event(ledger.Buried{Tx: "a"}), a(grant.Tombstone), false},
		"a dropped grant loses them":                        {true, event(ledger.Dropped{Tx: "a"}), ledger.Grant{}, false},
		"what is overdue loses them":                        {true, notice(follow.Overdue{Tx: "a"}), overdue(), false},
		"a registration gives what the store has COMMITTED": {false, notice(follow.Registered{Live: map[resource.TxID]bool{"a": true}}), a(grant.Held), true},
		"a registration withholds what it does not list":    {false, notice(follow.Registered{}), a(grant.Held), false},
		"a registration leaves files that are there":        {true, notice(follow.Registered{}), a(grant.Held), true},
		"a registration gives none to what is overdue":      {false, notice(follow.Registered{}), overdue(), false},
	} {
		t.Run(name, func(t *testing.T) {
			files, err := handoff.Open(t.TempDir(), handoff.Options{})
			if err != nil {
				t.Fatal(err)
			}
			w := assignment.New("n1", files, slog.New(slog.DiscardHandler), assignment.Listener{
				Arrived: func(context.Context, resource.TxID) {}, Troubled: func(context.Context) {},
			})
			before := grants{}
			if c.had {
				before.list = []ledger.Grant{a(grant.Held)}
			}
			w.Start(follow.Group{Ledger: before, Now: now})
			after := grants{}
			if c.then.Tx != "" {
				after.list = []ledger.Grant{c.then}
			}
			w.After(follow.Group{Changes: []follow.Change{c.change}, Ledger: after, Now: now})
			ctx, cancel := context.WithCancel(context.Background())
			cancel() // one more round, then it ends
			w.Run(ctx)
			if got := exists(files.JSONPath("a")); got != c.want {
				t.Errorf("a has files: %t, want %t", got, c.want)
			}
		})
	}
}

func TestAStartWritesFilesOnlyOfARegisteredAgent(t *testing.T) {
	for _, unregistered := range []bool{false, true} {
		files, err := handoff.Open(t.TempDir(), handoff.Options{})
		if err != nil {
			t.Fatal(err)
		}
		w := assignment.New("n1", files, slog.New(slog.DiscardHandler), assignment.Listener{})
		w.Start(follow.Group{Ledger: grants{list: []ledger.Grant{a(grant.Held)}, unregistered: unregistered}, Now: now})
		if got := exists(files.JSONPath("a")); got == unregistered {
			t.Errorf("unregistered: %t, the files are there: %t", unregistered, got)
		}
	}
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

// TestFilesHaveTheNotice: a notice changes present files alone.
func TestFilesHaveTheNotice(t *testing.T) {
	for name, had := range map[string]bool{"files that are there": true, "no files": false} {
		t.Run(name, func(t *testing.T) {
			files, err := handoff.Open(t.TempDir(), handoff.Options{})
			if err != nil {
				t.Fatal(err)
			}
			w := assignment.New("n1", files, slog.New(slog.DiscardHandler), assignment.Listener{
				Arrived: func(context.Context, resource.TxID) {}, Troubled: func(context.Context) {},
			})
			before := grants{}
			if had {
				before.list = []ledger.Grant{a(grant.Held)}
			}
			w.Start(follow.Group{Ledger: before, Now: now})
			noticed := a(grant.Evicting)
			noticed.Grace = 20 * time.Second
			change := follow.Change{Event: ledger.Noticed{Tx: "a"}}
			w.After(follow.Group{Changes: []follow.Change{change}, Ledger: grants{list: []ledger.Grant{noticed}}, Now: now})
			ctx, cancel := context.WithCancel(context.Background())
			cancel() // Run ends after its next round
			w.Run(ctx)
			text, err := os.ReadFile(files.JSONPath("a"))
			if exists := err == nil; exists != had {
				t.Fatalf("a has files: %t, want %t", exists, had)
			}
			if want := `"end": {
    "graceSeconds": 20,
    "uptimeSeconds": 1001
  }`; had && !strings.Contains(string(text), want) {
				t.Errorf("the file is\n%s, want %s in it", text, want)
			}
		})
	}
}
