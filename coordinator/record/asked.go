package record

import "strings"

// The words before the name of a person at the end of the reason of an eviction.
const (
	askedBy   = " ("
	drainedBy = " (drained by "
)

// AskedFor returns the reason of an eviction with the person behind the request. No name
// leaves the reason as written.
func AskedFor(reason, person string) string { return signed(reason, askedBy, person) }

// DrainedFor is AskedFor for the drain of a node.
func DrainedFor(reason, person string) string { return signed(reason, drainedBy, person) }

func signed(reason, words, person string) string {
	if person == "" {
		return reason
	}
	return reason + words + person + ")"
}

// byRule are beginnings of reasons without a person.
var byRule = []string{"DeviceLost: ", "NodeLost: ", "NoExecute: "}

// Asker is the person behind an eviction without a preemptor, and whether the person drained
// a node; "" for a rule. Members of the same gang or group have the person, too.
func (r *Tx) Asker() (person string, drains bool) {
	reason := strings.TrimPrefix(strings.TrimPrefix(r.Reason, "its gang was evicted: "), "its group was evicted: ")
	if !r.Evicted || r.By != "" || !strings.HasSuffix(reason, ")") {
		return "", false
	}
	for _, words := range byRule {
		if strings.HasPrefix(reason, words) {
			return "", false
		}
	}
	if at := strings.LastIndex(reason, drainedBy); at >= 0 {
		return reason[at+len(drainedBy) : len(reason)-1], true
	}
	return inBrackets(reason), false
}

// inBrackets is the text in the last brackets of a reason. The text may have brackets, too:
// an administrator's word for another person does.
func inBrackets(reason string) string {
	depth := 0
	for i := len(reason) - 1; i > 0; i-- {
		switch reason[i] {
		case ')':
			depth++
		case '(':
			if depth--; depth == 0 && reason[i-1] == ' ' {
				return reason[i+1 : len(reason)-1]
			}
		}
	}
	return ""
}

// IsPreemption reports whether a unit was evicted for another unit, or alone by a person.
func (r *Tx) IsPreemption() bool {
	person, drains := r.Asker()
	return r.Evicted && r.By != "" || person != "" && !drains
}
