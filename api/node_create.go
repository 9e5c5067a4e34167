package api

import (
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/registry"
)

// DecodeNodeCreate reads the node of a creation: labels, annotations, taints and
// unschedulable, as operators set them, and in spec the capacity and the allocatable
// part that the host is expected to have. The rest of the metadata, and the status,
// are the server's and are dropped.
func DecodeNodeCreate(doc []byte) (*Node, *Status) {
	return decodeValid(nodeDecoder, doc, func(n *Node) *Status {
		status := checkKind(n.APIVersion, n.Kind, KindNode)
		n.APIVersion, n.Kind, n.Status = APIVersion, KindNode, NodeStatus{}
		n.Metadata.dropServerFields()
		return allFaults(
			status,
			checkNodeName("metadata.name", n.Metadata.Name),
			checkNoNamespace(n.Metadata),
			CheckNodeLabels("metadata.labels", n.Metadata.Labels),
			CheckAnnotations("metadata.annotations", n.Metadata.Annotations),
			checkExpected("spec.capacity", n.Spec.Capacity),
			checkExpected("spec.allocatable", n.Spec.Allocatable),
			checkAllocatable(n.Spec),
			checkTaints("spec.taints", n.Spec.Taints),
			CheckKubeletPool("spec.kubelet", n.Spec.Kubelet),
		)
	})
}

func checkNoNamespace(m ObjectMeta) *Status {
	if m.Namespace == "" {
		return nil
	}
	return invalid("metadata.namespace", "%q: a node is in no namespace, leave it out", clip(m.Namespace))
}

// maxNodeName is the length of the longest node id that an agent can have.
const maxNodeName = 63

func checkNodeName(path, name string) *Status {
	switch {
	case name == "":
		return invalid(path, "required: the node id of the agent, 1..%d of a-z, 0-9, '-' and '.'", maxNodeName)
	case !IsSubdomain(name) || len(name) > maxNodeName:
		return invalid(path, "%q is not a node id: 1..%d of a-z, 0-9, '-' and '.'", clip(name), maxNodeName)
	}
	return nil
}

// checkExpected validates the amounts that a host is expected to have. Resources that
// Muster does not hand out may be named, and are recorded alone.
func checkExpected(path string, quantities map[resource.Name]string) *Status {
	faults := []*Status{atMost(path, len(quantities), MaxResources)}
	known := registry.New()
	for _, name := range sortedKeys(quantities) {
		if len(faults) > MaxFaults {
			break
		}
		at := key(path, string(name))
		amount, err := resource.ParseAmount(name, quantities[name])
		verdict := known.Judge(name)
		switch {
		case !IsLabelKey(string(name)):
			faults = append(faults, invalid(at, "%q is not the name of a resource: %s", clip(string(name)), labelKeyRule))
		case verdict.Code == registry.Misspelt:
			faults = append(faults, invalid(at, "no resource is named %q; is %q meant?", name, verdict.Near))
		case verdict.Code == registry.Malformed:
			faults = append(faults, invalid(at, "%v", verdict.Fault))
		case err != nil:
			faults = append(faults, invalid(at, "%v", errorBelow(err)))
		case amount < 0:
			faults = append(faults, invalid(at, "%q is negative", clip(quantities[name])))
		}
	}
	return allFaults(faults...)
}

// checkAllocatable refuses an allocatable part that is more than the capacity beside it.
func checkAllocatable(s NodeSpec) *Status {
	var faults []*Status
	for _, name := range sortedKeys(s.Allocatable) {
		whole, named := s.Capacity[name]
		most, err := resource.ParseAmount(name, whole)
		if !named || err != nil {
			continue
		}
		if part, err := resource.ParseAmount(name, s.Allocatable[name]); err == nil && part > most {
			faults = append(faults, invalid(key("spec.allocatable", string(name)), "%q is more than the capacity %q", clip(s.Allocatable[name]), clip(whole)))
		}
	}
	return allFaults(faults...)
}

// RecordedOnly lists, by name, the fields of a creation that are kept and shown and
// have no effect: expected amounts that are not compared with those of the agent.
func (n *Node) RecordedOnly() []string {
	var fields []string
	for _, of := range []struct {
		path       string
		quantities map[resource.Name]string
	}{{"spec.capacity", n.Spec.Capacity}, {"spec.allocatable", n.Spec.Allocatable}} {
		for _, name := range sortedKeys(of.quantities) {
			if CheckResource(name) != nil || resource.IsGPUModel(name) {
				fields = append(fields, key(of.path, string(name)))
			}
		}
	}
	return fields
}
