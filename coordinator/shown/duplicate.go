package shown

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// This file is about two agents with one node id, and two nodes with one agent
// address.

const (
	duplicateAgent   = "DuplicateAgent"
	duplicateAddress = "DuplicateAddress"
)

// duplicateWindow is the time in which two agents that register in turn count as
// two agents with one id.
const duplicateWindow = time.Hour

// AddressBook has the nodes by the address of their agents.
type AddressBook map[string][]Neighbour

// Neighbour is a node with an address, and the time of its last registration in
// RFC 3339, "" where it is not known.
type Neighbour struct {
	ID         resource.NodeID
	Registered string
}

// AddressesOf makes the book of some nodes, of one address alone where only is
// not "".
func AddressesOf(nodes iter.Seq2[resource.NodeID, *record.NodeSpec], only string) AddressBook {
	b := AddressBook{}
	for id, spec := range nodes {
		if at := spec.AgentAddr; at != "" && (only == "" || at == only) {
			last := ""
			if n := len(spec.Registrations); n > 0 {
				last = spec.Registrations[n-1]
			}
			b[at] = append(b[at], Neighbour{id, last})
		}
	}
	return b
}

// Beside lists the other nodes with the address of a node, by their ids.
func (b AddressBook) Beside(id resource.NodeID, spec *record.NodeSpec) []Neighbour {
	all := b[spec.AgentAddr]
	if len(all) < 2 {
		return nil
	}
	others := slices.DeleteFunc(slices.Clone(all), func(n Neighbour) bool { return n.ID == id })
	slices.SortFunc(others, func(x, y Neighbour) int { return strings.Compare(string(x.ID), string(y.ID)) })
	return others
}

// showDuplicates adds the conditions DuplicateAgent and DuplicateAddress, where
// they are True.
func (n *Node) showDuplicates(s *api.NodeStatus) {
	if text, at := n.rivals(); text != "" {
		s.Conditions = append(s.Conditions, api.Condition{
			Type: duplicateAgent, Status: "True", Reason: "TwoAgentsRegister", LastTransitionTime: at,
			Message: text + "; set another nodeID in the configuration of one of them and restart its agent",
		})
	}
	if len(n.Beside) == 0 {
		return
	}
	mine := ""
	if k := len(n.Spec.Registrations); k > 0 {
		mine = n.Spec.Registrations[k-1]
	}
	var later, earlier []string
	for _, o := range n.Beside {
		if o.Registered > mine || o.Registered == mine && o.ID > n.ID {
			later = append(later, fmt.Sprintf("%s (at %s)", o.ID, orUnknown(o.Registered)))
		} else {
			earlier = append(earlier, string(o.ID))
		}
	}
	c := api.Condition{Type: duplicateAddress, Status: "True", Reason: "RegisteredLater"}
	if later != nil {
		c.Reason = "AddressTaken"
		c.Message = fmt.Sprintf("%s registered with the agent address %s of this node, after it: the agent there does not answer for %s any more; if the host was renamed: muster delete node %s; else give each agent its own address (listen, advertise)",
			Names(later), n.Spec.AgentAddr, n.ID, n.ID)
	} else {
		c.Message = fmt.Sprintf("%s registered with the agent address %s before this node; if the host was renamed: muster delete node %s", Names(earlier), n.Spec.AgentAddr, earlier[0])
	}
	s.Conditions = append(s.Conditions, c)
}

func orUnknown(at string) string {
	if at == "" {
		return "an unknown time"
	}
	return at
}

// rivals names two agents that register in turn: the first registered again after
// the second, all within duplicateWindow and not longer ago. A host that moves
// registers from another place once, and an agent that crashes registers from one
// place. text is "" without rivals; at is the time of the last registration.
func (n *Node) rivals() (text, at string) {
	times, by := n.Spec.Registrations, n.Spec.RegisteredBy
	if len(by) > len(times) {
		return "", ""
	}
	times = times[len(times)-len(by):]
	for last := len(by) - 1; last >= 2; last-- {
		if n.since(times[last]) > duplicateWindow {
			return "", ""
		}
		for middle := last - 1; middle >= 1; middle-- {
			if by[middle] == by[last] {
				continue
			}
			first := middle - 1
			for first >= 0 && by[first] != by[last] {
				first--
			}
			if first < 0 || spanOf(times[first], times[last]) > duplicateWindow {
				continue
			}
			count := 0
			for _, at := range times {
				if spanOf(at, times[last]) <= duplicateWindow {
					count++
				}
			}
			return fmt.Sprintf("two agents have this node's id and push each other out: %s and %s, %d registrations within %s",
				by[last], by[middle], count, duplicateWindow), times[last]
		}
	}
	return "", ""
}

// since is how long ago a time was, for ever where the time cannot be read.
func (n *Node) since(at string) time.Duration {
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return 1<<63 - 1
	}
	return n.Now.Sub(t)
}

func spanOf(from, to string) time.Duration {
	f, err := time.Parse(time.RFC3339, from)
	if err != nil {
		return 1<<63 - 1
	}
	t, err := time.Parse(time.RFC3339, to)
	if err != nil {
		return 1<<63 - 1
	}
	return t.Sub(f)
}
