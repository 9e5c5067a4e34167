package main

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// offBeyond is the ratio, in either direction, beyond which a figure is marked.
const offBeyond = 1.5

// figure is a number with the unit that the benchmark reports. A time per
// operation has the unit ns/op, whatever the page shows: 1.2 ms/op is 1,200,000 ns/op.
type figure struct {
	value float64
	unit  string
}

// perOp are the units in which the page shows ns/op, the greatest first.
var perOp = []struct {
	unit string
	ns   float64
}{{"s/op", 1e9}, {"ms/op", 1e6}, {"µs/op", 1e3}, {"ns/op", 1}}

// separator stands between the figures of a row.
const separator = " · "

var number = regexp.MustCompile(`^[0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?$|^[0-9]+(\.[0-9]+)?$`)

// parseFigures reads the figures of a row: "0.93 p50-ms · 2,360 allocs/s".
func parseFigures(cell string) ([]figure, error) {
	var all []figure
	for part := range strings.SplitSeq(cell, separator) {
		text, unit, found := strings.Cut(strings.TrimSpace(part), " ")
		if !found || strings.Contains(unit, " ") || !number.MatchString(text) {
			return nil, fmt.Errorf("figure %q: want a number and the unit that the benchmark reports, as in \"1,200 ns/op\", with %q between two figures", part, separator)
		}
		value, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
		if err != nil {
			return nil, fmt.Errorf("figure %q: %w", part, err)
		}
		for _, u := range perOp {
			if unit == u.unit {
				value, unit = value*u.ns, "ns/op"
			}
		}
		all = append(all, figure{value, unit})
	}
	return all, nil
}

// String is the figure with three significant digits.
func (f figure) String() string {
	value, unit := f.value, f.unit
	if unit == "ns/op" {
		for _, u := range perOp {
			if value >= u.ns || u.ns == 1 {
				value, unit = value/u.ns, u.unit
				break
			}
		}
	}
	return shown(value) + " " + unit
}

// shown is a number with three significant digits, and a comma between thousands.
func shown(value float64) string {
	if value == 0 {
		return "0"
	}
	digits := 2 - int(math.Floor(math.Log10(math.Abs(value))))
	if digits > 0 {
		text := strconv.FormatFloat(value, 'f', digits, 64)
		return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	scale := math.Pow(10, float64(-digits))
	text := strconv.FormatFloat(math.Round(value/scale)*scale, 'f', 0, 64)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

func showFigures(all []figure) string {
	var parts []string
	for _, f := range all {
		parts = append(parts, f.String())
	}
	return strings.Join(parts, separator)
}

// ratio is the new value in units of the documented value. Two zeros have the ratio 1.
func ratio(documented, now float64) float64 {
	switch {
	case documented == now:
		return 1
	case documented == 0:
		return math.Inf(1)
	}
	return now / documented
}

// isOff reports whether a ratio is beyond the limit in either direction.
func isOff(ratio float64) bool { return ratio > offBeyond || ratio < 1/offBeyond }
