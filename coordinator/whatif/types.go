package whatif

import (
	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/resource"
)

// Unit is the unit that is asked about.
type Unit struct {
	sched.Unit
	// Owner, Kind and Unpreemptable are those of its consumer on quota trees.
	Owner         string
	Kind          int
	Unpreemptable bool
}

// Outcome is what a pass would do with the unit.
type Outcome struct {
	Action sched.Action
	// Members are where the members would go, of Start and Preempt.
	Members []Member
	// Victims are the units that would give way, of Preempt, ascending by name.
	// Claims: they use quota that is the unit's own.
	Victims []Victim
	Claims  bool
	// Evidence is why the unit waits, of Wait.
	Evidence *sched.Evidence
}

// Member is where one member goes, and what it gets there.
type Member struct {
	Index      int
	Node       resource.NodeID
	Assignment resource.Assignment
}

// Victim is a unit that runs, and that would end for another.
type Victim struct {
	Unit     string
	Priority int32
	GPUs     resource.Milli // on all nodes, MIG instances not counted
	Nodes    int
}

// Bound is a reason why a unit can never run, with its numbers. Which fields mean
// something depends on the code.
type Bound struct {
	Code BoundCode
	// Set is the name of the set of members that it is about, of a unit whose members
	// differ; "" for all members.
	Set string
	// Nodes counts the nodes that the bound is about, and LeftOut the further ones, to which
	// labels and taints do not let a member: of bounds about hardware alone.
	Nodes, LeftOut int
	// Want and Have are of Resource, in base units, or of members where Resource
	// is empty.
	Resource   resource.Name
	Want, Have int64
	// Members is the most members that can run at once.
	Members int
	Label   constraint.Label // of NoLabel
	Taint   constraint.Taint // of NotTolerated: the taint of most nodes
	Model   string           // of NoModel
	// Reasons are those of one host, of NoNode.
	Reasons []resource.Reason
	Tree    string // of NoTree
	Group   string // of NoTree
	Limit   string // of OverLimit: its name
	User    string // of OverLimit: the user whose limit it is, "" for the limit of all
	// Refusal is that of an unused quota tree, of OverTree.
	Refusal quota.Refusal
}

// BoundCode is the kind of a Bound.
type BoundCode string

// The bounds.
const (
	// NoNodes: no node is registered.
	NoNodes BoundCode = "NoNodes"
	// NoLabel: none of Nodes has Label, which the node selector asks for.
	NoLabel BoundCode = "NoLabel"
	// NoMatch: none of Nodes has all labels that the unit asks for, though each
	// may be on some node.
	NoMatch BoundCode = "NoMatch"
	// NotTolerated: all Nodes with the labels have taints that the unit does not
	// tolerate.
	NotTolerated BoundCode = "NotTolerated"
	// NoModel: none of Nodes has a GPU of Model.
	NoModel BoundCode = "NoModel"
	// NoGPUMemory: none of Nodes has a GPU, or MIG instance, with Want bytes; the
	// greatest has Have.
	NoGPUMemory BoundCode = "NoGPUMemory"
	// NodeTooSmall: a member wants Want of Resource, and none of Nodes has more
	// than Have.
	NodeTooSmall BoundCode = "NodeTooSmall"
	// NoNode: each amount is on some of Nodes, but none of them can hold a
	// member, when empty; Reasons say why one of them cannot.
	NoNode BoundCode = "NoNode"
	// NodesTooSmall: all members together want Want of Resource, and all Nodes
	// together have Have. Where Resource is empty, Want members are to run, and
	// Nodes hold no more than Have. Members are the most that they hold.
	NodesTooSmall BoundCode = "NodesTooSmall"
	// TooWide: the members need Want nodes at least, and one transaction of the
	// store takes Have. Members are the most that so many nodes hold.
	TooWide BoundCode = "TooWide"
	// OverLimit: Limit of the namespace is Have of Resource, the unit wants Want.
	OverLimit BoundCode = "OverLimit"
	// NoTree: quota tree Tree, to whose Group the unit is charged, does not exist.
	NoTree BoundCode = "NoTree"
	// OverTree: the quota tree refuses the unit even where nobody is charged to it.
	OverTree BoundCode = "OverTree"
)

// Hint is one change after which the unit would start, or would have others
// evicted. It was tried out. Which fields mean something depends on the code.
type Hint struct {
	Code HintCode
	// Then is what the unit would do: start, or have Victims evicted.
	Then    sched.Action
	Victims []Victim
	// Set is the name of the set of members that changes, where members differ.
	Set string
	// From and To are of Resource, in base units; of members where Resource is
	// empty; of priorities for HigherPriority.
	Resource resource.Name
	From, To int64
	Model    string // of OtherModel
	NUMA     resource.NUMAPolicy
	Link     resource.LinkRequirement
	Label    constraint.Label // of DropLabel
	Taint    constraint.Taint // of Tolerate
	// Nodes are those to uncordon, of Uncordon, or that have to come back, of
	// NodesBack.
	Nodes []resource.NodeID
	Limit string // of RaiseLimit: its name
	User  string // of RaiseLimit: as in Bound
	// Quota is the limit of a tree that is to be To, of RaiseQuota: its Code says
	// which one of Node.
	Quota quota.Refusal
	// Ends are the units whose ends make room, of WaitFor. Nothing enforces their
	// ends, so no time is known.
	Ends []Victim
}

// GPUs sums the devices of the units that give way or end for the hint.
func (h *Hint) GPUs() resource.Milli {
	var sum resource.Milli
	for _, list := range [][]Victim{h.Victims, h.Ends} {
		for _, v := range list {
			sum += v.GPUs
		}
	}
	return sum
}

// HintCode is the kind of a Hint.
type HintCode string

// The hints, by the sections of the package comment.
const (
	LooserNUMA   HintCode = "LooserNUMA"   // NUMA instead of the policy that it asks for
	LooserLink   HintCode = "LooserLink"   // Link instead of the links that it asks for
	AnyModel     HintCode = "AnyModel"     // GPUs of any model
	OtherModel   HintCode = "OtherModel"   // GPUs of Model
	DropLabel    HintCode = "DropLabel"    // without Label in the node selector
	DropAffinity HintCode = "DropAffinity" // without the required node affinity
	Tolerate     HintCode = "Tolerate"     // with a toleration of Taint

	MayPreempt     HintCode = "MayPreempt"     // preemptionPolicy: PreemptLowerPriority
	HigherPriority HintCode = "HigherPriority" // priority To, with that policy

	LessCPU      HintCode = "LessCPU"      // To millicores, or whole cores, for each member
	LessMemory   HintCode = "LessMemory"   // To bytes for each member
	FewerGPUs    HintCode = "FewerGPUs"    // To devices, in milli, for each member: the most that work
	FewerMembers HintCode = "FewerMembers" // To members: the most that work

	Uncordon   HintCode = "Uncordon"   // Nodes take work again
	NodesBack  HintCode = "NodesBack"  // Nodes are ready again
	RaiseLimit HintCode = "RaiseLimit" // the resource quota Limit is To
	RaiseQuota HintCode = "RaiseQuota" // the limit of a node of a quota tree is To

	WaitFor HintCode = "WaitFor" // Ends have ended
)
