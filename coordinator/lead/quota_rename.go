package lead

import (
	"maps"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/charges"
	"github.com/musterd/muster/coordinator/lead/desk"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// This file renames nodes of quota trees. Records of units that run keep the name
// that they were committed with; the tree's own key says which name a former one
// has now. Bindings are written anew with the tree. A group in the coordinators'
// configuration, or in a unit's specification, counts under its former name too.

// RenameQuotaNode renames a node of a tree. Its result is the tree.
type RenameQuotaNode struct{ Tree, From, To string }

func (r RenameQuotaNode) serve(l *Leader, c *desk.Call) { l.changeQuotas(c, r.judge) }

func (r RenameQuotaNode) judge(l *Leader) (w edit.Write, status *api.Status) {
	t, status := l.quotaTree(r.Tree)
	if status == nil {
		status = t.JudgeRename(r.From, r.To, l.chargedTo)
	}
	if status != nil {
		return w, status
	}
	object := api.QuotaTree{APIVersion: api.APIVersion, Kind: api.KindQuotaTree, Metadata: t.Object.Metadata}
	if object.Spec, status = charges.RenamedSpec(t.Object.Spec, r.From, r.To); status != nil {
		return w, status
	}
	spec, status := charges.SpecOf(object)
	if status != nil {
		return w, status
	}
	former := t.RenamedNames(r.From, r.To)
	rec := charges.RecordOf(object.Metadata, object)
	rec.Former = former
	w.Rev, w.UID = t.Rev, object.Metadata.UID
	w.Op = record.Put(record.QuotaKey{Kind: record.QuotaTrees, Name: r.Tree}.Key(), record.MustEncode(*rec))
	w.Also = l.bindingsRenamed(r)
	if len(w.Also)+1 > l.post.MaxOps() {
		return w, api.Errorf(422, "quota tree %s: %d bindings name the group %s, the store takes %d changes in one transaction: bind some of the namespaces elsewhere first", r.Tree, len(w.Also), r.From, l.post.MaxOps()-1)
	}
	w.Landed = func(rev resource.Revision) {
		object.Metadata = edit.At(object.Metadata, rev)
		must(l.quotas.RenameNode(r.Tree, r.From, r.To))
		again, err := l.quotas.SetTree(object, rev, spec, former)
		must(err) // it was judged
		l.rechargeUnits(r.Tree, again)
		l.reportShape(r.Tree)
	}
	w.Result = func() any { return l.quotas.ShowTree(l.quotas.Tree(r.Tree)) }
	return w, nil
}

// chargedTo counts the units whose records charge certain groups of a tree, and
// names the first of them.
func (l *Leader) chargedTo(tree string, selects func(group string) bool) (charged int, first string) {
	for _, a := range l.work.Attempts {
		if slices.ContainsFunc(a.Charges, func(c record.Charge) bool { return c.Tree == tree && selects(c.Group) }) {
			charged++
			if first == "" || a.Unit.Path < first {
				first = a.Unit.Path
			}
		}
	}
	return charged, first
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
			Op: record.Put(record.QuotaKey{Kind: record.QuotaNamespaces, Name: namespace}.Key(), record.MustEncode(*charges.RecordOf(object.Metadata, object))), Rev: b.Rev,
			Landed: func(rev resource.Revision) {
				l.objects.Bindings.Set(object, rev)
			},
		})
	}
	return also
}
