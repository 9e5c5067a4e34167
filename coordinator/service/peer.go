package service

import (
	"context"

	"github.com/musterd/muster/api"
)

// Leader is the coordinator that leads.
type Leader struct {
	ID string
	// Address is where its REST API is: "host:port" for plain HTTP, or a URL.
	Address string
	// GRPC is where its gRPC API is, "host:port"; "" where unknown.
	GRPC string
	// Epoch distinguishes one term from the next.
	Epoch int64
	// Own: this coordinator leads, and serves.
	Own bool
}

// Peer knows the other coordinators. Its methods may be called from any
// goroutine.
type Peer interface {
	// Leader waits until a coordinator leads, at most until ctx ends; a leader
	// that is known already is returned even if ctx has ended.
	Leader(ctx context.Context) (Leader, error)
	// Reach waits until reads here are not older than a revision.
	Reach(ctx context.Context, revision int64) error
}

// Roster lists the coordinators.
type Roster interface {
	// Self is this coordinator.
	Self() api.Coordinator
	// Candidates are all that lead or would, the leader first, as far as the
	// store lists them.
	Candidates() []api.Coordinator
}
