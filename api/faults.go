package api

import "slices"

// MaxFaults bounds the faults of one document that a refusal names.
const MaxFaults = 32

// allFaults joins the refusals of one document, in the order of its fields: nil where
// there is none, else the first refusal with the causes of all of them. A refusal is
// never changed, since it may be shared.
func allFaults(found ...*Status) *Status {
	var first *Status
	var causes []Cause
	for _, s := range found {
		if s == nil {
			continue
		}
		if first == nil {
			first = s
		}
		if len(s.Causes) == 0 {
			causes = append(causes, Cause{Message: s.Message})
		}
		causes = append(causes, s.Causes...)
	}
	if first == nil {
		return nil
	}
	if slices.Equal(first.Causes, causes) || len(causes) == 1 {
		return first
	}
	joined := *first
	joined.Causes = causes[:min(len(causes), MaxFaults)]
	return &joined
}

// faults collects the refusals of one document, up to MaxFaults. The zero value is
// empty.
type faults struct{ found []*Status }

// add takes a refusal or nil.
func (f *faults) add(s *Status) {
	if s != nil && len(f.found) < MaxFaults {
		f.found = append(f.found, s)
	}
}

// status is the refusal of the document, nil where no fault was found.
func (f *faults) status() *Status { return allFaults(f.found...) }

// statusOf drops the value that a check returns beside its refusal.
func statusOf[T any](_ T, s *Status) *Status { return s }
