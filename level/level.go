// Package level names the feature levels of a cluster and the features of each level. A
// feature with keys unknown to older leaders is off below its level. The package does not
// decide when the level of a cluster rises: coordinator/raise does.
package level

import "fmt"

// Level is a feature level of a cluster or of a program: 0 is the level of every cluster
// before its first raise. The level of a cluster never falls.
type Level int

// Newest is the newest level of this program.
const Newest Level = 0

// Feature is a part of the program with a level.
type Feature struct {
	// Level is the first level with the feature, 1 or more.
	Level Level
	// Name names the feature for operators, in one line.
	Name string
}

// Features are the features of the levels 1 to Newest, ascending by level. No level is
// without a feature.
func Features() []Feature { return nil }

// On reports whether a cluster of level l has the feature f.
func (l Level) On(f Feature) bool { return f.Level <= l }

// UnknownError is the refusal of a program of a lower level than the cluster's.
type UnknownError struct {
	// Cluster is the level of the cluster, 0 where the program cannot read the level.
	Cluster Level
	// Known is the newest level of the program.
	Known Level
	// Cause is the reason why the level cannot be read, or nil.
	Cause error
}

// Error names both levels and the remedy.
func (e *UnknownError) Error() string {
	const remedy = "this coordinator does not campaign, lead or write; install the version of the other coordinators on its host"
	if e.Cause != nil {
		return fmt.Sprintf("the cluster's feature level cannot be read: %v: %s", e.Cause, remedy)
	}
	return fmt.Sprintf("the cluster has feature level %d, and this coordinator knows levels up to %d: %s", e.Cluster, e.Known, remedy)
}

// Unwrap is the cause.
func (e *UnknownError) Unwrap() error { return e.Cause }
