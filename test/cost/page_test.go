package cost_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/test/ratchet"
)

const page = "../../docs/benchmarks.md"

// begin and end are the lines around the part of the page that this test prints.
const (
	begin = "<!-- cost: begin; `" + lower + "` prints this part -->"
	end   = "<!-- cost: end -->"
)

// TestMain prints the page after all tests, which may have lowered figures.
func TestMain(m *testing.M) {
	code := m.Run()
	if ratchet.Lowers() {
		text, err := printed()
		if err == nil {
			err = os.WriteFile(page, []byte(text), 0o644)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// printed is the page with its part as it should be.
func printed() (string, error) {
	text, err := os.ReadFile(page)
	if err != nil {
		return "", err
	}
	before, rest, found := strings.Cut(string(text), begin+"\n")
	_, after, ended := strings.Cut(rest, end+"\n")
	if !found || !ended {
		return "", fmt.Errorf("%s has no line %q, or no line %q after it", page, begin, end)
	}
	l, err := ratchet.Read(list)
	if err != nil {
		return "", err
	}
	return before + begin + "\n" + heading + table(l.Rows) + end + "\n" + after, nil
}

// groups are the groups of figures in the order of the page.
var groups = []string{"leader", "crowd", "trace", "life", "life-heap", "record", "objects", "history", "doors"}

const heading = `## Counts
These figures are the same on each machine of one architecture and one version of Go. ` + "`make test` counts them (`go test ./test/cost`)" + `, and they may only fall.

`

// table has a line for each meaning, with all figures of that meaning.
func table(rows []ratchet.Figure) string {
	var b strings.Builder
	b.WriteString("| counted | figures |\n|---|---|\n")
	for _, group := range groups {
		var meanings []string
		figures := map[string][]string{}
		for _, row := range rows {
			if strings.HasPrefix(row.Name, group+"/") {
				if figures[row.Means] == nil {
					meanings = append(meanings, row.Means)
				}
				figures[row.Means] = append(figures[row.Means], digits(row.Value)+" "+row.Unit)
			}
		}
		for _, m := range meanings {
			fmt.Fprintf(&b, "| %s | %s |\n", m, strings.Join(figures[m], " · "))
		}
	}
	return b.String()
}

// digits is a number with a comma before each group of three digits.
func digits(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func TestTheFiguresOfThePageAreFresh(t *testing.T) {
	if ratchet.Lowers() {
		return // TestMain prints them afterwards
	}
	want, err := printed()
	if err != nil {
		t.Fatal(err)
	}
	is, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, string(is)); d != "" {
		t.Errorf("%s does not have the figures of %s; `%s` prints them (-want +is)\n%s", page, list, lower, d)
	}
}

// Each group of the list is on the page.
func TestThePageHasAllGroups(t *testing.T) {
	l, err := ratchet.Read(list)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range l.Rows {
		if group, _, _ := strings.Cut(row.Name, "/"); !slices.Contains(groups, group) {
			t.Errorf("%s is not on the page: add the group %s to groups", row.Name, group)
		}
	}
}

func TestFiguresOfOneMeaningShareALine(t *testing.T) {
	rows := []ratchet.Figure{
		{Name: "life/txns", Value: 5, Unit: "Txns", Means: "a life"}, {Name: "leader/vote-allocations", Value: 7, Unit: "allocations", Means: "a vote"},
		{Name: "leader/vote-bytes", Value: 12345, Unit: "bytes", Means: "a vote"}, {Name: "life/keys", Value: 1234567, Unit: "keys", Means: "a life"},
	}
	want := "| counted | figures |\n|---|---|\n| a vote | 7 allocations · 12,345 bytes |\n| a life | 5 Txns · 1,234,567 keys |\n"
	if d := cmp.Diff(want, table(rows)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}
