package lead

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// orderOfReads is ADR 10 in letters (see letters), of a reconciliation that may
// end after any of its steps. A node outside quarantine is asked for all grants at the end.
var orderOfReads = regexp.MustCompile(`^((SI)*S?|(SI)+T+R*W*(IC?)?)T?$`)

// letters shorten the effects of a reconciliation: reads of a Specification, an
// Identity, a Record; Tell everything; Writes of records; the Command that ends
// the quarantine.
func letters(told []string) string {
	var b strings.Builder
	for _, text := range told {
		switch {
		case strings.HasSuffix(text, "/spec"):
			b.WriteByte('S')
		case strings.HasSuffix(text, "/identity"):
			b.WriteByte('I')
		case strings.HasPrefix(text, "reads tx/"):
			b.WriteByte('R')
		case strings.HasSuffix(text, "tell everything"):
			b.WriteByte('T')
		case strings.HasPrefix(text, "writes "):
			b.WriteByte('W')
		case strings.Contains(text, ": adopted "):
			b.WriteByte('C')
		}
	}
	return b.String()
}

// TestReconciliationInAnyOrder: whatever comes in between, its reads and writes
// have the order of ADR 10, no more than one goes on, each client has one answer,
// and no stage waits for ever.
func TestReconciliationInAnyOrder(t *testing.T) {
	inputs := []string{
		"n1 connects in quarantine: lost 0, shared 0", "n2 connects in quarantine: shared 1", "n1 connects: lost 0, shared 0", "n2 connects: shared 1",
		"n1 tells all", "n2 tells all", "n1 leaves", "n2 leaves", "n1 registers", "n2 registers", "n1 registers elsewhere", "n2 is deleted", "n1 is deleted",
		"look n1", "adopt n1", "release n1", "adopt n2", "4 s pass",
		"the store answers", "the store answers", "the store answers", "the store answers",
	}
	rapid.Check(t, func(r *rapid.T) {
		p := newPlay(t)
		p.input("n1 connects in quarantine: lost 0, shared 0")
		p.input("n2 connects in quarantine: shared 1")
		var log []string
		var told []string // of the reconciliation that goes on
		asked, answered := 0, 0
		play := func(input string) {
			if input == "the store answers" && len(p.questions) == 0 || p.l.nodes["n1"] == nil && input == "n1 connects: lost 0, shared 0" || p.l.nodes["n2"] == nil && input == "n2 connects: shared 1" {
				return
			}
			before := p.l.reconciliation
			p.told = nil
			p.input(input)
			log = append(append(log, "> "+input), p.told...)
			for _, mode := range []string{"look ", "adopt ", "release "} {
				if strings.HasPrefix(input, mode) {
					asked++
				}
			}
			for _, text := range p.told {
				if strings.HasPrefix(text, "answers") {
					answered++
				}
			}
			after := p.l.reconciliation
			if p.l.reconciling != (after != nil) {
				r.Fatalf("reconciling is %v, and its value %v", p.l.reconciling, after)
			}
			if before != nil {
				told = append(told, p.told...)
			} else {
				told = slices.Clone(p.told)
			}
			if order := letters(told); before != nil && !orderOfReads.MatchString(order) {
				r.Fatalf("the order is %s:\n%s", order, strings.Join(log, "\n"))
			}
		}
		for range rapid.IntRange(1, 60).Draw(r, "length") {
			play(rapid.SampledFrom(inputs).Draw(r, "input"))
		}
		for range 40 {
			play("the store answers")
			play("10 s pass")
		}
		if p.l.reconciling || asked != answered {
			r.Fatalf("%d of %d clients have an answer:\n%s", answered, asked, strings.Join(log, "\n"))
		}
	})
}
