package ledger_test

import (
	"fmt"
	"time"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

// The owner's loop without its journal: decide, apply, append, answer.
func Example() {
	host, err := fit.NewHost(&numa.Topology{
		Nodes: []numa.Node{{ID: 0, CPUs: bitset.Of(0), Memory: 1 << 30}},
		CPUs:  []numa.CPU{{ID: 0, Online: true, Siblings: bitset.Of(0)}},
	}, &devices.Inventory{}, fit.Reserved{})
	if err != nil {
		panic(err)
	}
	l := ledger.New(host)
	now := time.Unix(100, 0) // since boot
	var journal [][]byte
	for _, cmd := range []ledger.Command{
		ledger.Start{Incarnation: resource.Incarnation{JournalID: "journal", BootID: "boot"}},
		ledger.Registered{Revision: 4},
		grant.Reserve{Tx: "tx", Unit: "unit", Epoch: 2, TTL: time.Minute, Members: []grant.MemberRequest{{Request: resource.Request{CPU: 500}}}},
		grant.Commit{Tx: "tx", Epoch: 2, Revision: 5},
	} {
		reply, events := l.Decide(now, cmd)
		for _, e := range events {
			if err := l.Apply(e); err != nil {
				panic(err)
			}
		}
		journal = append(journal, ledger.AppendEvents(nil, events)) // and only then:
		if reply.Tx != "" {
			fmt.Println(reply.Tx, reply.State, reply.Reasons)
		}
	}
	restarted := ledger.New(host)
	fmt.Println(restarted.Replay(journal), restarted.Hash() == l.Hash())
	// Output:
	// tx RESERVED []
	// tx HELD []
	// <nil> true
}
