package kept

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const root = "../.."

// TestNoTestOrPlantedMistakeIsLost holds the source of today against the lists of
// commit 3eb49563.
func TestNoTestOrPlantedMistakeIsLost(t *testing.T) {
	records, err := readRecords(text(t, "testdata/replaced.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var before, today tree
	if before.tests, err = readTests(text(t, "testdata/tests.txt")); err != nil {
		t.Fatal(err)
	}
	before.mutants = mutants(text(t, "testdata/mutants.txt"), "")
	// The two lists never change: a shorter one would hide a loss.
	if n, m := len(before.tests), sum(before.mutants); n != 3171 || m != 744 {
		t.Fatalf("testdata/tests.txt has %d names and testdata/mutants.txt %d; commit 3eb49563 had 3171 and 744. Take the files from git again", n, m)
	}
	if today.tests, err = Tests(root); err != nil {
		t.Fatal(err)
	}
	lists, err := filepath.Glob(root + "/test/mutate/lists/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range lists {
		all.WriteString(text(t, name) + "\n")
	}
	today.mutants = mutants(all.String(), "mutation:")
	if today.declarations, err = declarations(root, records); err != nil {
		t.Fatal(err)
	}
	for _, complaint := range judge(before, today, records) {
		t.Error(complaint)
	}
}

func TestJudge(t *testing.T) {
	const a, b = "a TestA", "a TestB"
	for name, c := range map[string]struct {
		before, today, mutantsBefore, mutantsToday, declared, records string
		want                                                          []string // a part of each complaint
	}{
		"every test is there":                                  {before: a, today: a},
		"a test is gone":                                       {before: a, today: b, want: []string{"the test a TestA of commit 3eb49563 is gone"}},
		"a test moved to another package":                      {before: a, today: "b TestA"},
		"two tests of one name became one":                     {before: "a TestA,b TestA", today: "c TestA", want: []string{"the test b TestA"}},
		"a test of that name elsewhere from before is no move": {before: "a TestA,b TestA", today: "b TestA", want: []string{"the test a TestA"}},
		"a test is gone with its replacement named":            {before: a, today: b, records: "test: a TestA\nby: a TestB\nwhy: because"},
		"the replacement is not there":                         {before: a, today: b, records: "test: a TestA\nby: a TestC\nwhy: because", want: []string{"replaced.txt:1: the replacement a TestC does not exist"}},
		"a record for a test that is there":                    {before: a, today: a, records: "test: a TestA\nby: a TestA\nwhy: because", want: []string{"is there again"}},
		"a record for a test that never was":                   {before: a, today: a, records: "test: a TestZ\nby: a TestA\nwhy: because", want: []string{"had no test a TestZ"}},
		"a test is gone with the code that it tested":          {before: a, today: b, records: "test: a TestA\ndeleted: a T.m\nwhy: because"},
		"a test is gone and the code that it tested is not":    {before: a, today: b, declared: "a T.m", records: "test: a TestA\ndeleted: a T.m\nwhy: because", want: []string{"a T.m still exists"}},
		"a planted mistake is gone":                            {mutantsBefore: "m", want: []string{`the planted mistake "m"`}},
		"one of two planted mistakes of one name is gone":      {mutantsBefore: "m,m", mutantsToday: "m", want: []string{`the planted mistake "m"`}},
		"a planted mistake is gone with its replacement named": {mutantsBefore: "m", mutantsToday: "n", records: "mutant: m\nby mutant: n\nwhy: because"},
		"the replacement of a planted mistake is not there":    {mutantsBefore: "m", records: "mutant: m\nby mutant: n\nwhy: because", want: []string{`the replacement "n" is in no list`}},
		"a record for a planted mistake that is there":         {mutantsBefore: "m", mutantsToday: "m", records: "mutant: m\nby mutant: m\nwhy: because", want: []string{"is there again"}},
		"a record for a planted mistake that never was":        {mutantsToday: "m", records: "mutant: z\nby mutant: m\nwhy: because", want: []string{"had no planted mistake"}},
		"a new test and a new planted mistake need no record":  {before: a, today: a + "," + b, mutantsToday: "m"},
	} {
		t.Run(name, func(t *testing.T) {
			records, err := readRecords(c.records)
			if err != nil {
				t.Fatal(err)
			}
			got := judge(
				tree{tests: names(c.before), mutants: mutants(strings.ReplaceAll(c.mutantsBefore, ",", "\n"), "")},
				tree{tests: names(c.today), mutants: mutants(strings.ReplaceAll(c.mutantsToday, ",", "\n"), ""), declarations: names(c.declared)},
				records,
			)
			contains := cmp.Comparer(func(x, y string) bool { return strings.Contains(x, y) || strings.Contains(y, x) })
			if diff := cmp.Diff(c.want, got, contains); diff != "" {
				t.Errorf("complaints (-want +got):\n%s", diff)
			}
		})
	}
}

func TestARecordIsWholeOrRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no lost name":        {"by: a TestB\nwhy: x", "replaced.txt:1: the record names neither test: nor mutant:"},
		"no replacement":      {"test: a TestA\nwhy: x", "names no replacement"},
		"no reason":           {"test: a TestA\nby: a TestB", "has no why:"},
		"a name without home": {"\ntest: TestA\nby: a TestB\nwhy: x", `replaced.txt:2: "TestA" has to be a folder`},
		"an unknown field":    {"test: a TestA\nbecause: x", "is no field of a record"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := readRecords(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestDeclarationsOfTheTreeAreFound uses this package as its sample.
func TestDeclarationsOfTheTreeAreFound(t *testing.T) {
	found, err := declarations(root, []record{{deleted: []Name{{"test/kept", "judge"}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"record", "record.take", "judge", "listed", "Name.String"} {
		if !found[Name{"test/kept", want}] {
			t.Errorf("the declaration %s is not found", want)
		}
	}
	if found[Name{"test/kept", "TestJudge"}] {
		t.Error("a test counts as a declaration")
	}
}

func names(list string) map[Name]bool {
	all := map[Name]bool{}
	for _, n := range strings.Split(list, ",") {
		if pkg, name, ok := strings.Cut(n, " "); ok {
			all[Name{pkg, name}] = true
		}
	}
	return all
}

// mutants counts the lines that begin with the prefix, without it.
func mutants(text, prefix string) map[string]int {
	all := map[string]int{}
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, prefix); ok && line != "" && !strings.HasPrefix(line, "#") {
			all[strings.TrimSpace(name)]++
		}
	}
	return all
}

func sum(counts map[string]int) int {
	n := 0
	for _, c := range counts {
		n += c
	}
	return n
}

func text(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
