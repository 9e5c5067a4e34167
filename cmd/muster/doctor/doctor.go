// Package doctor looks at a cluster or at one host's configuration, and reports
// its faults, in sentences with names and numbers, each with the
// command that mends it. It changes nothing.
//
// The looking (Look, LookAtHost) gathers facts and bounds each question; the
// judging (Facts.Judge) is a function of these facts and the time alone.
package doctor

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Severity is how much a finding matters.
type Severity string

// The severities, from the worst on. A note is no fault.
const (
	Error   Severity = "error"   // a part does not work, or soon will not
	Warning Severity = "warning" // a part works worse than it should
	Note    Severity = "note"    // worth knowing
)

// Finding is one fault.
type Finding struct {
	Severity Severity `json:"severity"`
	// Check is the check that found it, e.g. "clock".
	Check string `json:"check"`
	// Subject names the faulty part: a coordinator, a node, a quota, a file.
	Subject string `json:"subject"`
	// Message describes the fault, with numbers.
	Message string `json:"message"`
	// Remedy is the command, or the act, that mends it.
	Remedy string `json:"remedy"`
}

// Skipped is a check that could not be made.
type Skipped struct {
	Check  string `json:"check"`
	Reason string `json:"reason"`
}

// Report is the result of a look. Its JSON form is a contract
// (docs/troubleshooting.md): lists are never null.
type Report struct {
	// Subject names the cluster or the host of the report.
	Subject  string    `json:"subject"`
	Checks   []string  `json:"checks"` // that were made, in their order
	Skipped  []Skipped `json:"skipped"`
	Findings []Finding `json:"findings"` // worst first
}

// newReport sorts findings and fills empty lists.
func newReport(subject string, checks []string, skipped []Skipped, findings []Finding) Report {
	rank := map[Severity]int{Error: 0, Warning: 1, Note: 2}
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(rank[a.Severity], rank[b.Severity]),
			cmp.Compare(slices.Index(checks, a.Check), slices.Index(checks, b.Check)), cmp.Compare(a.Subject, b.Subject))
	})
	r := Report{Subject: subject, Checks: []string{}, Skipped: []Skipped{}, Findings: []Finding{}}
	r.Checks, r.Skipped, r.Findings = append(r.Checks, checks...), append(r.Skipped, skipped...), append(r.Findings, findings...)
	return r
}

// Faults counts the errors and warnings.
func (r Report) Faults() int {
	n := 0
	for _, f := range r.Findings {
		if f.Severity != Note {
			n++
		}
	}
	return n
}

// WriteText writes the report for people.
func (r Report) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", r.Subject)
	for _, check := range r.Checks {
		n := 0
		for _, f := range r.Findings {
			if f.Check == check && f.Severity != Note {
				n++
			}
		}
		result := "ok"
		if i := slices.IndexFunc(r.Skipped, func(s Skipped) bool { return s.Check == check }); i >= 0 {
			result = "not looked at: " + r.Skipped[i].Reason
		}
		if n > 0 {
			result = fmt.Sprintf("%d %s", n, plural(n, "finding"))
		}
		fmt.Fprintf(&b, "  %-14s %s\n", check, result)
	}
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "\n%s: %s: %s\n", f.Severity, f.Subject, f.Message)
		if f.Remedy != "" {
			fmt.Fprintf(&b, "  mend it: %s\n", f.Remedy)
		}
	}
	if n := r.Faults(); n == 0 {
		b.WriteString("\nnothing is wrong\n")
	} else {
		fmt.Fprintf(&b, "\n%d %s\n", n, plural(n, "finding"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func plural(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}
