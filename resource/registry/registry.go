package registry

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/musterd/muster/resource"
)

// Kind says how amounts of a resource are counted.
type Kind string

// The kinds.
const (
	Count Kind = "count" // whole things, or thousandths of them
	Bytes Kind = "bytes"
	// Unique things have names of their own: a request names them.
	Unique Kind = "unique"
)

// Scope says what has an amount of a resource.
type Scope string

// The scopes.
const (
	PerNode    Scope = "node"
	PerCluster Scope = "cluster"
)

// Entry is one resource that a Registry knows.
type Entry struct {
	Name        resource.Name
	DisplayName string
	Unit        string // of one in a quantity: "cores", "bytes", "devices"
	Kind        Kind
	Scope       Scope
	// Rank orders resources in lists: smaller ranks come first.
	Rank int
	// BuiltIn resources are known without any node.
	BuiltIn bool
	// Created: an operator has written an object of the name.
	Created bool
	// Nodes counts the registered nodes that declare an amount of it.
	Nodes int
}

// Registry is the resources of one moment. The zero value knows none; New makes one.
type Registry struct {
	entries map[resource.Name]Entry
	nodes   int
}

// New returns the registry of the built-in resources and of the nodes that the
// capacities are of. An amount of 0 declares nothing. AddDeclared adds the names with a
// domain, on which nodes may disagree.
func New(capacities ...resource.Vector) *Registry {
	r := &Registry{entries: map[resource.Name]Entry{}, nodes: len(capacities)}
	for _, e := range builtIn() {
		r.entries[e.Name] = e
	}
	for _, capacity := range capacities {
		for name := range DeclaredBy(capacity) {
			if !resource.IsExtended(name) { // see AddDeclared
				r.declare(name)
			}
		}
	}
	return r
}

func builtIn() []Entry {
	return []Entry{
		{Name: resource.CPU, DisplayName: "CPU", Unit: "logical CPUs", Kind: Count, Scope: PerNode, Rank: 1, BuiltIn: true},
		{Name: resource.Cores, DisplayName: "whole cores", Unit: "cores", Kind: Count, Scope: PerNode, Rank: 2, BuiltIn: true},
		{Name: resource.Memory, DisplayName: "memory", Unit: "bytes", Kind: Bytes, Scope: PerNode, Rank: 3, BuiltIn: true},
		{Name: resource.GPU, DisplayName: "GPU", Unit: "devices", Kind: Count, Scope: PerNode, Rank: 4, BuiltIn: true},
		{Name: resource.Pods, DisplayName: "members", Unit: "members", Kind: Count, Scope: PerNode, Rank: 5, BuiltIn: true},
		{Name: resource.EphemeralStorage, DisplayName: "storage of the work folder", Unit: "bytes", Kind: Bytes, Scope: PerNode, Rank: 5, BuiltIn: true},
	}
}

// The ranks of names that are not built in.
const (
	rankHugepages = 6
	rankMIG       = 7
	rankGPUModel  = 8
	rankOther     = 100
)

// DeclaredBy are the resources that a node with a capacity declares: those of which it
// has an amount, and whole cores where it has CPUs.
func DeclaredBy(capacity resource.Vector) map[resource.Name]bool {
	names := map[resource.Name]bool{}
	for name, amount := range capacity {
		if amount > 0 {
			names[name] = true
		}
	}
	if names[resource.CPU] {
		names[resource.Cores] = true // a view of the CPUs
	}
	return names
}

// WithModels is the capacity of a node and a device of each model, so that the node
// declares the names under which quotas count these.
func WithModels(capacity resource.Vector, products []string) resource.Vector {
	if len(products) == 0 {
		return capacity
	}
	all := make(resource.Vector, len(capacity)+len(products))
	maps.Copy(all, capacity)
	for _, product := range products {
		all[resource.GPUOf(product)] = int64(resource.WholeDevice)
	}
	return all
}

// Describe is the entry of a name before any node or operator says something of it.
func Describe(name resource.Name) Entry {
	for _, e := range builtIn() {
		if e.Name == name {
			return e
		}
	}
	return declared(name)
}

// BuiltIn are the resources that are known without any node, by rank.
func BuiltIn() []Entry { return builtIn() }

// Create adds a resource that an operator has written an object of, or replaces the
// description of a known one.
func (r *Registry) Create(e Entry) {
	e.Created, e.Nodes = true, r.entries[e.Name].Nodes
	r.entries[e.Name] = e
}

func (r *Registry) declare(name resource.Name) {
	e, known := r.entries[name]
	if !known {
		e = declared(name)
	}
	e.Nodes++
	r.entries[name] = e
}

func declared(name resource.Name) Entry {
	e := Entry{Name: name, DisplayName: string(name), Unit: string(name), Kind: Count, Scope: PerNode, Rank: rankOther}
	if size, ok, err := name.HugepageSize(); ok && err == nil {
		e.DisplayName, e.Unit, e.Kind, e.Rank = "huge pages of "+resource.FormatBytes(size), "bytes", Bytes, rankHugepages
	}
	if profile, ok, err := name.MIGProfile(); ok && err == nil {
		e.DisplayName, e.Unit, e.Rank = "MIG "+profile, "instances", rankMIG
	}
	if model, ok, err := name.GPUModel(); ok && err == nil {
		e.DisplayName, e.Unit, e.Rank = "GPU "+model, "devices", rankGPUModel
	}
	return e
}

// Find returns the entry of a name.
func (r *Registry) Find(name resource.Name) (Entry, bool) {
	e, found := r.entries[name]
	return e, found
}

// Entries lists the resources by rank and name.
func (r *Registry) Entries() []Entry {
	return slices.SortedFunc(maps.Values(r.entries), func(a, b Entry) int { return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Name, b.Name)) })
}

// lastPart is the name behind its domain: gpu of nvidia.com/gpu.
func lastPart(name resource.Name) string {
	return string(name[strings.LastIndexByte(string(name), '/')+1:])
}
