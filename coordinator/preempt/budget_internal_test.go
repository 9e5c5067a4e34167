package preempt

import (
	"testing"

	"pgregory.net/rapid"
)

// TestTheBudgetOfEffortIsOneOverAllDomains draws domains and the effort that each uses: in
// all no more is given than the budget and one least share, and no domain that is searched
// has fewer than the least share.
func TestTheBudgetOfEffortIsOneOverAllDomains(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		domains := rapid.IntRange(1, 2000).Draw(t, "domains")
		left, used := maxEffort, 0
		for i := range domains {
			if left <= 0 {
				break
			}
			share := shareOf(left, domains-i)
			if share < minEffort {
				t.Fatalf("domain %d of %d has an effort of %d", i, domains, share)
			}
			spent := rapid.IntRange(1, share).Draw(t, "spent")
			left, used = left-spent, used+spent
		}
		if used > maxEffort+minEffort {
			t.Fatalf("an effort of %d is used in %d domains, the budget is %d", used, domains, maxEffort)
		}
	})
}
