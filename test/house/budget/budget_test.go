package budget

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const sample = "# Comments are no rows.\ncapability\tlines\tnames\tmuster\nat first\t1000\t20\t7.5\na kind\t300\t4\t0.25\n"

func TestTheBudgetIsTheSumOfTheRows(t *testing.T) {
	got, err := sum(sample)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]int{"lines": 1300, "names": 24, "muster": 7_750_000}, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestAboveTheBudgetThereIsASentence(t *testing.T) {
	total, err := sum(sample)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		column   string
		measured int
		want     string
	}{
		"as many lines as allowed": {"lines", 1300, ""},
		"one line more":            {"lines", 1301, "the product has 1301 lines, and the rows of " + File + " allow 1300: name the capability's lines in test/house/budget, in a row of its own, or cut 1."},
		"one name more":            {"names", 25, "name the capability's names in test/house/budget"},
		"a larger program":         {"muster", 7_900_000, "muster has 7.9 MB, and the rows of " + File + " allow 7.8 MB: name the capability's MB in test/house/budget, in a row of its own, or cut 0.1 MB."},
		"a program without column": {"muster-agent", 1, "has no column muster-agent"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Judge(total, c.column, c.measured); c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestRowsWithoutANumberAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"a cell is missing":     "capability\tlines\tnames\na\t1\n",
		"a half line":           "capability\tlines\tnames\na\t1.5\t1\n",
		"no name":               "capability\tlines\tnames\n\t1\t1\n",
		"a word":                "capability\tlines\tnames\na\tmany\t1\n",
		"no column of lines":    "capability\tnames\na\t1\n",
		"an empty file is none": "",
	} {
		if _, err := sum(text); err == nil || !strings.Contains(err.Error(), File) {
			t.Errorf("%s: got %v, want an error with the file's name", name, err)
		}
	}
}
