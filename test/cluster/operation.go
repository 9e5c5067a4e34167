package cluster

import (
	"errors"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/invariant"
)

// Kind is what a client asked for.
type Kind string

// The kinds of operations.
const (
	CreateAllocation Kind = "create allocation"
	CreateJob        Kind = "create job"
	Get              Kind = "get"
	Delete           Kind = "delete"
	Evict            Kind = "evict"
	SetQuota         Kind = "set quota"
)

// Outcome is what a client learned.
type Outcome = invariant.Outcome

// The outcomes.
const (
	Done    = invariant.Done
	Refused = invariant.Refused
	Unknown = invariant.Unknown
)

// Operation is one request, with all its repetitions under one idempotency key,
// as its client saw it.
type Operation struct {
	Client          int
	Kind            Kind
	Namespace, Name string
	GPUs, Members   int // asked for; GPUs of each member
	// Call and Return are times since the cluster's start, by the monotonic
	// clock of the one process that all clients are in.
	Call, Return time.Duration
	Outcome      Outcome
	Repeats      int    // how often it was sent again for want of an answer
	Code         int    // of a refusal
	Message      string // of a refusal, or of the last try
	Phase        api.Phase
	Transaction  resource.TxID // of an allocation that runs
	Devices      []string      // "node uuid", of an allocation that runs
}

// finish takes over the answer's error.
func (o *Operation) finish(at time.Duration, err error) {
	o.Return = at
	var refusal *api.Status
	switch {
	case err == nil:
		o.Outcome = Done
		return
	case !errors.Is(err, ErrUnknown) && errors.As(err, &refusal):
		o.Outcome, o.Code = Refused, refusal.Code
	default:
		o.Outcome = Unknown
	}
	o.Message = err.Error()
}

// see takes over what an allocation has.
func (o *Operation) see(a *api.Allocation) {
	o.Phase, o.Transaction = a.Status.Phase, a.Status.Transaction
	if a.Status.Assignment == nil {
		return
	}
	for _, g := range a.Status.Assignment.GPUs {
		o.Devices = append(o.Devices, string(a.Status.NodeID)+" "+g.UUID)
	}
}
