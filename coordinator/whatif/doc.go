// Package whatif answers what would happen to a unit: whether it would start, and
// where; who would give way for it; whether it can ever run on the nodes that are
// registered; and what would help. It answers on a World, which is a fork of the
// leader's scheduling state and belongs to the caller, so an answer costs the
// leader's loop no more than the snapshot behind the fork.
//
// Try asks exactly what a pass of the leader would do (coordinator/sched). Never
// and Help ask further. All results are values with codes and numbers: whoever
// shows them finds the words.
//
// # Never
//
// A unit can never run where no order of ends lets it run, on the nodes that are
// registered now and with the quotas that are set now. Nodes that are absent, not
// ready, cordoned, drained or in quarantine count as able to come back, and devices
// as able to become healthy; labels, taints, capacities and quotas count as they
// are. Never is said only where that is certain: hosts are bounded from above
// (fit.Kind.AtMost), since NUMA nodes and links make an exact count too dear.
//
// # Help
//
// Each hint was applied to the World and the unit was tried again before the hint is
// returned. Hints come in this order, and the search for them is bounded:
//
//  1. conditions that the unit sets itself: the same amounts elsewhere;
//  2. the right to have others evicted, the fewest GPUs that give way first;
//  3. less of something, the smallest share of it first;
//  4. changes that an operator makes: cordons, limits, quotas;
//  5. the end of other units.
//
// Pure: no clock, no I/O, no goroutine, no log.
package whatif
