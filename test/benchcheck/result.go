package main

import (
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

var resultLine = regexp.MustCompile(`^(Benchmark\S+)\s+[0-9]+\s+(\S+ \S+.*)$`)

// results has, by the name of a benchmark and a unit, the value of each of its runs.
type results map[string]map[string][]float64

// take reads a line of a benchmark's output, and reports whether the line has figures.
func (r results) take(line string) bool {
	m := resultLine.FindStringSubmatch(line)
	if m == nil {
		return false
	}
	name, found := m[1], false
	if n := runtime.GOMAXPROCS(0); n > 1 { // go test appends it
		name = strings.TrimSuffix(name, "-"+strconv.Itoa(n))
	}
	fields := strings.Fields(m[2])
	for i := 0; i+1 < len(fields); i += 2 {
		value, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return found
		}
		if r[name] == nil {
			r[name] = map[string][]float64{}
		}
		r[name][fields[i+1]] = append(r[name][fields[i+1]], value)
		found = true
	}
	return found
}

// median is the middle value of the runs of a figure; ok: there is a run.
func (r results) median(name, unit string) (value float64, ok bool) {
	values := slices.Sorted(slices.Values(r[name][unit]))
	if len(values) == 0 {
		return 0, false
	}
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2, true
}
