package storydoc

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/lead/charges"
	"github.com/musterd/muster/resource"
)

// The requests of this file panic where a line of a transcript makes no valid object.

// PutNamespace is a request for a namespace with the rules of the options.
func PutNamespace(name string, options map[string]string) lead.Put[api.Namespace] {
	n := &api.Namespace{Kind: api.KindNamespace, Metadata: api.ObjectMeta{Name: name}}
	n.Spec = api.NamespaceSpec{
		Tenant: options["tenant"], Admission: options["admission"], Unsatisfiable: options["unsatisfiable"], DeviceLost: options["lost"], DefaultQueue: options["queue"],
	}
	if text := options["ceiling"]; text != "" {
		ceiling := int32(Number(text))
		n.Spec.PriorityCeiling = &ceiling
	}
	if text := options["allocations"]; text != "" {
		most := int64(Number(text))
		n.Spec.Limits = &api.NamespaceCounts{Allocations: &most}
	}
	if status := n.Validate(); status != nil {
		panic(status.Message)
	}
	return lead.Put[api.Namespace]{Object: n}
}

// PutQueue is a request for a queue with the rules of the options.
func PutQueue(name string, options map[string]string) lead.Put[api.Queue] {
	q := &api.Queue{Kind: api.KindQueue, Metadata: api.ObjectMeta{Name: name}, Spec: api.QueueSpec{
		State: options["state"], Order: options["order"], PlacementPolicy: options["policy"],
		MaxRunningMembers: int32(Number(options["running"])), MaxWaitingMembers: int32(Number(options["waiting"])),
	}}
	if status := q.Validate(); status != nil {
		panic(status.Message)
	}
	return lead.Put[api.Queue]{Object: q}
}

// PutClass is a request for a priority class with the rules of the options.
func PutClass(name string, options map[string]string) lead.Put[api.PriorityClass] {
	c := &api.PriorityClass{Kind: api.KindPriorityClass, Metadata: api.ObjectMeta{Name: name}, Spec: api.PriorityClassSpec{
		Value: int32(Number(options["value"])), PreemptionPolicy: options["policy"], GlobalDefault: options["default"] != "",
	}}
	if status := c.Validate(); status != nil {
		panic(status.Message)
	}
	return lead.Put[api.PriorityClass]{Object: c}
}

// PatchOf is a change of the allocation of a name in the namespace default.
func PatchOf(name, text string) api.WorkPatch {
	p, status := api.DecodeWorkPatch(api.KindAllocation, "default", name, []byte(text))
	if status != nil {
		panic(status.Message)
	}
	return p
}

// Remove is a request for the deletion of a namespace, a tenant, a queue or a class.
func Remove(kind, name string) lead.Request {
	if kind == "class" {
		return lead.Delete[api.PriorityClass]{Name: name}
	}
	if kind == "queue" {
		return lead.Delete[api.Queue]{Name: name}
	}
	if kind == "tenant" {
		return lead.Delete[api.Tenant]{Name: name}
	}
	return lead.Delete[api.Namespace]{Name: name}
}

// Number reads a number; an empty text is 0.
func Number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil && text != "" {
		panic(err)
	}
	return n
}

// PutTree is a request for a quota tree of groups like lab:all:8.
func PutTree(name string, groups []string) lead.PutQuotaTree {
	nodes := map[string]any{}
	for _, g := range groups {
		f := strings.Split(g, ":")
		if f[1] == "-" {
			f[1] = "nil"
		}
		nodes[f[0]] = map[string]any{"parent": f[1], "quota": map[string]string{string(resource.GPU): f[2]}}
	}
	text, err := json.Marshal(map[string]any{"resourceNames": []resource.Name{resource.GPU}, "nodes": nodes})
	if err != nil {
		panic(err)
	}
	object := &api.QuotaTree{Kind: api.KindQuotaTree, Metadata: api.ObjectMeta{Name: name}, Spec: text}
	spec, status := charges.SpecOf(*object)
	if status != nil {
		panic(status.Message)
	}
	return lead.PutQuotaTree{Object: object, Spec: spec}
}
