package edit

import (
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
)

// Forests is the kind QuotaForest.
var Forests = Kind[api.QuotaForest]{
	Noun: "quota forest", Prefix: record.QuotaForestsPrefix, Decode: api.DecodeQuotaForest, Codec: AsQuota,
	Meta: func(f *api.QuotaForest) *api.ObjectMeta { return &f.Metadata },
	Typed: func(f *api.QuotaForest) api.QuotaForest {
		return api.QuotaForest{APIVersion: api.APIVersion, Kind: api.KindQuotaForest, Spec: f.Spec}
	},
	Judge: judgeForest,
	Used: func(v View, f *api.QuotaForest, _ *Write) *api.Status {
		name := f.Metadata.Name
		for _, namespace := range v.Objects.Bindings.Names() {
			if v.Objects.Bindings.Get(namespace).Object.Spec.Forest == name {
				return api.Errorf(409, "quota forest %s is in use: namespace %s is bound to it", name, namespace).Because(api.FailedPrecondition)
			}
		}
		return nil
	},
}

// judgeForest refuses a forest of trees that do not exist or are in another
// one, or that would leave a namespace bound to it without a group.
func judgeForest(v View, _ *Kept[api.QuotaForest], f *api.QuotaForest, _ *Write) *api.Status {
	for i, tree := range f.Spec.Trees {
		if _, exists := v.Cluster.Tree(tree); !exists {
			return api.Errorf(422, "spec.trees[%d]: quota tree %s does not exist", i, tree)
		}
		for _, other := range v.Objects.Forests.Names() {
			if other != f.Metadata.Name && slices.Contains(v.Objects.Forests.Get(other).Object.Spec.Trees, tree) {
				return api.Errorf(409, "spec.trees[%d]: quota tree %s is in forest %s already", i, tree, other).Because(api.FailedPrecondition)
			}
		}
	}
	for _, namespace := range v.Objects.Bindings.Names() {
		b := &v.Objects.Bindings.Get(namespace).Object
		if b.Spec.Forest != f.Metadata.Name {
			continue
		}
		for _, tree := range f.Spec.Trees {
			if b.Spec.Groups[tree] == "" {
				return api.Errorf(409, "quota forest %s: namespace %s is bound to it and has no group on tree %s", f.Metadata.Name, namespace, tree).Because(api.FailedPrecondition)
			}
		}
	}
	return nil
}
