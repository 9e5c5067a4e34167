package preempt

import (
	"testing"

	"pgregory.net/rapid"
)

// TestTheBudgetOfTrialsIsOneOverAllDomains draws domains and the trials that each uses: in
// all no more are given than the budget and one least share, and no domain that is searched
// has fewer than the least share.
func TestTheBudgetOfTrialsIsOneOverAllDomains(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		domains := rapid.IntRange(1, 2000).Draw(t, "domains")
		left, used := maxTrials, 0
		for i := range domains {
			if left <= 0 {
				break
			}
			share := shareOf(left, domains-i)
			if share < minTrials {
				t.Fatalf("domain %d of %d has %d trials", i, domains, share)
			}
			spent := rapid.IntRange(1, share).Draw(t, "spent")
			left, used = left-spent, used+spent
		}
		if used > maxTrials+minTrials {
			t.Fatalf("%d trials are used in %d domains, the budget is %d", used, domains, maxTrials)
		}
	})
}
