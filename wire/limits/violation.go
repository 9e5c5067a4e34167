package limits

import (
	"fmt"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Violation names the field of a message that is beyond its limit. Its texts
// are clipped, however long the value is.
type Violation struct {
	// Message is the full name of the message that was received.
	Message string
	// Field is the path of the field from there, e.g. "members[2].assignment.gpus[0].uuid";
	// "" is the message as a whole.
	Field string
	// Problem names the value or its size, and the limit.
	Problem string
}

// Error is e.g. `muster.v1.Reply: tx: 300 bytes, more than 256`.
func (v *Violation) Error() string {
	if v.Field == "" {
		return v.Message + ": " + v.Problem
	}
	return v.Message + ": " + v.Field + ": " + v.Problem
}

// GRPCStatus is InvalidArgument.
func (v *Violation) GRPCStatus() *status.Status { return status.New(codes.InvalidArgument, v.Error()) }

// longestPath bounds a violation's path: the names of our fields are short, but
// maps' keys are the sender's.
const longestPath = 256

// in returns the violation as seen from the message that has the field.
func (v *Violation) in(field string) *Violation {
	switch {
	case len(v.Field) > longestPath:
	case v.Field == "" || v.Field[0] == '[':
		v.Field = field + v.Field
	default:
		v.Field = field + "." + v.Field
	}
	return v
}

func (v *Violation) at(index int) *Violation { return v.in("[" + strconv.Itoa(index) + "]") }

func problem(format string, args ...any) *Violation {
	return &Violation{Problem: fmt.Sprintf(format, args...)}
}

// shown is a value as an error quotes it, at most 64 bytes of it.
func shown(s string) string { return strconv.Quote(Plain(s, 64)) }
