package ratchet_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/test/ratchet"
)

const text = `# figures
a/bytes        700   bytes  exact  of a decision, in full  ADR 131
a/allocations  10    times  2%     of a decision
b/keys         4     keys   exact  of a life
`

func parsed(t *testing.T) ratchet.List {
	t.Helper()
	l, err := ratchet.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestAListIsWrittenAsItIsRead(t *testing.T) {
	l := parsed(t)
	path := filepath.Join(t.TempDir(), "list.txt")
	if err := l.Write(path); err != nil {
		t.Fatal(err)
	}
	again, err := ratchet.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(l.String(), again.String()); d != "" {
		t.Errorf("(-written +read)\n%s", d)
	}
	if !strings.HasPrefix(again.String(), "# figures\na/allocations") {
		t.Errorf("the comment, and rows in the order of their names:\n%s", again)
	}
	if absent, err := ratchet.Read(filepath.Join(t.TempDir(), "none")); err != nil || len(absent.Rows) > 0 {
		t.Errorf("a file that is absent is %v, %v", absent, err)
	}
}

func TestRowsThatCannotBeRead(t *testing.T) {
	for row, want := range map[string]string{
		"a/bytes  700":                      "2 columns",
		"a/bytes  many  bytes  exact  x":    "the value of a/bytes",
		"a/bytes  7  bytes  about  x":       "the tolerance of a/bytes",
		"a/bytes  7  bytes  0%  x":          "the tolerance of a/bytes",
		"b  1  x  exact  y\nb  1  x  1%  y": "line 2: b has two rows",
	} {
		if _, err := ratchet.Parse(row); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", row, err, want)
		}
	}
}

func TestFiguresAreComparedWithTheirRows(t *testing.T) {
	allocations := ratchet.Figure{Name: "a/allocations", Value: 10, Unit: "times", Within: 2, Means: "of a decision"}
	bytes := ratchet.Figure{Name: "a/bytes", Value: 700, Unit: "bytes", Means: "of a decision, in full", ADR: "ADR 131"}
	with := func(f ratchet.Figure, change func(*ratchet.Figure)) ratchet.Figure {
		change(&f)
		return f
	}
	for name, c := range map[string]struct {
		counted []ratchet.Figure
		want    string // of the sentence, or empty
		value   int64  // of a/bytes in the list afterwards
	}{
		"all as before":                 {[]ratchet.Figure{allocations, bytes}, "", 700},
		"an exact figure has risen":     {[]ratchet.Figure{allocations, with(bytes, func(f *ratchet.Figure) { f.Value = 701 })}, "a/bytes has risen from 700 to 701 bytes (exact): find the cause", 700},
		"an exact figure has fallen":    {[]ratchet.Figure{allocations, with(bytes, func(f *ratchet.Figure) { f.Value = 699 })}, "a/bytes has fallen from 700 to 699 bytes: write the lower figure down in the same commit, `lower it` does", 699},
		"a figure without a row":        {[]ratchet.Figure{allocations, bytes, {Name: "a/more", Value: 1, Unit: "x"}}, "a/more (1 x) has no row: `lower it` adds the row", 700},
		"a row that nothing counts":     {[]ratchet.Figure{bytes}, "a/allocations has a row, and no test counts it: remove the row by hand", 700},
		"a row with another meaning":    {[]ratchet.Figure{allocations, with(bytes, func(f *ratchet.Figure) { f.Means = "of two" })}, "the row of a/bytes has another unit, tolerance or meaning", 700},
		"two percent of ten is nothing": {[]ratchet.Figure{with(allocations, func(f *ratchet.Figure) { f.Value = 11 }), bytes}, "a/allocations has risen from 10 to 11 times (2%)", 700},
	} {
		t.Run(name, func(t *testing.T) {
			faults, lowered := ratchet.Compare(parsed(t), "a", "lower it", c.counted)
			if all := strings.Join(faults, "\n"); c.want == "" && all != "" || !strings.Contains(all, c.want) || len(faults) > 1 {
				t.Errorf("%q, want %q", faults, c.want)
			}
			has := map[string]int64{}
			for _, row := range lowered.Rows {
				has[row.Name] = row.Value
			}
			if has["a/bytes"] != c.value || has["a/allocations"] != 10 || has["b/keys"] != 4 {
				t.Errorf("the list has %v afterwards, want %d bytes, and the rest as before", has, c.value)
			}
		})
	}
}

func TestToleranceIsOfTheRow(t *testing.T) {
	l, err := ratchet.Parse("a/bytes  1000  bytes  2%  x")
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[int64]string{979: "fallen", 980: "", 1020: "", 1021: "risen"} {
		faults, _ := ratchet.Compare(l, "a", "", []ratchet.Figure{{Name: "a/bytes", Value: value, Unit: "bytes", Within: 2, Means: "x"}})
		if all := strings.Join(faults, "\n"); want == "" && all != "" || !strings.Contains(all, want) {
			t.Errorf("%d beside 1000 with 2%%: %q, want %q", value, all, want)
		}
	}
}
