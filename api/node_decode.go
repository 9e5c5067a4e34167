package api

import "github.com/musterd/muster/api/internal/strict"

var nodeDecoder = strict.For[Node]()

// DecodeNode reads a node as a get shows it, for an operator who applies it: the
// status, and all else that only the server sets, is dropped, but for the
// resourceVersion and the labels, among which are the agent's.
func DecodeNode(doc []byte) (*Node, *Status) {
	n, status := decode(nodeDecoder, doc)
	if status != nil {
		return nil, status
	}
	if status := n.Metadata.settable(&n.APIVersion, &n.Kind, KindNode); status != nil {
		return nil, status
	}
	n.Spec.Capacity, n.Spec.Allocatable = nil, nil
	n.Status = NodeStatus{}
	if !IsSubdomain(n.Metadata.Name) {
		return nil, invalid("metadata.name", "%q is not an RFC 1123 subdomain (1..253 of a-z, 0-9, '-' and '.')", clip(n.Metadata.Name))
	}
	if status := CheckAnnotations("metadata.annotations", n.Metadata.Annotations); status != nil {
		return nil, status
	}
	return n, checkTaints("spec.taints", n.Spec.Taints)
}
