// Package quota holds package coordinator/quota against the quota manager it
// does the work of, that of
// github.com/project-codeflare/multi-cluster-app-dispatcher: that the recorded
// scenarios are what the original does, that random histories of which the
// original makes no mistake end alike, how long a pair of calls takes and how
// much memory the consumers. It decides nothing and has only tests and
// benchmarks; its module keeps the library out of Muster's go.mod.
package quota
