package record

import (
	"slices"
	"strings"
)

// EndKind is the kind of an end that the work of a unit has not decided by itself. It is
// also the reason that the condition Complete or Failed of a job has.
type EndKind string

// The kinds. Readers keep a word that they do not know.
const (
	// DeadlineExceeded: activeDeadlineSeconds have passed.
	DeadlineExceeded EndKind = "DeadlineExceeded"
	// RetryBeyondDeadline: a member has failed, and the next try would start after
	// activeDeadlineSeconds.
	RetryBeyondDeadline EndKind = "RetryBeyondDeadline"
	// TTLExpired: the ttl has passed.
	TTLExpired EndKind = "TTLExpired"
	// GangTimeout: members that start together had no place in time.
	GangTimeout EndKind = "GangTimeout"
	// WaitTimeout: another unit had no place in time.
	WaitTimeout EndKind = "WaitTimeout"
	// DependencyNeverSatisfied: a dependency of the job cannot come true any more.
	DependencyNeverSatisfied EndKind = "DependencyNeverSatisfied"
	// Idle: the GPUs of the job did nothing for the time that its namespace allows.
	Idle EndKind = "Idle"
)

// inReasons are the kinds that older versions have written as the first word of the
// reason alone.
var inReasons = []EndKind{DeadlineExceeded, TTLExpired, GangTimeout, WaitTimeout}

// kindIn is the kind of an end in a record of an older version, "" for none.
func kindIn(reason string) EndKind {
	word, _, cut := strings.Cut(reason, ": ")
	if kind := EndKind(word); cut && slices.Contains(inReasons, kind) {
		return kind
	}
	return ""
}

// EndedBy is the kind of the unit's end, "" where its work or its owner has decided the
// end, or where the unit has not ended. It reads records of older versions, too.
func (u *Unit) EndedBy() EndKind {
	switch {
	case u.Phase != "Succeeded" && u.Phase != "Failed":
		return ""
	case u.End != "":
		return u.End
	}
	return kindIn(u.Reason)
}

// EndedBy is the kind of the end that an outcome has, as that of a unit.
func (o *Outcome) EndedBy() EndKind {
	switch {
	case o.Phase != "Succeeded" && o.Phase != "Failed":
		return ""
	case o.End != "":
		return o.End
	}
	return kindIn(o.Message)
}
