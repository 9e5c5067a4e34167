package events

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/musterd/muster/resource"
)

// Tree is a quota tree: its nodes by name. Its use makes no event.
type Tree struct {
	Created string // RFC 3339
	Nodes   map[string]TreeNode
}

// TreeNode is a node of a tree. Limits are all its limits but the quota, in any form that
// is the same for the same limits.
type TreeNode struct {
	Parent string
	Hard   bool
	Quota  resource.Vector
	Limits string
}

// mostChanges bounds the changes of a tree that a message names.
const mostChanges = 8

// OfTree returns the events of a change of a quota tree: before is nil for a tree that is
// new, after for a tree that is gone.
func OfTree(before, after *Tree) []Happening {
	switch {
	case after == nil:
		return []Happening{normal("Deleted", "", "the tree limits nothing any more")}
	case before == nil:
		return []Happening{normal("Created", after.Created, "the tree has %s", counted(len(after.Nodes), "node"))}
	}
	var changed []string
	for _, name := range slices.Sorted(maps.Keys(after.Nodes)) {
		if was, there := before.Nodes[name]; !there {
			changed = append(changed, "node "+name+" is new")
		} else if text := was.changes(after.Nodes[name]); text != "" {
			changed = append(changed, "node "+name+": "+text)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before.Nodes)) {
		if _, stays := after.Nodes[name]; !stays {
			changed = append(changed, "node "+name+" is gone")
		}
	}
	if len(changed) == 0 {
		return nil
	}
	if more := len(changed) - mostChanges; more > 0 {
		changed = append(changed[:mostChanges], counted(more, "more change"))
	}
	return []Happening{normal("LimitsChanged", "", "%s", strings.Join(changed, "; "))}
}

// changes lists the differences of a node, "" for none.
func (n TreeNode) changes(is TreeNode) string {
	var parts []string
	if n.Parent != is.Parent {
		parts = append(parts, fmt.Sprintf("below %s, before below %s", orRoot(is.Parent), orRoot(n.Parent)))
	}
	if n.Hard != is.Hard {
		parts = append(parts, map[bool]string{true: "hard", false: "no longer hard"}[is.Hard])
	}
	if text := changes("", n.Quota, is.Quota); text != "" {
		parts = append(parts, text)
	}
	if n.Limits != is.Limits {
		parts = append(parts, "other limits")
	}
	return strings.Join(parts, ", ")
}

func orRoot(parent string) string {
	if parent == "" {
		return "nothing"
	}
	return parent
}
