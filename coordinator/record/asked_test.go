package record_test

import (
	"testing"

	"github.com/musterd/muster/coordinator/record"
)

func TestThePersonBehindAnEvictionIsInItsReason(t *testing.T) {
	for name, c := range map[string]struct {
		reason     string
		by         bool // a preemptor
		person     string
		drains     bool
		preemption bool
	}{
		"a person evicts":                {record.AskedFor("more room", "ada@example.org"), false, "ada@example.org", false, true},
		"a person with a reason of many": {record.AskedFor("room (soon) for (all)", "ada"), false, "ada", false, true},
		"a person by the word of one":    {record.AskedFor("room", "ada (says bob)"), false, "ada (says bob)", false, true},
		"a person drains":                {record.DrainedFor("a new fan", "bob"), false, "bob", true, false},
		"a member of the same gang":      {"its gang was evicted: " + record.AskedFor("room", "ada"), false, "ada", false, true},
		"a member of the same group":     {"its group was evicted: " + record.DrainedFor("fan", "bob"), false, "bob", true, false},
		"no name":                        {record.AskedFor("at node n1", ""), false, "", false, false},
		"a rule about a device":          {"DeviceLost: GPU-1 of node n1 is lost (root)", false, "", false, false},
		"a rule about a node":            {"NodeLost: confirmed (root)", false, "", false, false},
		"a taint":                        {"NoExecute: the taint a=b of node n1 (root)", false, "", false, false},
		"a preemptor":                    {"gives way to a (root)", true, "", false, true},
		"brackets that do not match":     {"room)", false, "", false, false},
		"brackets without a space":       {"room(ada)", false, "", false, false},
	} {
		r := record.Tx{Evicted: true, Reason: c.reason}
		if c.by {
			r.By = "u-2.7.9.00"
		}
		if person, drains := r.Asker(); person != c.person || drains != c.drains || r.IsPreemption() != c.preemption {
			t.Errorf("%s: %q, a drain %t, a preemption %t; want %q, %t, %t", name, person, drains, r.IsPreemption(), c.person, c.drains, c.preemption)
		}
		if r.Evicted = false; r.IsPreemption() {
			t.Errorf("%s: an end by the owner is a preemption", name)
		}
	}
}
