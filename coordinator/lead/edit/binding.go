package edit

import (
	"maps"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
)

// Bindings is the kind QuotaBinding: its objects have the names of namespaces.
var Bindings = Kind[api.QuotaBinding]{
	Noun: "quota binding", Prefix: record.QuotaBindingsPrefix, Decode: api.DecodeQuotaBinding, Codec: AsQuota,
	Meta: func(b *api.QuotaBinding) *api.ObjectMeta { return &b.Metadata },
	Typed: func(b *api.QuotaBinding) api.QuotaBinding {
		return api.QuotaBinding{APIVersion: api.APIVersion, Kind: api.KindQuotaBinding, Spec: b.Spec}
	},
	Judge: judgeBinding,
	Used: func(_ View, _ *api.QuotaBinding, w *Write) *api.Status {
		w.MovesCharges = true
		return nil
	},
	Missing: func(namespace string) *api.Status {
		return api.Errorf(404, "quota binding of namespace %s not found", namespace)
	},
}

// judgeBinding refuses a binding to what does not exist, or to a part of a
// forest. A group that is no leaf of its tree is taken, for trees change, and
// reported: until it is one, units are refused or wait and say so.
func judgeBinding(v View, _ *Kept[api.QuotaBinding], b *api.QuotaBinding, w *Write) *api.Status {
	w.MovesCharges = true
	for _, tree := range slices.Sorted(maps.Keys(b.Spec.Groups)) {
		group := b.Spec.Groups[tree]
		t, exists := v.Cluster.Tree(tree)
		if !exists {
			return api.Errorf(422, "spec.groups.%s: quota tree %s does not exist", tree, tree)
		}
		if !t.Has(group) {
			return api.Errorf(422, "spec.groups.%s: quota tree %s has no node %s", tree, tree, group)
		}
		if !t.Leaf(group) {
			w.Notes = append(w.Notes, Note{"binding_without_leaf", []any{"namespace", b.Metadata.Name, "tree", tree, "group", group}})
		}
	}
	if b.Spec.Forest == "" {
		return nil
	}
	f := v.Objects.Forests.Get(b.Spec.Forest)
	if f == nil {
		return api.Errorf(422, "spec.forest: quota forest %s does not exist", b.Spec.Forest)
	}
	for _, tree := range f.Object.Spec.Trees {
		if b.Spec.Groups[tree] == "" {
			return api.Errorf(422, "spec.groups: forest %s has tree %s, on which no group is named", b.Spec.Forest, tree)
		}
	}
	return nil
}
