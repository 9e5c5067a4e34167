// Package record holds the coordinator's durable state as values: the keys and
// records of PROTOCOL.md section 1, their encoding, and the store's
// transactions, changes and definite answers. It decides how state is written
// down and which records are well-formed.
//
// It does not read or write: the interface to a store and the election are
// coordinator/store's. It does not decide what to write either: transactions
// are coordinator/txn's, order is coordinator/queue's, limits are
// coordinator/quota's.
package record

import (
	"encoding/json"

	"github.com/musterd/muster/resource"
)

// LostGraceSeconds is the grace of a lost member whose node comes back after all.
const LostGraceSeconds = 30

// FirstReplacement is the number of the unit that replaces the member 0 of a job; that of
// another member is greater by the member's index. No unit of a submission has such a
// number.
const FirstReplacement = 1_000_000

// Job is a job (JobKey): its document and its units.
type Job struct {
	UID       string            `json:"uid"`
	Namespace string            `json:"namespace"`
	Name      string            `json:"name"`
	Tenant    resource.TenantID `json:"tenant"`
	Phase     string            `json:"phase"`
	// Document is the submitted document, as in Unit.
	Document  json.RawMessage `json:"document"`
	Admitted  *Admitted       `json:"admitted,omitempty"` // as in Unit
	Units     []UnitPath      `json:"units,omitempty"`
	Made      *Actor          `json:"made,omitempty"` // as in Unit
	Cancelled *Cancellation   `json:"cancelled,omitempty"`
	// Shrunk is the end of the units beyond the document's parallelism, where there
	// are any; nil where the number was never lowered.
	Shrunk *Cancellation `json:"shrunk,omitempty"`
	// Boost is the greater priority that the units which wait have for a while.
	Boost *Boost `json:"boost,omitempty"`
	// Suspended is why the leader has suspended the job; "" where its owner has, and where
	// the job is not suspended.
	Suspended string `json:"suspended,omitempty"`
	// Met are the dependencies of the document that have come true, by their index,
	// ascending. The jobs may be gone.
	Met     []int  `json:"met,omitempty"`
	Created string `json:"created,omitempty"` // RFC 3339
	Ended   string `json:"ended,omitempty"`   // RFC 3339
	// EndedMillis is the instant of the end, as in Unit.
	EndedMillis int64  `json:"endedMillis,omitempty"`
	Reason      string `json:"reason,omitempty"`
	Message     string `json:"message,omitempty"`
}

// Boost is the priority of a job's units that wait, in place of the document's.
type Boost struct {
	Priority int32 `json:"priority"`
	// UntilMillis is the instant of its end, as Tx.EndingMillis is one.
	UntilMillis int64  `json:"untilMillis"`
	Reason      string `json:"reason,omitempty"`
	ApprovedBy  string `json:"approvedBy,omitempty"`
}

// Cancellation is a wish to end a job, or an allocation.
type Cancellation struct {
	Reason       string `json:"reason,omitempty"`
	GraceSeconds int64  `json:"graceSeconds"`
	// AskedMillis is the instant of the wish, as Tx.EndingMillis is one.
	AskedMillis int64 `json:"askedMillis,omitempty"`
	// Remove: the job's keys go once all its units have ended.
	Remove bool `json:"remove,omitempty"`
	// GraceKept as in Tx.
	GraceKept bool `json:"graceKept,omitempty"`
	// Background: no get and no list shows the job any more. Only with Remove.
	Background bool `json:"background,omitempty"`
}

// Order is the value of an OrderKey.
type Order struct {
	UnitUID resource.UnitUID `json:"unitUID"`
	// Waiting is why the unit waits, for readers; nil: it was not tried yet, or an
	// older version has written the record.
	Waiting *Waiting `json:"waiting,omitempty"`
}

// Waiting is why a unit waits. No decision rests on it.
type Waiting struct {
	Code    string `json:"code"` // the reason of the condition Scheduled
	Message string `json:"message,omitempty"`
	// SinceMillis is the instant since which the unit waits for this code, as
	// Tx.EndingMillis is one.
	SinceMillis int64 `json:"sinceMillis,omitempty"`
	// Refusals counts the attempts in a row that came to nothing, and NextMillis is
	// the instant of the next; 0 where the unit waits for no instant.
	Refusals   int   `json:"refusals,omitempty"`
	NextMillis int64 `json:"nextMillis,omitempty"`
	// Never is why the unit can never run, in a sentence: "" where it can, or that is
	// not known. NeverCode is the kind of the reason, NeverSinceMillis the instant
	// since which it is so.
	Never            string `json:"never,omitempty"`
	NeverCode        string `json:"neverCode,omitempty"`
	NeverSinceMillis int64  `json:"neverSinceMillis,omitempty"`
}

// Request is what a request id stands for (RequestKey).
type Request struct {
	// Object is the key of what the request made: a UnitPath.Key or a JobKey.
	Object string `json:"object"`
	UID    string `json:"uid"`
	// DocumentHash tells a repeated request from another one with its id.
	DocumentHash string `json:"documentHash"`
}

// MaxRegistrations bounds NodeSpec.Registrations.
const MaxRegistrations = 8

// Quota is what an operator set: a resource quota, a tree, a forest or
// the groups of a namespace (QuotaKey).
type Quota struct {
	UID string `json:"uid"`
	// Namespace of a resource quota; the others are in none.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Document is the object as it was submitted: its kind, what of its
	// metadata is the operator's, and its specification.
	Document json.RawMessage `json:"document"`
	// Former are former names of a tree's nodes, each with its name of today:
	// records of units that run name a group as it was at their commit.
	Former  map[string]string `json:"former,omitempty"`
	Created string            `json:"created,omitempty"` // RFC 3339
	// ChangedMillis is the instant of the last change of a resource quota, as
	// Tx.EndingMillis is one; 0 in a record of an older version.
	ChangedMillis int64 `json:"changedMillis,omitempty"`
}

// QuotaLimit is a namespace's hard limit (QuotaLimits). It is only read.
type QuotaLimit struct {
	Namespace string            `json:"namespace"`
	Tenant    resource.TenantID `json:"tenant"`
	// Hard bounds the sum of charges per resource, in base units; a resource
	// that is not named has no limit.
	Hard resource.Vector `json:"hard,omitempty"`
}

// LeaderAddress is the value of a leader's key: who it is and where it serves.
type LeaderAddress struct {
	ID   string `json:"id"`
	GRPC string `json:"grpc,omitempty"` // host:port
	REST string `json:"rest,omitempty"` // host:port
}

// FencedFor begins the reason of a record that a fence has made; the node's name
// follows.
const FencedFor = "fenced for "
