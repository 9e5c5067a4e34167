package lead

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// This file renames nodes of quota trees. Records of units that run keep the name
// that they were committed with; the tree's own key says which name a former one
// has now. Bindings are written anew with the tree. A group in the coordinators'
// configuration, or in a unit's specification, counts under its former name too.

// RenameQuotaNode renames a node of a tree. Its result is the tree.
type RenameQuotaNode struct{ Tree, From, To string }

func (r RenameQuotaNode) serve(l *Leader, c *call) { l.changeQuotas(c, r.judge) }

// maxFormerNames bounds the former names of a tree's nodes.
const maxFormerNames = 256

func (r RenameQuotaNode) judge(l *Leader) (w edit.Write, status *api.Status) {
	t, status := l.quotaTree(r.Tree)
	if status == nil {
		status = l.judgeRename(t, r)
	}
	if status != nil {
		return w, status
	}
	object := api.QuotaTree{APIVersion: api.APIVersion, Kind: api.KindQuotaTree, Metadata: t.Object.Metadata}
	if object.Spec, status = renamedSpec(t.Object.Spec, r.From, r.To); status != nil {
		return w, status
	}
	spec, status := SpecOf(object)
	if status != nil {
		return w, status
	}
	former := renamedNames(t.former, r.From, r.To)
	rec := recordOf(object.Metadata, object)
	rec.Former = former
	w.Rev, w.UID = t.Rev, object.Metadata.UID
	w.Op = record.Put(record.QuotaKey{Kind: record.QuotaTrees, Name: r.Tree}.Key(), record.MustEncode(*rec))
	w.Also = l.bindingsRenamed(r)
	if len(w.Also)+1 > l.maxOps {
		return w, api.Errorf(422, "quota tree %s: %d bindings name the group %s, the store takes %d changes in one transaction: bind some of the namespaces elsewhere first", r.Tree, len(w.Also), r.From, l.maxOps-1)
	}
	w.Landed = func(rev resource.Revision) {
		object.Metadata = edit.At(object.Metadata, rev)
		must(l.quotas.renameNode(r.Tree, r.From, r.To))
		again, err := l.quotas.setTree(object, rev, spec, former)
		must(err) // it was judged
		l.rechargeUnits(r.Tree, again)
		l.reportShape(r.Tree)
	}
	w.Result = func() any { return l.quotaTreeObject(l.quotas.treeObjects[r.Tree]) }
	return w, nil
}

// judgeRename refuses a rename of a node that is none, or to a name in use.
func (l *Leader) judgeRename(t *quotaTree, r RenameQuotaNode) *api.Status {
	_, known := t.spec.Nodes[r.From]
	_, clash := t.spec.Nodes[r.To]
	switch {
	case !known:
		if now, renamed := t.former[r.From]; renamed {
			return api.Errorf(404, "quota tree %s has no node %s: it was renamed to %s", r.Tree, r.From, now)
		}
		return api.Errorf(404, "quota tree %s has no node %s", r.Tree, r.From)
	case clash:
		return api.Errorf(409, "quota tree %s: rename %s: there is a node %s already", r.Tree, r.From, r.To).Because(api.AlreadyExists)
	case len(t.former) >= maxFormerNames && t.former[r.To] == "":
		return api.Errorf(422, "quota tree %s has %d former names of nodes, the most there may be: delete the tree and make it anew under another name", r.Tree, len(t.former))
	}
	if now, former := t.former[r.To]; former && now != r.From {
		return l.mayReuse(r.Tree, r.To, now)
	}
	return nil
}

// mayReuse refuses a node of a name that units which run are still recorded with:
// they belong to the node that has another name now.
func (l *Leader) mayReuse(tree, former, now string) *api.Status {
	charged, first := l.chargedTo(tree, func(group string) bool { return group == former })
	if charged == 0 {
		return nil
	}
	return api.Errorf(409, "quota tree %s: the node %s was renamed to %s, and of the units that run %d are recorded with the former name, %s among them: choose another name, or wait for their end",
		tree, former, now, charged, first).Because(api.FailedPrecondition)
}

// chargedTo counts the units whose records charge certain groups of a tree, and
// names the first of them.
func (l *Leader) chargedTo(tree string, selects func(group string) bool) (charged int, first string) {
	for _, a := range l.attempts {
		if slices.ContainsFunc(a.charges, func(c record.Charge) bool { return c.Tree == tree && selects(c.Group) }) {
			charged++
			if first == "" || a.unit.path < first {
				first = a.unit.path
			}
		}
	}
	return charged, first
}

// keepFormer are the former names of a tree's nodes for a specification that
// replaces the tree's: a name that has a node again is no former one. It refuses a
// specification that takes such a name from units that run.
func (l *Leader) keepFormer(tree string, spec quota.TreeSpec) (map[string]string, *api.Status) {
	t := l.quotas.treeObjects[tree]
	if t == nil {
		return nil, nil
	}
	former := maps.Clone(t.former)
	for _, name := range slices.Sorted(maps.Keys(t.former)) {
		if _, again := spec.Nodes[name]; again {
			if status := l.mayReuse(tree, name, t.former[name]); status != nil {
				return nil, status
			}
			delete(former, name)
		}
	}
	return former, nil
}

// detachedWarning warns of units that belong to no group of the tree any more.
func (t *quotaTree) detachedWarning() []string {
	if len(t.detached) == 0 {
		return nil
	}
	name := t.Object.Metadata.Name
	return []string{fmt.Sprintf("of the units that run, %d belong to no group of quota tree %s any more, %s among them: the root counts them until they end; `muster quota rename %s OLD NEW` renames a group with its units",
		len(t.detached), name, slices.Min(slices.Collect(maps.Keys(t.detached))), name)}
}

// bindingsRenamed are the writes of the bindings that name the node.
func (l *Leader) bindingsRenamed(r RenameQuotaNode) []edit.Write {
	var also []edit.Write
	for _, namespace := range l.objects.Bindings.Names() {
		b := l.objects.Bindings.Get(namespace)
		if b.Object.Spec.Groups[r.Tree] != r.From {
			continue
		}
		object := b.Object
		object.Spec.Groups = maps.Clone(object.Spec.Groups)
		object.Spec.Groups[r.Tree] = r.To
		also = append(also, edit.Write{
			Op: record.Put(record.QuotaKey{Kind: record.QuotaNamespaces, Name: namespace}.Key(), record.MustEncode(*recordOf(object.Metadata, object))), Rev: b.Rev,
			Landed: func(rev resource.Revision) {
				l.objects.Bindings.Set(object, rev)
			},
		})
	}
	return also
}

// renamedNames are the former names after one more rename, each with the name of
// today.
func renamedNames(former map[string]string, from, to string) map[string]string {
	names := map[string]string{from: to}
	for name, now := range former {
		if now == from {
			now = to
		}
		names[name] = now
	}
	delete(names, to) // it is a node's own name again
	return names
}

// renamedSpec is a tree's specification with a node renamed; every other value is
// as it was written.
func renamedSpec(spec json.RawMessage, from, to string) (json.RawMessage, *api.Status) {
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

// group is the name of today of a node of the tree.
func (t *quotaTree) group(name string) string {
	if now, renamed := t.former[name]; renamed {
		return now
	}
	return name
}

// group is the name of today of a node of a tree.
func (q *quotas) group(tree, name string) string {
	if t := q.treeObjects[tree]; t != nil {
		return t.group(name)
	}
	return name
}

// renameNode renames a node in the specification that the next update of the tree
// takes over: its consumers follow.
func (q *quotas) renameNode(tree, from, to string) error {
	cache, err := q.trees.Cache(tree)
	if err != nil {
		return fmt.Errorf("rename %s: %w", from, err)
	}
	return cache.RenameNode(from, to)
}
