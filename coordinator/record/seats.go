package record

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/musterd/muster/resource"
)

// Seats says on which nodes of quota trees a live transaction is counted, since its unit
// has moved there after the commit (SeatsKey). Without this record it is Charge.Node.
// Readers ignore it beside a record that is absent or has ended.
type Seats struct {
	// Nodes are the nodes by tree: the group itself, or a node above it.
	Nodes map[string]string `json:"nodes"`
}

// SeatsKey is the key of a transaction's Seats.
func SeatsKey(tx resource.TxID) string { return QuotaKey{Kind: QuotaSeats, Name: string(tx)}.Key() }

func (s Seats) check() error {
	if len(s.Nodes) == 0 {
		return errors.New("nodes is empty: want a node per tree")
	}
	for _, tree := range slices.Sorted(maps.Keys(s.Nodes)) {
		if tree == "" || s.Nodes[tree] == "" {
			return fmt.Errorf("nodes: tree %q, node %q: want names", tree, s.Nodes[tree])
		}
	}
	return nil
}
