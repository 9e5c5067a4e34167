package quota

import (
	"errors"
	"fmt"

	"github.com/musterd/muster/resource"
)

// The caller's mistakes. Errors name what was asked for and wrap one of these;
// a refusal is no error but a Result.
var (
	ErrInvalid   = errors.New("invalid specification")
	ErrUnknown   = errors.New("unknown")
	ErrExists    = errors.New("exists already")
	ErrAllocated = errors.New("already allocated")
	ErrInUse     = errors.New("in use")
	ErrMode      = errors.New("not in this mode")
	ErrNoTry     = errors.New("nothing to undo")
	ErrStale     = errors.New("ended already")
	ErrNested    = errors.New("later checkpoints are open")
)

// Result is the outcome of an allocation. Its slices belong to the Manager and
// are valid until its next call that changes anything.
type Result struct {
	OK bool
	// Placed says where the consumer is counted now, trees in ascending order.
	Placed []Placement
	// Preempted are the consumers that were evicted, in the order of their
	// eviction. They hold nothing any more, on any tree of the forest.
	Preempted []string
	// Forced is true where Restore found no room and counted it anyway.
	Forced bool
	// Refusal says why not, where OK is false.
	Refusal Refusal
}

// Placement is where a consumer is counted on one tree.
type Placement struct {
	Tree, Node string
}

// Refusal is the constraint that a refused consumer met last, with numbers in
// base units. Want and Have are of Resource, the first that is short in name
// order. Where consumers of lower priority were in its way, Have is what their
// eviction would have left.
type Refusal struct {
	Code       RefusalCode
	Tree, Node string
	Resource   resource.Name
	Want, Have int64
}

// RefusalCode says what kind of constraint refused.
type RefusalCode uint8

// The constraints.
const (
	NotRefused   RefusalCode = iota
	OverQuota                // Want is the request, Have is what Node has left for it
	UnknownGroup             // Node, the group, is not in the tree
	NotALeaf                 // Node, the group, is not a leaf
	OverCap                  // Want is the request, Have is what Node's cap leaves
	OverOwner                // Want is the request, Have is what the owner's limit on Node leaves
	OverBorrow               // Want is the request, Have is what Node may still borrow
	Overflow                 // the tree's usage would exceed the range of int64
)

var refusalNames = [...]string{"not refused", "over quota", "unknown group", "not a leaf", "over cap", "over the owner's limit", "over the borrowing limit", "amount too large"}

// String returns e.g. "over quota".
func (c RefusalCode) String() string {
	if int(c) < len(refusalNames) {
		return refusalNames[c]
	}
	return fmt.Sprintf("RefusalCode(%d)", uint8(c))
}

// String returns e.g. "over quota: tree T, node research: cpu: want 4, have 2".
func (r Refusal) String() string {
	s := fmt.Sprintf("%s: tree %s, node %s", r.Code, r.Tree, r.Node)
	if r.Resource != "" {
		s += fmt.Sprintf(": %s: want %s, have %s", r.Resource, resource.FormatAmount(r.Resource, r.Want), resource.FormatAmount(r.Resource, r.Have))
	}
	return s
}

// Reason returns the refusal as the constraint that users are shown.
func (r Refusal) Reason() resource.Reason {
	return resource.Reason{Code: resource.ReasonQuota, Resource: r.Resource, Want: r.Want, Have: r.Have, Detail: r.String()}
}

// Move is a consumer that changed its allocation node. From is empty for one
// that was not allocated before, To for one that is not any more.
type Move struct {
	Consumer, Tree, From, To string
}

// Shape says what became of the nodes of a specification. All lists ascend.
type Shape struct {
	// Root is the root's name, empty for an empty tree.
	Root string
	// Dangling are the nodes that the root does not reach; they are not part
	// of the tree. The lists below say why, where the node itself is why.
	Dangling []string
	// OtherRoots would be roots too; the first in ascending order is.
	OtherRoots []string
	// Orphans name a parent that does not exist.
	Orphans []string
	// Cyclic are their own ancestors.
	Cyclic []string
}

// UpdateResult is what UpdateTree did to one tree.
type UpdateResult struct {
	Tree string
	Shape
	// Lost are the consumers that hold nothing any more, because the new tree
	// is empty or their sum cannot be represented. They have lost the other
	// trees of the forest as well. Ascending.
	Lost []string
	// Moved are the consumers whose allocation node is another one, by ID.
	// Nodes are compared by their names after renaming.
	Moved []Move
	// Detached are the consumers that stay but whose group is no leaf any more
	// or gone: they are charged until they leave and never slide down.
	Detached []string
}
