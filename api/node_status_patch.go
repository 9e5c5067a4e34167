package api

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/musterd/muster/api/internal/strict"
	"github.com/musterd/muster/resource"
)

// NodeStatusPatch is a merge patch of the amounts of a node that Muster hands out.
// Capacity is taken as the same wish as Allocatable.
type NodeStatusPatch struct {
	Preconditions
	// Wanted are the new amounts in base units, by resource; nil ends the lowering of a
	// resource.
	Wanted map[resource.Name]*int64
	// Fields are the fields of the document that have each amount.
	Fields map[resource.Name]string
	// Ignored are fields of the document without an effect.
	Ignored []string
}

// nodeStatusPatchDocument is a NodeStatusPatch as it is written.
type nodeStatusPatchDocument struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Metadata   struct {
		Name            string `json:"name,omitempty"`
		UID             string `json:"uid,omitempty"`
		ResourceVersion string `json:"resourceVersion,omitempty"`
	} `json:"metadata"`
	Status struct {
		Capacity    map[resource.Name]*string `json:"capacity,omitempty"`
		Allocatable map[resource.Name]*string `json:"allocatable,omitempty"`
		Conditions  []Condition               `json:"conditions,omitempty"`
	} `json:"status"`
}

var nodeStatusPatchDecoder = strict.For[nodeStatusPatchDocument]()

// DecodeNodeStatusPatch reads a merge patch, or a strategic merge patch, of the status
// of a node. An amount lowers the part of the node that Muster hands out; null, and the
// amount that the agent has found, end that. Conditions are the agent's: they are
// accepted and have no effect.
func DecodeNodeStatusPatch(name string, doc []byte) (NodeStatusPatch, *Status) {
	d, status := decode(nodeStatusPatchDecoder, doc)
	if status == nil {
		status = checkKind(d.APIVersion, d.Kind, KindNode)
	}
	if status != nil {
		return NodeStatusPatch{}, status
	}
	var nulls struct {
		Status map[string]json.RawMessage `json:"status"`
	}
	if err := json.Unmarshal(doc, &nulls); err != nil {
		return NodeStatusPatch{}, Errorf(http.StatusBadRequest, "the patch is not JSON: %v", err)
	}
	p := NodeStatusPatch{
		Preconditions: Preconditions{UID: d.Metadata.UID, ResourceVersion: d.Metadata.ResourceVersion},
		Wanted:        map[resource.Name]*int64{}, Fields: map[resource.Name]string{},
	}
	var faults []*Status
	if d.Metadata.Name != "" && d.Metadata.Name != name {
		faults = append(faults, invalid("metadata.name", "%q: the patch is for node %q, a name cannot be changed", clip(d.Metadata.Name), name))
	}
	for _, field := range []string{"capacity", "allocatable"} {
		if isNull(nulls.Status[field]) {
			faults = append(faults, invalid("status."+field, "null: name the resource whose amount is to be as found, such as {\"nvidia.com/gpu\": null}"))
		}
	}
	faults = append(faults, p.take("status.capacity", d.Status.Capacity), p.take("status.allocatable", d.Status.Allocatable))
	if len(d.Status.Conditions) > 0 {
		p.Ignored = append(p.Ignored, "status.conditions")
	}
	if status := allFaults(faults...); status != nil {
		return NodeStatusPatch{}, status
	}
	if len(p.Wanted) == 0 && len(p.Ignored) == 0 {
		return NodeStatusPatch{}, invalid("status", "the patch changes nothing: want status.allocatable, such as {\"nvidia.com/gpu\": \"6\"}")
	}
	return p, nil
}

// take adds the amounts of one field. Where both fields name a resource, the smaller
// amount is the wish.
func (p *NodeStatusPatch) take(path string, quantities map[resource.Name]*string) *Status {
	faults := []*Status{atMost(path, len(quantities), MaxResources)}
	for _, name := range sortedKeys(quantities) {
		if len(faults) > MaxFaults {
			break
		}
		at, text := key(path, string(name)), quantities[name]
		if text == nil {
			if _, named := p.Wanted[name]; !named {
				p.Wanted[name], p.Fields[name] = nil, at
			}
			continue
		}
		amount, err := ParseAmount(name, *text)
		switch before := p.Wanted[name]; {
		case err != nil:
			faults = append(faults, invalid(at, "%v", err))
		case amount < 0:
			faults = append(faults, invalid(at, "%q is negative", clip(*text)))
		case name == resource.GPU && amount%int64(resource.WholeDevice) != 0:
			faults = append(faults, invalid(at, "%q: whole devices are withheld, want a whole number", clip(*text)))
		case before == nil || amount < *before:
			p.Wanted[name], p.Fields[name] = &amount, at
		}
	}
	return allFaults(faults...)
}

// MarshalJSON is the patch as DecodeNodeStatusPatch reads it.
func (p NodeStatusPatch) MarshalJSON() ([]byte, error) {
	metadata, allocatable := map[string]string{}, map[resource.Name]any{}
	for field, value := range map[string]string{"resourceVersion": p.ResourceVersion, "uid": p.UID} {
		if value != "" {
			metadata[field] = value
		}
	}
	for name, amount := range p.Wanted {
		allocatable[name] = nil
		if amount != nil {
			allocatable[name] = resource.FormatAmount(name, *amount)
		}
	}
	return json.Marshal(map[string]any{"metadata": metadata, "status": map[string]any{"allocatable": allocatable}})
}

// Names are the resources of the patch, ascending.
func (p NodeStatusPatch) Names() []resource.Name { return sortedKeys(p.Wanted) }

// OfCapacity reports whether the capacity names the amount of a resource.
func (p NodeStatusPatch) OfCapacity(name resource.Name) bool {
	return strings.HasPrefix(p.Fields[name], "status.capacity")
}

// Refuse is the refusal of the amount of a resource: 422, with the field.
func (p NodeStatusPatch) Refuse(name resource.Name, format string, args ...any) *Status {
	at := p.Fields[name]
	if at == "" {
		at = key("status.allocatable", string(name))
	}
	return invalid(at, format, args...)
}
