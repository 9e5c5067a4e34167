package api

import (
	"fmt"
	"net/http"

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
}

// Reasons of a 503 that say more than its code. NotLeader: nothing was done,
// another coordinator has to be asked. LeaderLost: the leader went while the
// request was under way, which may have been done. LeaderUnreachable: the leader
// leads, but its answer did not arrive; the request may have been done.
const (
	NotLeader         = "NotLeader"
	LeaderLost        = "LeaderLost"
	LeaderUnreachable = "LeaderUnreachable"
)

// TooManyObjects is the reason of a 429 that does not pass by itself: the
// namespace has as many objects stored as it may have.
const TooManyObjects = "TooManyObjects"

// Error returns the message.
func (s *Status) Error() string { return s.Message }

// reasonOf names the documented status codes.
func reasonOf(code int) string {
	switch code {
	case http.StatusBadRequest:
		return "BadRequest"
	case http.StatusUnauthorized:
		return "Unauthorized"
	case http.StatusForbidden:
		return "Forbidden"
	case http.StatusNotFound:
		return "NotFound"
	case http.StatusMethodNotAllowed:
		return "MethodNotAllowed"
	case http.StatusConflict:
		return "Conflict"
	case http.StatusRequestEntityTooLarge:
		return "RequestEntityTooLarge"
	case http.StatusUnsupportedMediaType:
		return "UnsupportedMediaType"
	case http.StatusUnprocessableEntity:
		return "Unprocessable"
	case http.StatusTooManyRequests:
		return "TooManyRequests"
	case http.StatusNotImplemented:
		return "NotImplemented"
	case http.StatusServiceUnavailable:
		return "ServiceUnavailable"
	default:
		return "InternalError"
	}
}

// Errorf builds a Status with the reason that belongs to the code.
func Errorf(code int, format string, args ...any) *Status {
	return &Status{Kind: "Status", Code: code, Reason: reasonOf(code), Message: fmt.Sprintf(format, args...)}
}
