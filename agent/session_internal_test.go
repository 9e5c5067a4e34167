package agent

import (
	"testing"

	"github.com/musterd/muster/agent/rpc"
)

// TestAnEndedSessionHasNoAnswer holds the order that TestAnEndedSessionIsNotObeyed
// meets only by chance: a message waits in the queue while the next session begins.
// The owner has no ledger here, so that it may not even look at the message.
func TestAnEndedSessionHasNoAnswer(t *testing.T) {
	o := &owner{session: new(rpc.Outbox)}
	for name, it := range map[string]*item{
		"a resync":          {out: new(rpc.Outbox), resync: true},
		"a refused message": {out: new(rpc.Outbox), refused: new(rpc.Reply)},
	} {
		if o.handle(it); len(o.answers) > 0 {
			t.Errorf("%s of an ended session is answered", name)
		}
	}
}
