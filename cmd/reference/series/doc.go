// Package series lists every series that the daemons show to Prometheus: name, type,
// labels, unit and meaning. docs/reference/metrics.md is generated from the lists,
// and tests of the daemons hold the lists to the descriptions of their registries.
//
// Series of the Go runtime and of the process (go_*, process_*) are client_golang's
// own and are not listed.
package series

// Series is one family of series.
type Series struct {
	Name string
	// Type is counter, gauge or histogram.
	Type string
	// Labels are in ascending order.
	Labels []string
	// Unit is that of the values; "1" is a count.
	Unit string
	// Meaning is the help text.
	Meaning string
}
