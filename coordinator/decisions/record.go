// Package decisions is the leader's account of its choices: with each
// placement its position in the order, who stood ahead and why they were passed
// over, so that priority order can be verified from the log alone. It records
// and checks; it decides nothing, and nothing is recovered from it: losing it
// loses evidence, no allocation.
//
// # What is logged
//
// The order is logged as it changes (Wait, Leave). A unit of the order is held,
// for a reason of its own (Hold), or may be tried with its class (Offer). A class
// is a set of units that are admitted, placed and refused together
// (coordinator/sched); a Class says what they ask for. One Sleep says that a class
// has failed, and why, for all units of it; and one Event says that something has
// happened that may help classes that sleep, with all that the rules of wake-up
// look at. The log never lists the classes that an event wakes: the Checker finds
// them by rules of its own. So a queue costs one line when it is first passed
// over, and none per commit, however long it is. A State, the whole order at once,
// begins each term and each file.
//
// Pure: no clock, no I/O. Package logfile writes and reads files.
package decisions

import (
	"slices"

	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/resource"
)

// Record is one line. Exactly one of its parts is set. The parts and fields of
// format 1 alone are read, and never written; see format1.go.
type Record struct {
	Seq uint64 `json:"seq"`          // counts the term's records from 1, without holes
	At  int64  `json:"at,omitempty"` // Unix milliseconds on the leader's clock, for people

	State  *State  `json:"state,omitempty"`
	Class  *Class  `json:"class,omitempty"`
	Node   *Node   `json:"node,omitempty"`
	Wait   *Wait   `json:"wait,omitempty"`
	Offer  *Offer  `json:"offer,omitempty"`
	Hold   *Hold   `json:"hold,omitempty"`
	Sleep  *Sleep  `json:"sleep,omitempty"`
	Event  *Event  `json:"event,omitempty"`
	Leave  *Leave  `json:"leave,omitempty"`
	Place  *Place  `json:"place,omitempty"`
	Commit *Commit `json:"commit,omitempty"`
	Abort  *Abort  `json:"abort,omitempty"`
	End    *End    `json:"end,omitempty"`
	Gap    *Gap    `json:"gap,omitempty"`

	Restored *Restored `json:"restored,omitempty"`

	Skip *Skip `json:"skip,omitempty"` // of format 1
}

// Order is a unit's place in the order, but for its path.
type Order struct {
	Priority int32          `json:"priority,omitempty"`
	Epoch    resource.Epoch `json:"epoch"`
	Counter  uint64         `json:"counter"`
}

func orderOf(k queue.Key) Order { return Order{k.Priority, k.Epoch, k.Counter} }

func (o Order) key(path string) queue.Key {
	return queue.Key{Priority: o.Priority, Epoch: o.Epoch, Counter: o.Counter, Path: path}
}

// State is all that the records before it amount to. What runs is not part of
// it.
type State struct {
	Epoch    resource.Epoch `json:"epoch"`
	Begins   bool           `json:"begins,omitempty"`   // the term does: nothing before matters
	Classes  []StateClass   `json:"classes,omitempty"`  // that have units
	Evidence []Evidence     `json:"evidence,omitempty"` // of units that are held
	Waiting  []Waiting      `json:"waiting,omitempty"`  // in order
	InFlight []InFlight     `json:"inFlight,omitempty"`

	Generation uint64 `json:"generation,omitempty"` // of format 1
}

// StateClass is a class that has units, and why it sleeps.
type StateClass struct {
	Class
	Sleep *Sleep `json:"sleep,omitempty"` // nil while it is awake
}

// Waiting is one unit in the order.
type Waiting struct {
	Unit string `json:"unit"`
	Order
	Class int `json:"class,omitempty"` // of a unit that may be tried
	Why   int `json:"why,omitempty"`   // in State.Evidence, from 1, of a unit that is held

	Tried uint64 `json:"tried,omitempty"` // of format 1: the generation of the last try, where the evidence is of one
}

// InFlight is a placement that is neither committed nor aborted.
type InFlight struct {
	Tx   resource.TxID `json:"tx"`
	Unit string        `json:"unit"`
	Order
	Kind    Kind      `json:"kind"`
	Devices []Devices `json:"devices,omitempty"`
}

// Wait puts a unit into the order.
type Wait struct {
	Unit string `json:"unit"`
	Order
}

// Offer says that a unit of the order may be tried, with its class.
type Offer struct {
	Unit  string `json:"unit"`
	Class int    `json:"class"`
}

// Hold says that a unit of the order cannot be tried, for a reason of its own.
type Hold struct {
	Unit     string   `json:"unit"`
	Evidence Evidence `json:"why"`
}

// Leave takes a unit that was not placed out of the order.
type Leave struct {
	Unit string `json:"unit"`
}

// Kind is what a placement does to others.
type Kind string

// The kinds. Plain is for free devices; a Preemption evicts units of lower
// priority; a Claim takes back what quota lent, whatever the priorities.
const (
	Plain      Kind = "plain"
	Preemption Kind = "preemption"
	Claim      Kind = "claim"
)

// Victim is a unit that gives way.
type Victim struct {
	Unit     string `json:"unit"`
	Priority int32  `json:"priority"`
}

// Devices are GPUs of one node, whole ones, ascending.
type Devices struct {
	Node resource.NodeID `json:"node"`
	GPUs []int           `json:"gpus"`
}

// Place takes a unit out of the order and begins its transaction. The counts
// are of the units ahead of it at that moment.
type Place struct {
	Unit     string        `json:"unit"`
	Tx       resource.TxID `json:"tx"`
	Kind     Kind          `json:"kind"`
	Position int           `json:"position"` // in the order, 1 for the first
	Ahead    Counts        `json:"ahead,omitzero"`
	// Adopted: an earlier leader chose it, and it goes on. Who is ahead now
	// was not passed over.
	Adopted bool      `json:"adopted,omitempty"`
	Victims []Victim  `json:"victims,omitempty"`
	Devices []Devices `json:"devices,omitempty"` // planned

	// Of format 1. Fresh is how many of those whose evidence is of a generation
	// were tried at this one; Stale names the first of the others.
	Generation uint64   `json:"generation,omitempty"`
	Fresh      int      `json:"fresh,omitempty"`
	Stale      []string `json:"stale,omitempty"`
}

// Commit is the point at which a placement became durable.
type Commit struct {
	Tx       resource.TxID     `json:"tx"`
	Unit     string            `json:"unit"`
	Revision resource.Revision `json:"revision"`
}

// Abort is the end of a placement that came to nothing. The Events that say so to
// the classes that sleep come after it.
type Abort struct {
	Tx resource.TxID `json:"tx"`

	Generation uint64 `json:"generation,omitempty"` // of format 1: what it held is free from the next on
}

// End is the end of a unit that ran. The Events that say so to the classes that
// sleep come after it.
type End struct {
	Tx     resource.TxID `json:"tx"`
	Unit   string        `json:"unit"`
	Reason string        `json:"reason,omitempty"`

	Generation uint64 `json:"generation,omitempty"` // of format 1: what it held is free from the next on
}

// Restored says that the leader has noticed that the store was restored from a
// backup: what was decided in earlier terms may not have been, and may be again.
// A term says so once; the next one of another coordinator may say it too.
type Restored struct {
	Epoch resource.Epoch `json:"epoch"` // of the term that says so
	// By is who noticed: "coordinator ID" by what the store answered, "node ID"
	// by what its agent had heard of the store.
	By string `json:"by"`
	// Before and After are the store's revisions, 0 where they are not known; it
	// may have outgrown Before by the time it is noticed.
	Before resource.Revision `json:"before,omitempty"`
	After  resource.Revision `json:"after,omitempty"`
	Detail string            `json:"detail,omitempty"`
}

// Gap stands for records that were lost because the writer was behind. Its Seq
// is that of the last one.
type Gap struct {
	Lost uint64 `json:"lost"`
}

// Devices of two lists that are the same, as "node/gpu"; "" for none.
func shared(a, b []Devices) (resource.NodeID, int, bool) {
	for _, x := range a {
		for _, y := range b {
			if x.Node != y.Node {
				continue
			}
			for _, gpu := range x.GPUs {
				if slices.Contains(y.GPUs, gpu) {
					return x.Node, gpu, true
				}
			}
		}
	}
	return "", 0, false
}
