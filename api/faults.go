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
