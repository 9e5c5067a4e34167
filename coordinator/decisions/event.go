package decisions

import (
	"fmt"
	"slices"
	"strings"

	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/resource"
)

// Sleep says that a class has failed: its units are passed over until an Event may
// help it.
type Sleep struct {
	Class int  `json:"class"`
	Code  Code `json:"code"`
	// Trees are the quota trees that the class is charged to, where it waits for
	// one of them or would borrow.
	Trees []string `json:"trees,omitempty"`
	// Borrows: the class would borrow quota, so some units of lower priority keep their
	// places. Of NoVictims and ClaimFails.
	Borrows bool `json:"borrows,omitempty"`
	// Quota: whatever Code is, more quota of a model may help the class, too.
	Quota bool `json:"quota,omitempty"`
	// Subject is the quota that is short. Subject and Detail, with numbers, are for
	// people; both are empty where the class failed for the same before.
	Subject string `json:"subject,omitempty"`
	Detail  string `json:"detail,omitempty"`
}

// Code is why a class sleeps.
type Code string

// The codes.
const (
	NoPlace    Code = "no-place"    // there is no room, and nobody may give way
	NoVictims  Code = "no-victims"  // there is no room, also not if others give way
	Leaving    Code = "leaving"     // there is room once others have left
	OverLimit  Code = "over-limit"  // of its namespace
	OverTree   Code = "over-tree"   // a quota tree refuses it
	ClaimFails Code = "claim-fails" // a quota tree admits it once others have given way, and they do not now
	OverQueue  Code = "over-queue"  // as many members of its queue run as may
)

// codes are those of package sched.
var codes = [...]Code{
	sched.NoPlace: NoPlace, sched.NoVictims: NoVictims, sched.Leaving: Leaving, sched.OverLimit: OverLimit, sched.OverTree: OverTree, sched.Claim: ClaimFails, sched.OverQueue: OverQueue,
}

// Event says that something has happened that may help classes that sleep. It is
// logged only while there is one that it may concern.
type Event struct {
	Kind EventKind `json:"kind"`
	// Nodes are the node that grew, or those on which the unit that can give way
	// has something.
	Nodes     []Free   `json:"nodes,omitempty"`
	Priority  int32    `json:"priority,omitempty"`  // of a unit that can give way
	Namespace string   `json:"namespace,omitempty"` // of which a charge has ended, or of the neighbour
	Trees     []string `json:"trees,omitempty"`     // of which a charge has ended, or to which one has begun
	// Neighbour is the unit that has come to nodes, is leaving them or has left.
	Neighbour *Subject `json:"neighbour,omitempty"`
	Queue     string   `json:"queue,omitempty"` // of which a member has ended, or may run beside the others
}

// EventKind is the kind of an event.
type EventKind string

// The kinds of events.
const (
	Grew      EventKind = "grew"      // a node has more to give, or takes work again
	Freed     EventKind = "freed"     // a charge to a namespace and to trees has ended
	Charged   EventKind = "charged"   // a charge to trees has begun: they may name others for a claim
	Moved     EventKind = "moved"     // a charge to trees has begun, and has moved others there: they may name those
	Evictable EventKind = "evictable" // a unit can give way that could not
	Unleft    EventKind = "unleft"    // a unit that was leaving has left, or cannot
	Due       EventKind = "due"       // a time has come from which on more may give way in trees
	Neighbour EventKind = "neighbour" // a unit has come to nodes, is leaving them or has left
	Regrouped EventKind = "regrouped" // nodes have come, gone or other labels
	Emptied   EventKind = "emptied"   // a member of a queue has ended, or may run beside the others
	All       EventKind = "all"       // a rare change that may help everybody
)

// eventKinds are those of package sched.
var eventKinds = [...]EventKind{
	sched.KindGrew: Grew, sched.KindFreed: Freed, sched.KindCharged: Charged, sched.KindMoved: Moved, sched.KindEvictable: Evictable, sched.KindUnleft: Unleft, sched.KindDue: Due, sched.KindAll: All,
	sched.KindNeighbour: Neighbour, sched.KindRegrouped: Regrouped, sched.KindQueue: Emptied,
}

// Free is what a node has to give when an event happens.
type Free struct {
	Node   resource.NodeID     `json:"node"`
	Closed bool                `json:"closed,omitempty"` // it takes no work
	CPU    resource.Millicores `json:"cpu,omitempty"`
	Cores  int                 `json:"cores,omitempty"` // all threads of which are free
	Memory resource.Bytes      `json:"memory,omitempty"`
	GPU    resource.Milli      `json:"gpu,omitempty"`        // of healthy devices
	GPUs   int                 `json:"gpus,omitempty"`       // healthy ones that are wholly free
	Share  resource.Milli      `json:"largestGPU,omitempty"` // most that is free of one healthy device
	// Hugepages and MIG are of the sizes and profiles that classes ask for.
	Hugepages []FreePages `json:"hugepages,omitempty"`
	MIG       []FreeMIG   `json:"mig,omitempty"`
	// Full: the node has as many members as it takes. Counts are its free counted
	// resources, where classes ask for some; a name that is left out is free nowhere.
	Full    bool                  `json:"full,omitempty"`
	Counts  []resource.CountGrant `json:"counts,omitempty"`
	Counted bool                  `json:"counted,omitempty"` // Counts are given
	// Held is held there by units of lower priority than classes that sleep.
	Held []Held `json:"held,omitempty"`
}

// FreePages is the free hugepages of one size.
type FreePages struct {
	Size resource.Bytes `json:"size"`
	Free resource.Bytes `json:"free"`
}

// FreeMIG is how many more instances of a profile there can be.
type FreeMIG struct {
	Profile string `json:"profile"`
	Free    int    `json:"free"`
}

// Held is the sum of reservations of units below a priority, or of any.
type Held struct {
	Below  int32               `json:"below,omitempty"`
	Any    bool                `json:"any,omitempty"`
	CPU    resource.Millicores `json:"cpu,omitempty"`
	Memory resource.Bytes      `json:"memory,omitempty"`
	GPU    resource.Milli      `json:"gpu,omitempty"`
}

func (s *Sleep) check(version int) error {
	if s.Class < 1 {
		return fmt.Errorf("sleep.class: %d: want 1 or more", s.Class)
	}
	if s.Code == "" || !slices.Contains(codes[:], s.Code) {
		return fmt.Errorf("sleep.code: %q: not a code", s.Code)
	}
	if s.Borrows && (version < 5 || s.Code != NoVictims && s.Code != ClaimFails) {
		return fmt.Errorf("sleep.borrows: set, with code %q in format %d", s.Code, version)
	}
	return nil
}

func (e *Event) check(version int) error {
	if version < 3 && (e.Kind == Neighbour || e.Kind == Regrouped || e.Neighbour != nil) {
		return fmt.Errorf("event: not an event of format %d", version)
	}
	if version < 4 && (e.Kind == Emptied || e.Queue != "") {
		return fmt.Errorf("event: not an event of format %d", version)
	}
	if (e.Kind == Emptied) != (e.Queue != "") {
		return fmt.Errorf("event.queue: %q of an event %q", e.Queue, e.Kind)
	}
	if (e.Kind == Neighbour) != (e.Neighbour != nil) {
		return fmt.Errorf("event.neighbour: of an event %q", e.Kind)
	}
	if !slices.Contains(eventKinds[:], e.Kind) {
		return fmt.Errorf("event.kind: %q: not a kind of event", e.Kind)
	}
	for i, n := range e.Nodes {
		if version < 4 && (n.Full || n.Counted || len(n.Counts) > 0) {
			return fmt.Errorf("event.nodes[%d]: full, counts or counted: set, and format %d does not have them", i, version)
		}
		if len(n.Counts) > 0 && !n.Counted {
			return fmt.Errorf("event.nodes[%d].counted: false, and counts has %d", i, len(n.Counts))
		}
		if err := want("node", string(n.Node)); err != nil {
			return fmt.Errorf("event.nodes[%d].%w", i, err)
		}
	}
	if want := e.Kind == Grew; want && len(e.Nodes) != 1 || len(e.Nodes) > 0 && e.Kind != Grew && e.Kind != Evictable {
		return fmt.Errorf("event.nodes: %d of an event %q", len(e.Nodes), e.Kind)
	}
	return nil
}

// String says it in one line.
func (s *Sleep) String() string {
	text := string(s.Code)
	for _, part := range []string{s.Subject, s.Detail} {
		if part != "" {
			text += ": " + part
		}
	}
	return text
}

// String says it in one line.
func (e *Event) String() string {
	switch e.Kind {
	case Grew:
		return fmt.Sprintf("%s has more to give", e.Nodes[0].Node)
	case Freed:
		return fmt.Sprintf("a charge to namespace %s has ended", e.Namespace)
	case Charged:
		return fmt.Sprintf("a charge to %s has begun", strings.Join(e.Trees, ", "))
	case Moved:
		return fmt.Sprintf("a charge to %s has begun, and has moved others", strings.Join(e.Trees, ", "))
	case Evictable:
		return fmt.Sprintf("a unit of priority %d can give way", e.Priority)
	case Unleft:
		return "a unit that was leaving has left, or cannot"
	case Due:
		return "more may give way in quota trees"
	case Neighbour:
		return fmt.Sprintf("a unit of namespace %s has come to nodes, is leaving them or has left", e.Namespace)
	case Regrouped:
		return "nodes have come, gone or other labels"
	case Emptied:
		return fmt.Sprintf("more members of queue %s may run", e.Queue)
	case All:
	}
	return "a change that may help everybody"
}
