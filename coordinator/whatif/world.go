package whatif

import (
	"maps"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/sched"
)

// World is a scheduling state that the caller owns, such as a fork of the leader's.
// Answers leave it as it was.
type World struct{ sched.World }

// Snapshot is the scheduling state of a leader at one moment. It is immutable: any
// goroutine may make worlds of it, while the leader goes on.
type Snapshot struct {
	Nodes  *cluster.Snapshot // and the units that run on them
	Limits *quota.LimitsSnapshot
	Trees  *quota.Snapshot
	Forest string
	Closed map[string]bool // not changed any more
	MaxOps int
	// Waiting are the classes of units that wait and may be tried, in no order.
	Waiting []Waiting
}

// Waiting is a class of units that wait.
type Waiting struct {
	First sched.Unit
	Units int
	// Asleep is the code on which the class sleeps, 0 where it is to be tried.
	Asleep sched.Code
}

// World returns a fork of the snapshot.
func (p *Snapshot) World() *World {
	return &World{sched.World{
		State: p.Nodes.Fork(), Limits: p.Limits.Fork(), Trees: p.Trees.Fork(), Forest: p.Forest, Closed: maps.Clone(p.Closed), MaxOps: p.MaxOps,
	}}
}

// Ahead counts the units that wait in front of a place in the order, in classes that
// have not been tried yet: they may take what the unit would get.
func (p *Snapshot) Ahead(k queue.Key) int {
	n := 0
	for i := range p.Waiting {
		if c := &p.Waiting[i]; c.Asleep == 0 && queue.Compare(c.First.Key, k) < 0 {
			n += c.Units
		}
	}
	return n
}

// Ask answers all questions about a unit that waits.
func (w *World) Ask(u *Unit) Answer {
	a := Answer{Outcome: w.Try(u)}
	if a.Outcome.Action == sched.Wait {
		a.Never = w.Never(u)
		a.Hints, a.Trials, a.Cut = w.Help(u)
	}
	return a
}
