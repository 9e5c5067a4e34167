package record

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/musterd/muster/resource"
)

// FreedNode is a node whose agent has freed all members of a transaction.
type FreedNode struct {
	Node resource.NodeID
	// AtMillis is the instant of the agent's message at the leader, as Tx.EndingMillis; 0 in
	// a record of an older version.
	AtMillis int64
}

// MarshalText writes the name of the node and, behind a space, the instant. An older version
// reads them as the name of an unknown node.
func (f FreedNode) MarshalText() ([]byte, error) {
	if f.Node == "" || strings.Contains(string(f.Node), " ") || f.AtMillis < 0 {
		return nil, fmt.Errorf("freed: node %q at %d: want a name without a space, and milliseconds since 1970", f.Node, f.AtMillis)
	}
	if f.AtMillis == 0 {
		return []byte(f.Node), nil
	}
	return strconv.AppendInt(append([]byte(f.Node), ' '), f.AtMillis, 10), nil
}

// UnmarshalText reads the texts of MarshalText and of older versions.
func (f *FreedNode) UnmarshalText(text []byte) error {
	name, instant, given := strings.Cut(string(text), " ")
	is := FreedNode{Node: resource.NodeID(name)}
	if given {
		at, err := strconv.ParseInt(instant, 10, 64)
		if err != nil || at <= 0 {
			return fmt.Errorf("freed: %q: want a node and milliseconds since 1970", text)
		}
		is.AtMillis = at
	}
	if name == "" {
		return fmt.Errorf("freed: %q: want the name of a node", text)
	}
	*f = is
	return nil
}

// HasFreed reports whether a node is in a list.
func HasFreed(freed []FreedNode, node resource.NodeID) bool {
	return slices.ContainsFunc(freed, func(f FreedNode) bool { return f.Node == node })
}
