// Package strict decodes JSON documents that people write into Go structs, and
// says exactly where one is wrong.
//
// It differs from encoding/json in its refusals: a field the type does not
// have, a field given twice, text after the document, invalid UTF-8, a number
// that does not fit, a control character. Every error carries the path of the field
// (spec.tolerations[0].key). It decides shape only: whether a value makes
// sense is the caller's business.
//
// Standard library only: no I/O, no clock, no goroutine.
package strict

import "fmt"

// Problem distinguishes malformed documents from well-formed ones whose numbers do
// not fit.
type Problem uint8

const (
	// Malformed: not JSON, an unknown or repeated field, a wrong type.
	Malformed Problem = iota
	// OutOfRange: a number beyond the range of its field.
	OutOfRange
	// Unprintable: a character outside of the class of a text (package api/text).
	Unprintable
)

// Error is a refusal. Path is "" for the document as a whole.
type Error struct {
	Problem Problem
	Path    string
	Message string
}

// Error returns "path: message".
func (e *Error) Error() string {
	if e.Path == "" {
		return e.Message
	}
	return fmt.Sprintf("%s: %s", e.Path, e.Message)
}
