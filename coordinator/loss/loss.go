// Package loss decides which devices of a node the store names as lost. Objects that
// hold such a device show it, at the revision of that key. The package decides neither
// whether a device is lost, which agents report, nor what becomes of its holders.
package loss

import (
	"maps"
	"slices"

	"github.com/musterd/muster/coordinator/record"
)

// Next is the record that follows before. held has the UUID of each device that a
// transaction holds on the node, true where the device is lost. A device that was lost
// stays named as returned as long as it is held: its holder has changed at the revision of
// the key.
//
// Invariant: a device that before or the result names, and that is held, is in the result
// once: among the lost devices exactly if it is lost.
func Next(before record.NodeLost, held map[string]bool) record.NodeLost {
	var next record.NodeLost
	for _, uuid := range slices.Sorted(maps.Keys(held)) {
		switch {
		case held[uuid]:
			next.Lost = append(next.Lost, uuid)
		case before.Names(uuid):
			next.Returned = append(next.Returned, uuid)
		}
	}
	return next
}
