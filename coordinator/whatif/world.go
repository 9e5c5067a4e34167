package whatif

import (
	"maps"

	"github.com/musterd/muster/coordinator/cluster"
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
}

// World returns a fork of the snapshot.
func (p *Snapshot) World() *World {
	return &World{sched.World{
		State: p.Nodes.Fork(), Limits: p.Limits.Fork(), Trees: p.Trees.Fork(), Forest: p.Forest, Closed: maps.Clone(p.Closed), MaxOps: p.MaxOps,
	}}
}
