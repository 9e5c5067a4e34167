package api

import "net/http"

// Reasons of a 409 that say more than its code. With Conflict, the reason that a
// 409 has by itself, another change was faster: read the object again, then
// repeat the change.
const (
	// AlreadyExists: the name is taken.
	AlreadyExists = "AlreadyExists"
	// FailedPrecondition: the state of the object forbids the request. The
	// request may be repeated once that state has changed.
	FailedPrecondition = "FailedPrecondition"
)

// Outcome is one row of the table that maps the reasons of refusals to the codes
// of HTTP and of gRPC.
type Outcome struct {
	Reason string
	HTTP   int
	// GRPC is the canonical name of the code (google.rpc.Code).
	GRPC string
}

// Outcomes is the table. The first row of an HTTP code, and of a gRPC code, is
// the reason of a refusal that says no more than its code.
func Outcomes() []Outcome {
	return []Outcome{
		{"BadRequest", http.StatusBadRequest, "INVALID_ARGUMENT"},
		{"Unauthorized", http.StatusUnauthorized, "UNAUTHENTICATED"},
		{"Forbidden", http.StatusForbidden, "PERMISSION_DENIED"},
		{"NotFound", http.StatusNotFound, "NOT_FOUND"},
		{"NotImplemented", http.StatusNotImplemented, "UNIMPLEMENTED"},
		{"MethodNotAllowed", http.StatusMethodNotAllowed, "UNIMPLEMENTED"},
		{"NotAcceptable", http.StatusNotAcceptable, "INVALID_ARGUMENT"},
		{"Conflict", http.StatusConflict, "ABORTED"},
		{AlreadyExists, http.StatusConflict, "ALREADY_EXISTS"},
		{FailedPrecondition, http.StatusConflict, "FAILED_PRECONDITION"},
		{"Expired", http.StatusGone, "OUT_OF_RANGE"},
		{"TooManyRequests", http.StatusTooManyRequests, "RESOURCE_EXHAUSTED"},
		{TooManyObjects, http.StatusTooManyRequests, "RESOURCE_EXHAUSTED"},
		{SlowReader, http.StatusTooManyRequests, "RESOURCE_EXHAUSTED"},
		{"RequestEntityTooLarge", http.StatusRequestEntityTooLarge, "RESOURCE_EXHAUSTED"},
		{"UnsupportedMediaType", http.StatusUnsupportedMediaType, "INVALID_ARGUMENT"},
		{"Unprocessable", http.StatusUnprocessableEntity, "INVALID_ARGUMENT"},
		{"UpgradeRequired", http.StatusUpgradeRequired, "INVALID_ARGUMENT"},
		{"InternalError", http.StatusInternalServerError, "INTERNAL"},
		{"ServiceUnavailable", http.StatusServiceUnavailable, "UNAVAILABLE"},
		{NotLeader, http.StatusServiceUnavailable, "UNAVAILABLE"},
		{LeaderLost, http.StatusServiceUnavailable, "UNAVAILABLE"},
		{LeaderUnreachable, http.StatusServiceUnavailable, "UNAVAILABLE"},
		{"Timeout", http.StatusGatewayTimeout, "DEADLINE_EXCEEDED"},
		{"Canceled", statusClientClosedRequest, "CANCELLED"},
	}
}

// statusClientClosedRequest is for the table alone: a client that has gone gets
// no HTTP answer.
const statusClientClosedRequest = 499

// internal is the row of every code without a row.
var internal = Outcome{"InternalError", http.StatusInternalServerError, "INTERNAL"}

// OutcomeOf is the row of a refusal: that of its reason, else the first one of
// its code. A refusal without a row is an internal error.
func OutcomeOf(s *Status) Outcome {
	byCode := internal
	for _, row := range Outcomes() {
		switch {
		case row.HTTP != s.Code:
		case row.Reason == s.Reason:
			return row
		case byCode == internal:
			byCode = row
		}
	}
	return byCode
}

// OutcomeOfGRPC is the first row of a gRPC code, by its canonical name.
func OutcomeOfGRPC(code string) Outcome {
	for _, row := range Outcomes() {
		if row.GRPC == code {
			return row
		}
	}
	return internal
}

// reasonOf is the reason of a refusal that says no more than its code.
func reasonOf(code int) string { return OutcomeOf(&Status{Code: code}).Reason }
