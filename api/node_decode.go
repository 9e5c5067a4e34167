package api

import "github.com/musterd/muster/api/internal/strict"

var nodeDecoder = strict.For[Node]()

// DecodeNode reads a node as a get shows it, for an operator who applies or creates it:
// the status, and all else that only the server sets, is dropped, but for the
// resourceVersion and the labels, among which are the agent's.
func DecodeNode(doc []byte) (*Node, *Status) {
	return decodeValid(nodeDecoder, doc, func(n *Node) *Status {
		status := n.Metadata.settable(&n.APIVersion, &n.Kind, KindNode)
		n.Status = NodeStatus{}
		return allFaults(
			status,
			checkNodeName("metadata.name", n.Metadata.Name),
			checkLabels("metadata.labels", n.Metadata.Labels),
			CheckAnnotations("metadata.annotations", n.Metadata.Annotations),
			checkExpected("spec.capacity", n.Spec.Capacity),
			checkExpected("spec.allocatable", n.Spec.Allocatable),
			checkTaints("spec.taints", n.Spec.Taints),
		)
	})
}

// Creation is the node without the labels that follow from a registration, so that a
// node as a get shows it can be created anew.
func (n *Node) Creation() *Node {
	c := *n
	c.Metadata.Labels = nil
	for k, v := range n.Metadata.Labels {
		if ReservedLabel(k) {
			continue
		}
		if c.Metadata.Labels == nil {
			c.Metadata.Labels = map[string]string{}
		}
		c.Metadata.Labels[k] = v
	}
	return &c
}
