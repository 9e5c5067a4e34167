package docs_test

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/musterd/muster/test/invariant"
)

// withoutRule are the invariants of PROTOCOL.md that no rule of package invariant holds;
// docs/open.md names them, and other tests hold them.
var withoutRule = map[string]bool{"I15": true, "I16": true}

// TestTheProtocolHasTheInvariantsOfTheRules: each rule is of an invariant in the table of
// docs/PROTOCOL.md, and each invariant of the table has a rule.
func TestTheProtocolHasTheInvariantsOfTheRules(t *testing.T) {
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\| (I\d+) \|`).FindAllStringSubmatch(read(t, filepath.Join(root, "docs", "PROTOCOL.md")), -1) {
		listed[m[1]] = true
	}
	ruled := map[string]bool{}
	number := regexp.MustCompile(`^I\d+\b`)
	for _, r := range invariant.Rules() {
		if i := number.FindString(string(r.Rule)); i != "" {
			if ruled[i] = true; !listed[i] {
				t.Errorf("the rule %q is of no invariant in docs/PROTOCOL.md section 2: add the invariant to the table", r.Rule)
			}
		}
	}
	for i := range listed {
		if ruled[i] == withoutRule[i] {
			t.Errorf("docs/PROTOCOL.md has %s, package invariant has a rule for it: %t, withoutRule says that it has none: %t", i, ruled[i], withoutRule[i])
		}
	}
}
