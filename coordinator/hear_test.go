package coordinator

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// loop is a leader without a store, as far as its loop goes.
func loop() *term {
	t := newTerm(lead.NewLeader(lead.Beginning{Epoch: 1, Now: time.Now()}), nil, slog.New(slog.DiscardHandler), newMetrics(nil))
	t.follows = func(id resource.NodeID) lead.NodeFacts { return lead.NodeFacts{Node: id} }
	return t
}

// However much of a node waits, a client's request waits for one share of it.
func TestAClientWaitsForOneShareOfANode(t *testing.T) {
	for range 20 { // which channel a select takes is chance
		l := loop()
		for i := range 250 {
			tx := resource.NewTxID("u", 2, uint64(i), resource.Nonce{})
			l.mail.Put(grant.Replied{Node: "loud", Tx: tx, State: grant.Held, Members: []grant.Member{{Index: 0}}})
		}
		ctx, stop := context.WithCancel(t.Context())
		before := 0
		l.observe = func(_ time.Time, in lead.Input) {
			if _, is := in.(lead.AgentEvent); is && ctx.Err() == nil {
				before++
			}
		}
		l.post(stop)
		l.run(ctx)
		if before > 32 {
			t.Fatalf("%d messages of one node came before the client, want at most 32", before)
		}
	}
}

// A node's vote would wait behind its endless messages.
func TestANodeThatSaysNothingNewWithoutEndIsTheLastChoice(t *testing.T) {
	cases := map[string]struct {
		messages int
		last     bool
	}{
		"as many as an honest agent":   {40, false},
		"more than its bucket of idle": {200, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := loop()
				var until time.Time
				l.observe = func(_ time.Time, in lead.Input) {
					if in, is := in.(lead.NodeThrottled); is {
						until = in.Until
					}
				}
				for range c.messages {
					l.mail.Put(grant.Registered{Node: "loud"})
				}
				for range c.messages/32 + 1 {
					l.hear()
				}
				if last := !until.IsZero(); last != c.last {
					t.Errorf("after %d messages: last choice %t, want %t", c.messages, last, c.last)
				}
				if c.last && until.Sub(time.Now()) != lead.LoudBreak {
					t.Errorf("it is the last choice for %s, want %s", time.Until(until), lead.LoudBreak)
				}
			})
		})
	}
}

// A panic over one message is caught with its node, and nothing is handled
// after it.
func TestAPanicStopsTheLoopAndNamesItsNode(t *testing.T) {
	l := loop()
	tx := resource.NewTxID("u", 1, 1, resource.Nonce{})
	l.observe = func(_ time.Time, in lead.Input) {
		if in, is := in.(lead.AgentEvent); is && in.Event.NodeID() == "bad" {
			panic("a fault of the loop")
		}
	}
	var severed []resource.NodeID
	l.sever = func(id resource.NodeID, _ string) { severed = append(severed, id) }
	l.mail.Put(grant.Replied{Node: "bad", Tx: tx, State: grant.Reserved})
	l.mail.Put(grant.Replied{Node: "good", Tx: resource.NewTxID("u", 2, 2, resource.Nonce{}), State: grant.Held})
	l.run(t.Context())
	if len(severed) != 1 || severed[0] != "bad" || l.Knows("good") {
		t.Errorf("severed %v; the loop went on: %t", severed, l.Knows("good"))
	}
}
