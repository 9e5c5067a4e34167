package api

import (
	"fmt"

	"github.com/musterd/muster/resource"
)

// Status is the answer to a request that is refused or has failed. Status is an
// error: services return it, and the REST layer writes it as it is.
type Status struct {
	// Kind is Status.
	Kind string `json:"kind" oneof:"Status"`
	// Code is the HTTP status code.
	Code int `json:"code" example:"422"`
	// Reason is the name of the code, or a more exact name, for programs.
	Reason string `json:"reason" example:"Unprocessable"`
	// Message names the refused field, its value, the reason and the numbers.
	Message string `json:"message" example:"spec.parallelism: 0 is outside 1..4096"`
	// Details are the constraints behind a refusal.
	Details []resource.Reason `json:"details,omitempty"`
	// Causes are all faults of the document that is refused, the first of which
	// is Message; absent where there is one fault without a field.
	Causes []Cause `json:"causes,omitempty"`
	// RetryAfterSeconds is the time after which the same request may succeed, as
	// the header Retry-After says.
	RetryAfterSeconds int `json:"retryAfterSeconds,omitempty" unit:"s" example:"1"`
	// RequestID is the header X-Request-Id of the request, as the log of the
	// coordinator has it.
	RequestID string `json:"requestId,omitempty" example:"5f0c1a7e"`
}

// Cause is one fault of a document.
type Cause struct {
	// Field is the path of the field in the document.
	Field string `json:"field,omitempty" example:"spec.parallelism"`
	// Message names the value, the reason and the numbers.
	Message string `json:"message" example:"0 is outside 1..4096"`
}

// Reasons of a 503 beside its code. NotLeader, StoreOutOfSpace, StoreReadOnly: nothing was
// done; another coordinator has to be asked, or the store (etcd) takes deletions alone, or
// no change. The others: the request may have been done, as the leader went meanwhile, or
// leads and its answer did not arrive, or the store does not answer.
const (
	NotLeader                                         = "NotLeader"
	LeaderLost                                        = "LeaderLost"
	LeaderUnreachable                                 = "LeaderUnreachable"
	StoreOutOfSpace, StoreReadOnly, StoreNotAnswering = "StoreOutOfSpace", "StoreReadOnly", "StoreNotAnswering"
)

// TooManyObjects is the reason of a 429 for a namespace with as many objects as allowed.
const TooManyObjects = "TooManyObjects"

// SlowReader is the reason of a 429 that ends a watch: its reader has not taken the
// events in time. The client goes on after the last event that it has.
const SlowReader = "SlowReader"

// Error returns the message.
func (s *Status) Error() string { return s.Message }

// Because returns the Status with a more exact reason than that of its code.
func (s *Status) Because(reason string) *Status {
	s.Reason, s.RetryAfterSeconds = reason, max(s.RetryAfterSeconds, map[string]int{TooManyObjects: 30}[reason])
	return s
}

// Errorf builds a Status with the reason of the code; 429 and 503 may be asked again in 1 s.
func Errorf(code int, format string, args ...any) *Status {
	return &Status{Kind: "Status", Code: code, Reason: reasonOf(code), Message: fmt.Sprintf(format, args...), RetryAfterSeconds: map[int]int{429: 1, 503: 1}[code]}
}
