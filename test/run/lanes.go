package main

import (
	"cmp"
	"runtime"
	"slices"
	"time"

	"github.com/musterd/muster/test/report"
)

// lane is a part of the packages that runs beside the others.
type lane struct {
	name     string
	parallel int      // how many packages at a time
	packages []string // in the order in which they begin
}

// unknown is the time of a package without a row.
const unknown = 2 * time.Second

// cores returns how many cores the run may use.
func cores() int { return runtime.GOMAXPROCS(0) }

// plan divides the packages into those that compute, one for each core at a
// time, and those that wait, of which one more than cores run at a time: three of
// them leave two cores mostly idle. In each lane the longest begins first, so that
// no long one is left alone at the end.
func plan(packages []string, costs report.Costs, cores int) []lane {
	waiting := lane{name: "packages that wait", parallel: cores + 1}
	computing := lane{name: "packages that compute", parallel: cores}
	length := map[string]time.Duration{}
	for _, p := range packages {
		row, known := costs.Package(p)
		switch {
		case !known:
			length[p] = unknown
			computing.packages = append(computing.packages, p)
		case row.Waits:
			length[p] = row.Wall
			waiting.packages = append(waiting.packages, p)
		default:
			length[p] = max(row.CPU, row.Wall)
			computing.packages = append(computing.packages, p)
		}
	}
	longest := func(a, b string) int { return cmp.Compare(length[b], length[a]) }
	slices.SortStableFunc(waiting.packages, longest)
	slices.SortStableFunc(computing.packages, longest)
	return []lane{waiting, computing}
}
