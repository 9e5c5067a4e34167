package registry

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/musterd/muster/resource"
)

// MaxDeclared is the most names that the nodes of a cluster declare together. It bounds
// the registry: a node that lies takes names away from no earlier node.
const MaxDeclared = 256

// Declaration is the declaration of one node: names with the ways to count them. Names
// that are built in are left out.
type Declaration struct {
	Node string
	// Since orders the nodes, the earliest first; then the node's name does.
	Since    string
	Declared []Declared
}

// Declared is one resource as a node declares it.
type Declared struct {
	Name resource.Name
	Kind Kind
	Unit string
}

// Conflict is a resource that a node declares otherwise than an earlier node or an
// operator. The node's amount of the resource is not handed out.
type Conflict struct {
	Name resource.Name
	// Detail names the two declarations.
	Detail string
}

// Agreement is the outcome of all declarations: each name means one thing.
type Agreement struct {
	// Entries are the names that nodes declare, with the kind and the unit of the
	// earliest node, or of an operator.
	Entries map[resource.Name]Entry
	// Conflicts are those of each node that has any, ascending by name.
	Conflicts map[string][]Conflict

	first map[resource.Name]string // the earliest node with each name
	last  Declaration              // the latest node
}

// Agree compares declarations. created are the resources that operators have written:
// their kind and scope win where they are given. The order of the declarations does not matter.
func Agree(declarations []Declaration, created map[resource.Name]Entry) Agreement {
	a := Agreement{Entries: map[resource.Name]Entry{}, Conflicts: map[string][]Conflict{}, first: map[resource.Name]string{}}
	for _, d := range slices.SortedFunc(slices.Values(declarations), earlier) {
		a.add(d, created)
	}
	return a
}

// Add adds the declaration of one more node, if the node is later than all others, and
// reports whether the node is. created is as in Agree.
func (a *Agreement) Add(d Declaration, created map[resource.Name]Entry) bool {
	if a.first == nil || earlier(a.last, d) >= 0 {
		return false
	}
	a.add(d, created)
	return true
}

// earlier is the order of the nodes.
func earlier(a, b Declaration) int {
	return cmp.Or(cmp.Compare(a.Since, b.Since), cmp.Compare(a.Node, b.Node))
}

func (a *Agreement) add(d Declaration, created map[resource.Name]Entry) {
	a.last = d
	var conflicts []Conflict
	for _, r := range d.Declared {
		if detail := a.take(r, d.Node, created); detail != "" {
			conflicts = append(conflicts, Conflict{r.Name, detail})
		}
	}
	if len(conflicts) > 0 {
		slices.SortFunc(conflicts, func(a, b Conflict) int { return cmp.Compare(a.Name, b.Name) })
		a.Conflicts[d.Node] = conflicts
	}
}

// take adds one declaration, or says why it conflicts.
func (a *Agreement) take(r Declared, node string, created map[resource.Name]Entry) string {
	if by, known := created[r.Name]; known {
		switch {
		case by.Scope == PerCluster:
			return fmt.Sprintf("%s: an operator has created the resource with scope %s, so no node has an amount of it", r.Name, by.Scope)
		case by.Kind != "" && by.Kind != r.Kind:
			return fmt.Sprintf("%s: the node declares kind %s, an operator has created the resource with kind %s", r.Name, r.Kind, by.Kind)
		}
	}
	e, known := a.Entries[r.Name]
	switch {
	case !known && len(a.Entries) >= MaxDeclared:
		return fmt.Sprintf("%s: the nodes of the cluster declare %d names already, the most there can be", r.Name, MaxDeclared)
	case !known:
		e = declared(r.Name)
		e.Kind, e.Unit = r.Kind, cmp.Or(r.Unit, e.Unit)
		a.first[r.Name] = node
	case e.Kind != r.Kind:
		return fmt.Sprintf("%s: the node declares kind %s, node %s declared it before with kind %s", r.Name, r.Kind, a.first[r.Name], e.Kind)
	case r.Unit != "" && e.Unit != r.Unit:
		return fmt.Sprintf("%s: the node declares unit %q, node %s declared it before with unit %q", r.Name, r.Unit, a.first[r.Name], e.Unit)
	}
	e.Nodes++
	a.Entries[r.Name] = e
	return ""
}

// AddDeclared adds the names that nodes declare to the registry, before Create adds
// those of operators.
func (r *Registry) AddDeclared(a Agreement) {
	for name, e := range a.Entries {
		r.entries[name] = e
	}
}
