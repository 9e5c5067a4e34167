package kept

import (
	"fmt"
	"slices"
)

// tree is everything that the judgement needs to know of today's source.
type tree struct {
	tests        map[Name]bool
	mutants      map[string]int // how many lists have a mistake of this name
	declarations map[Name]bool
}

// judge returns a complaint for each name of before that is gone without a
// record, and for each record that does not hold.
func judge(before, today tree, records []record) []string {
	var complaints []string
	complain := func(format string, args ...any) { complaints = append(complaints, fmt.Sprintf(format, args...)) }

	tests, mutants := map[Name]bool{}, map[string]int{} // those with a record
	for _, r := range records {
		for _, n := range r.tests {
			tests[n] = true
			if !before.tests[n] {
				complain("%s: commit 3eb49563 had no test %s; correct the name", r.at, n)
			}
		}
		for _, m := range r.mutants {
			mutants[m]++
			if before.mutants[m] == 0 {
				complain("%s: commit 3eb49563 had no planted mistake %q; correct the name", r.at, m)
			}
		}
		for _, n := range r.byTests {
			if !today.tests[n] {
				complain("%s: the replacement %s does not exist; name a test that holds the same rule", r.at, n)
			}
		}
		for _, m := range r.byMutants {
			if today.mutants[m] == 0 {
				complain("%s: the replacement %q is in no list of test/mutate/lists", r.at, m)
			}
		}
		for _, n := range r.deleted {
			if today.declarations[n] {
				complain("%s: %s still exists, so its test may not go; bring the test back or name its replacement with by:", r.at, n)
			}
		}
	}

	lost := missing(before.tests, today.tests)
	for _, n := range lost {
		if !tests[n] {
			complain("the test %s of commit 3eb49563 is gone. Bring it back, or add this record to test/kept/testdata/replaced.txt with the test that holds the same rule:\n\n\ttest: %s\n\tby: FOLDER TestName\n\twhy: REASON", n, n)
		}
	}
	for _, r := range records {
		for _, n := range r.tests {
			if before.tests[n] && !slices.Contains(lost, n) {
				complain("%s: the test %s is there again; delete its line", r.at, n)
			}
		}
	}
	for m, n := range before.mutants {
		switch have := today.mutants[m] + mutants[m]; {
		case have < n:
			complain("the planted mistake %q of commit 3eb49563 is in no list of test/mutate/lists. Bring it back, or add this record to test/kept/testdata/replaced.txt:\n\n\tmutant: %s\n\tby mutant: ANOTHER NAME\n\twhy: REASON", m, m)
		case mutants[m] > 0 && have > n:
			complain("replaced.txt: the planted mistake %q is there again; delete its line", m)
		}
	}
	slices.Sort(complaints)
	return complaints
}
