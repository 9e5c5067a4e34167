package record_test

import (
	"testing"

	"github.com/musterd/muster/coordinator/record"
)

// Records of older versions have the kind of an end as the first word of its reason.
func TestTheKindOfAnEnd(t *testing.T) {
	const deadline = "DeadlineExceeded: the unit has run for the 1m0s of activeDeadlineSeconds"
	for name, c := range map[string]struct {
		phase  string
		end    record.EndKind
		reason string
		want   record.EndKind
	}{
		"the field":                                {"Failed", record.DeadlineExceeded, deadline, record.DeadlineExceeded},
		"the field counts more than the words":     {"Failed", record.WaitTimeout, deadline, record.WaitTimeout},
		"a word of a newer version":                {"Failed", "Eclipse", "dark", "Eclipse"},
		"an older version":                         {"Failed", "", deadline, record.DeadlineExceeded},
		"an older version, a ttl":                  {"Succeeded", "", "TTLExpired: the 1m0s of ttl have passed since the unit has first run", record.TTLExpired},
		"an older version, a gang":                 {"Failed", "", "GangTimeout: 1 of 2 members of group g had arrived within 1m0s", record.GangTimeout},
		"an older version, other work":             {"Failed", "", "WaitTimeout: it had no place within 1m0s", record.WaitTimeout},
		"a failure of a command":                   {"Failed", "", "train-0 exited with code 1: DeadlineExceeded: no answer", ""},
		"a word alone":                             {"Failed", "", "DeadlineExceeded", ""},
		"a job that has a kind for its name":       {"Failed", "", "DeadlineExceeded-0 exited with code 1", ""},
		"a unit that waits has no end":             {"Pending", "", deadline, ""},
		"a unit that its owner has ended":          {"Cancelled", "", deadline, ""},
		"a word that no older version has written": {"Failed", "", "DependencyNeverSatisfied: x", ""},
	} {
		u := record.Unit{Phase: c.phase, End: c.end, Reason: c.reason}
		o := record.Outcome{Phase: c.phase, End: c.end, Message: c.reason}
		if u.EndedBy() != c.want || o.EndedBy() != c.want {
			t.Errorf("%s: a unit's is %q, an outcome's %q, want %q", name, u.EndedBy(), o.EndedBy(), c.want)
		}
	}
}
