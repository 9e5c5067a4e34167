package charges

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/quota"
)

// maxFormerNames bounds the former names of a tree's nodes.
const maxFormerNames = 256

// ChargedTo counts the units whose records charge certain groups of a tree, and names the
// first of them.
type ChargedTo func(tree string, selects func(group string) bool) (charged int, first string)

// JudgeRename refuses a rename of a node that is none, or to a name in use.
func (t *Tree) JudgeRename(from, to string, charged ChargedTo) *api.Status {
	tree := t.Object.Metadata.Name
	_, known := t.spec.Nodes[from]
	_, clash := t.spec.Nodes[to]
	switch {
	case !known:
		if now, renamed := t.former[from]; renamed {
			return api.Errorf(404, "quota tree %s has no node %s: it was renamed to %s", tree, from, now)
		}
		return api.Errorf(404, "quota tree %s has no node %s", tree, from)
	case clash:
		return api.Errorf(409, "quota tree %s: rename %s: there is a node %s already", tree, from, to).Because(api.AlreadyExists)
	case len(t.former) >= maxFormerNames && t.former[to] == "":
		return api.Errorf(422, "quota tree %s has %d former names of nodes, the most there may be: delete the tree and make it anew under another name", tree, len(t.former))
	}
	if now, former := t.former[to]; former && now != from {
		return charged.mayReuse(tree, to, now)
	}
	return nil
}

// mayReuse refuses a node of a name that units which run are still recorded with:
// they belong to the node that has another name now.
func (c ChargedTo) mayReuse(tree, former, now string) *api.Status {
	charged, first := c(tree, func(group string) bool { return group == former })
	if charged == 0 {
		return nil
	}
	return api.Errorf(409, "quota tree %s: the node %s was renamed to %s, and of the units that run %d are recorded with the former name, %s among them: choose another name, or wait for their end",
		tree, former, now, charged, first).Because(api.FailedPrecondition)
}

// KeepFormer are the former names of a tree's nodes for a specification that
// replaces the tree's: a name that has a node again is no former one. It refuses a
// specification that takes such a name from units that run.
func (q *Book) KeepFormer(tree string, spec quota.TreeSpec, charged ChargedTo) (map[string]string, *api.Status) {
	t := q.treeObjects[tree]
	if t == nil {
		return nil, nil
	}
	former := maps.Clone(t.former)
	for _, name := range slices.Sorted(maps.Keys(t.former)) {
		if _, again := spec.Nodes[name]; again {
			if status := charged.mayReuse(tree, name, t.former[name]); status != nil {
				return nil, status
			}
			delete(former, name)
		}
	}
	return former, nil
}

// DetachedWarning warns of units that belong to no group of the tree any more.
func (t *Tree) DetachedWarning() []string {
	if len(t.detached) == 0 {
		return nil
	}
	name := t.Object.Metadata.Name
	return []string{fmt.Sprintf("of the units that run, %d belong to no group of quota tree %s any more, %s among them: the root counts them until they end; `muster quota rename %s OLD NEW` renames a group with its units",
		len(t.detached), name, slices.Min(slices.Collect(maps.Keys(t.detached))), name)}
}

// RenamedNames are the former names after one more rename, each with the name of
// today.
func (t *Tree) RenamedNames(from, to string) map[string]string {
	names := map[string]string{from: to}
	for name, now := range t.former {
		if now == from {
			now = to
		}
		names[name] = now
	}
	delete(names, to) // it is a node's own name again
	return names
}

// RenamedSpec is a tree's specification with a node renamed; every other value is
// as it was written.
func RenamedSpec(spec json.RawMessage, from, to string) (json.RawMessage, *api.Status) {
	var all map[string]json.RawMessage
	var nodes map[string]map[string]json.RawMessage
	err := json.Unmarshal(spec, &all)
	if err == nil {
		err = json.Unmarshal(all["nodes"], &nodes)
	}
	if err != nil {
		return nil, api.Errorf(422, "spec: %v: change the tree by PUT", err)
	}
	nodes[to] = nodes[from]
	delete(nodes, from)
	for _, node := range nodes {
		var parent string
		if json.Unmarshal(node["parent"], &parent) == nil && parent == from {
			node["parent"], _ = json.Marshal(to) // strings always encode
		}
	}
	if all["nodes"], err = json.Marshal(nodes); err == nil {
		spec, err = json.Marshal(all)
	}
	if err != nil {
		return nil, api.Errorf(500, "encode the tree: %v", err)
	}
	return spec, nil
}
