// Command benchcheck repeats the figures of docs/benchmarks.md. The rows of that
// page are its only input: a row names a benchmark and the figures which the
// benchmark has reported, with commit, date and machine. benchcheck runs each
// named benchmark, compares the new figures with the documented ones, marks a
// ratio beyond 1.5 in either direction, and with -write puts the new figures into
// the rows. It does not decide which benchmarks the page names, and it judges no
// figure as good or bad: a bar is text of its row.
//
// The files follow the path of a row: page.go reads and writes the page, figure.go
// reads, writes and compares figures, plan.go makes runs of `go test` from rows,
// result.go reads the lines of a benchmark, run.go executes, report.go prints.
package main
