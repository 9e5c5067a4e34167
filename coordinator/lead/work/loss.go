package work

import (
	"slices"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// MemberLoss is the loss of an attempt's members on one node, while its Txn is under way.
//
// Invariant: it is fixed with the first Txn that writes it, whichever of several lands.
type MemberLoss struct {
	Node    resource.NodeID
	Members []record.LostMember
	Charges []record.Charge // of the attempt without the members
	Units   []*Unit         // replacements of the members
}

// LostWith returns the lost members of the unit together with further members, ascending.
func (u *Unit) LostWith(members []record.LostMember) []int {
	lost := slices.Clone(u.Record.Lost)
	for _, m := range members {
		lost = append(lost, m.Member)
	}
	slices.Sort(lost)
	return slices.Compact(lost)
}
