package edit

import (
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// Write is one change of a key, and the steps that follow once its outcome is known.
type Write struct {
	Op  record.Op
	Rev resource.Revision // at which the key must be; 0: absent
	UID string            // of the object
	// Landed takes the change over, once it is durable.
	Landed func(rev resource.Revision)
	// Result is the answer to the client, once the change is durable.
	Result func() any
	// Also are writes of the same Txn, of which Op, Rev and Landed alone are set.
	Also []Write
	// Failed, where not nil, takes back the steps that were taken before the write.
	Failed func()
	// WakesNobody: no unit that waits may run because of the change.
	WakesNobody bool
	// MovesCharges: new units of a namespace are charged to other groups.
	MovesCharges bool
	// Pauses names the namespace whose submissions wait for the outcome; "" = none.
	Pauses string
	// Queue names the queue whose rules change; "" = none.
	Queue string
	// Notes are faults that do not refuse the change, for the log.
	Notes []Note
}

// Note is a line for the log: an event, and keys with their values in turn.
type Note struct {
	Event string
	Args  []any
}
