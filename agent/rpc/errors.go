package rpc

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/grant"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/wire"
)

// Errors that a call can end with; each is mapped to one status code.
var (
	// ErrWrongCluster: the leader leads another cluster.
	ErrWrongCluster = errors.New("wrong cluster")
	// ErrWrongNode: the call is for another node.
	ErrWrongNode = errors.New("wrong node")
	// ErrBadMessage: a message breaks its own rules.
	ErrBadMessage = errors.New("bad message")
	// ErrSlowLeader: the leader does not read its answers.
	ErrSlowLeader = errors.New("leader too slow")
	// ErrReplaced: a newer session of a leader took over.
	ErrReplaced = errors.New("session replaced")
	// ErrHostChanged: the host has other devices than the session began with.
	ErrHostChanged = errors.New("the host's devices have changed")
	// ErrStopping: the agent is shutting down.
	ErrStopping = errors.New("agent is stopping")
	// ErrFailed: the agent's journal failed. It answers nothing more, and
	// returns under a new incarnation once it can write.
	ErrFailed = errors.New("agent has failed")
)

// StaleEpochError refuses a leader of an older epoch than the agent has seen.
type StaleEpochError struct{ Got, Highest resource.Epoch }

// Error names both epochs.
func (e *StaleEpochError) Error() string {
	return fmt.Sprintf("epoch %d is over: this agent has seen epoch %d", e.Got, e.Highest)
}

// reason is the text for the leader in the status' details: it may have to be
// elected anew, beyond the epoch that is wanted.
func (e *StaleEpochError) reason() *musterv1.Reason {
	return wire.ToReasons([]resource.Reason{{
		Code: resource.ReasonStaleEpoch, Want: int64(e.Highest), Have: int64(e.Got), Detail: e.Error(),
	}})[0]
}

// statusOf is the one map from errors to status codes.
func statusOf(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	var stale *StaleEpochError
	code := codes.Internal
	switch {
	case errors.As(err, &stale), errors.Is(err, ErrWrongCluster):
		code = codes.FailedPrecondition
	case errors.Is(err, ErrWrongNode), errors.Is(err, ErrBadMessage):
		code = codes.InvalidArgument
	case errors.Is(err, grant.ErrNoLog):
		code = codes.NotFound
	case execCode(err) != codes.OK:
		code = execCode(err)
	case errors.Is(err, ErrSlowLeader):
		code = codes.ResourceExhausted
	case errors.Is(err, ErrReplaced), errors.Is(err, ErrHostChanged):
		code = codes.Aborted
	case errors.Is(err, ErrStopping):
		code = codes.Unavailable
	case errors.Is(err, ErrFailed):
		code = codes.DataLoss
	case errors.Is(err, context.Canceled):
		code = codes.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		code = codes.DeadlineExceeded
	}
	s := status.New(code, err.Error())
	if stale != nil {
		if detailed, err := s.WithDetails(stale.reason()); err == nil {
			s = detailed
		}
	}
	return s.Err()
}
