package quota

import (
	"maps"
	"slices"
)

// none is the absence of an index.
const none int32 = -1

// outline is the structure of a specification: the nodes that the root
// reaches, parents before children and every subtree in one piece, children in
// ascending order of their names.
type outline struct {
	names  []string
	parent []int32 // none for the root, which is node 0
	last   []int32 // the last node of the subtree
	shape  Shape
}

// outlineOf arranges the nodes and reports those it leaves out.
func outlineOf(specs map[string]NodeSpec) outline {
	var o outline
	children := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		parent := specs[name].Parent
		switch _, known := specs[parent]; {
		case parent == "" && o.shape.Root == "":
			o.shape.Root = name
		case parent == "":
			o.shape.OtherRoots = append(o.shape.OtherRoots, name)
		case !known:
			o.shape.Orphans = append(o.shape.Orphans, name)
		default:
			children[parent] = append(children[parent], name)
		}
	}
	if o.shape.Root != "" {
		o.descend(children)
	}
	o.leftOut(specs)
	return o
}

// descend lays the nodes out in preorder. It keeps its own stack: a tree may
// be deep.
func (o *outline) descend(children map[string][]string) {
	type visit struct {
		name   string
		parent int32
	}
	stack := []visit{{o.shape.Root, none}}
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		at := int32(len(o.names))
		o.names, o.parent, o.last = append(o.names, v.name), append(o.parent, v.parent), append(o.last, at)
		for _, child := range slices.Backward(children[v.name]) {
			stack = append(stack, visit{child, at})
		}
	}
	for n := len(o.names) - 1; n > 0; n-- {
		p := o.parent[n]
		o.last[p] = max(o.last[p], o.last[n])
	}
}

// leftOut fills in the dangling and the cyclic nodes.
func (o *outline) leftOut(specs map[string]NodeSpec) {
	reached := make(map[string]bool, len(o.names))
	for _, name := range o.names {
		reached[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		if !reached[name] {
			o.shape.Dangling = append(o.shape.Dangling, name)
		}
	}
	// walked[name] is the start of the walk that came by.
	walked := map[string]string{}
	for _, start := range o.shape.Dangling {
		name := start
		for walked[name] == "" && specs[name].Parent != "" {
			if _, known := specs[name]; !known {
				break
			}
			walked[name] = start
			name = specs[name].Parent
		}
		if walked[name] != start {
			continue // it ended at a root, an orphan or an earlier walk
		}
		for first := name; ; {
			o.shape.Cyclic = append(o.shape.Cyclic, name)
			if name = specs[name].Parent; name == first {
				break
			}
		}
	}
	slices.Sort(o.shape.Cyclic)
}
