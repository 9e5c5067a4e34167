package whatif

import (
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/quota"
)

// World is a scheduling state that the caller owns, such as a fork of the leader's.
// Answers leave it as it was.
type World struct {
	State  *cluster.State
	Limits *quota.Limits
	Trees  *quota.Manager
	// Forest is the one forest of the trees: units are charged to all that they
	// name, or to none.
	Forest string
	// Closed are the trees whose deletion is under way: nobody is charged to them.
	Closed map[string]bool
	// MaxOps is the most operations of one transaction of the store.
	MaxOps int
}
