package main

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFiguresAreReadAndWritten(t *testing.T) {
	for name, c := range map[string]struct {
		cell  string
		want  []figure
		shown string // "": as the cell
	}{
		"a time per operation in nanoseconds": {cell: "960 ns/op", want: []figure{{960, "ns/op"}}},
		"the same in a greater unit":          {cell: "1.73 ms/op", want: []figure{{1.73e6, "ns/op"}}},
		"seconds":                             {cell: "2.8 s/op", want: []figure{{2.8e9, "ns/op"}}},
		"a comma between thousands":           {cell: "294,000 commands/s", want: []figure{{294000, "commands/s"}}},
		"several figures":                     {cell: "0.93 p50-ms · 6.7 p99-ms", want: []figure{{0.93, "p50-ms"}, {6.7, "p99-ms"}}},
		"zero":                                {cell: "0 worse", want: []figure{{0, "worse"}}},
		"more than three significant digits":  {cell: "95.63 % · 1,234 x", want: []figure{{95.63, "%"}, {1234, "x"}}, shown: "95.6 % · 1,230 x"},
		"less than a nanosecond":              {cell: "0.0251 ns/op", want: []figure{{0.0251, "ns/op"}}},
		"rounded up to the next power of ten": {cell: "9,999 x", want: []figure{{9999, "x"}}, shown: "10,000 x"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseFigures(c.cell)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(figure{})); diff != "" {
				t.Error(diff)
			}
			if c.shown == "" {
				c.shown = c.cell
			}
			if text := showFigures(got); text != c.shown {
				t.Errorf("written as %q, want %q", text, c.shown)
			}
		})
	}
	for name, cell := range map[string]string{
		"no unit": "960", "a range": "29 to 60 µs", "two units": "0.5 % of a core", "no number": "about ns/op", "nothing": "", "a comma at another place": "12,34 x",
	} {
		if got, err := parseFigures(cell); err == nil {
			t.Errorf("%s: %q is read as %v, want an error", name, cell, got)
		}
	}
}

func TestAFigureIsOffBeyondOneAndAHalfInEitherDirection(t *testing.T) {
	for name, c := range map[string]struct {
		documented, now float64
		ratio           float64
		off             bool
	}{
		"equal":                   {100, 100, 1, false},
		"at the limit":            {100, 150, 1.5, false},
		"above the limit":         {100, 151, 1.51, true},
		"as far below":            {151, 100, 100.0 / 151, true},
		"a little less":           {100, 70, 0.7, false},
		"both are zero":           {0, 0, 1, false},
		"nothing becomes a count": {0, 3, math.Inf(1), true},
		"a count becomes nothing": {3, 0, 0, true},
	} {
		if got := ratio(c.documented, c.now); got != c.ratio || isOff(got) != c.off {
			t.Errorf("%s: ratio %g, off %t; want %g, %t", name, got, isOff(got), c.ratio, c.off)
		}
	}
}
