package txn_test

import (
	"fmt"

	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// The owner carries out effects and reports what happened.
func ExampleMachine() {
	m, effects := txn.New("tx", []resource.NodeID{"node-1"})
	fmt.Println(m.State(), show(effects[0]))
	for _, in := range []txn.Input{
		txn.Voted{Node: "node-1", Vote: txn.Vote{Revision: 3}},
		txn.CommitAnswered{Outcome: txn.Unknown},
		txn.RecordRead{State: grant.RecordCommitted, Revision: 7},
	} {
		effects = m.Step(in)
		fmt.Println(m.State(), show(effects[0]))
	}
	// Output:
	// Reserving SendReserve Node:node-1
	// Committing WriteCommit
	// Reading ReadRecord
	// Committed AckCommitted Revision:7
}
