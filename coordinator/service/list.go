package service

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/musterd/muster/api"
)

// Listed describes the objects of one kind to a list.
type Listed[T any] struct {
	Meta   func(*T) *api.ObjectMeta
	Fields map[string]func(*T) string
	// Gives, where not nil, is the role that an object gives: a caller sees the objects
	// with a role that the caller may give (MayGrant).
	Gives func(*T) Grant
}

var ListedAllocations = Listed[api.Allocation]{
	Meta: func(a *api.Allocation) *api.ObjectMeta { return &a.Metadata },
	Fields: map[string]func(*api.Allocation) string{
		"metadata.name":      func(a *api.Allocation) string { return a.Metadata.Name },
		"metadata.namespace": func(a *api.Allocation) string { return a.Metadata.Namespace },
		"spec.nodeName":      func(a *api.Allocation) string { return a.Status.NodeName },
		"status.job":         func(a *api.Allocation) string { return a.Status.Job },
		"status.nodeId":      func(a *api.Allocation) string { return string(a.Status.NodeID) },
		"status.phase":       func(a *api.Allocation) string { return string(a.Status.Phase) },
	},
}

var ListedJobs = Listed[api.Job]{
	Meta: func(j *api.Job) *api.ObjectMeta { return &j.Metadata },
	Fields: map[string]func(*api.Job) string{
		"metadata.name":      func(j *api.Job) string { return j.Metadata.Name },
		"metadata.namespace": func(j *api.Job) string { return j.Metadata.Namespace },
		"status.phase":       func(j *api.Job) string { return string(j.Status.Phase) },
	},
}

var ListedNodes = Listed[api.Node]{
	Meta: func(n *api.Node) *api.ObjectMeta { return &n.Metadata },
	Fields: map[string]func(*api.Node) string{
		"metadata.name":      func(n *api.Node) string { return n.Metadata.Name },
		"spec.unschedulable": func(n *api.Node) string { return strconv.FormatBool(n.Spec.Unschedulable) },
		"status.phase":       func(n *api.Node) string { return n.Status.Phase },
	},
}

var ListedResourceQuotas = Listed[api.ResourceQuota]{
	Meta: func(q *api.ResourceQuota) *api.ObjectMeta { return &q.Metadata },
	Fields: map[string]func(*api.ResourceQuota) string{
		"metadata.name":      func(q *api.ResourceQuota) string { return q.Metadata.Name },
		"metadata.namespace": func(q *api.ResourceQuota) string { return q.Metadata.Namespace },
	},
}

var ListedQuotaTrees = Listed[api.QuotaTree]{
	Meta: func(t *api.QuotaTree) *api.ObjectMeta { return &t.Metadata },
	Fields: map[string]func(*api.QuotaTree) string{
		"metadata.name": func(t *api.QuotaTree) string { return t.Metadata.Name },
	},
}

var ListedQuotaForests = Listed[api.QuotaForest]{
	Meta: func(f *api.QuotaForest) *api.ObjectMeta { return &f.Metadata },
	Fields: map[string]func(*api.QuotaForest) string{
		"metadata.name": func(f *api.QuotaForest) string { return f.Metadata.Name },
	},
}

var ListedQuotaBindings = Listed[api.QuotaBinding]{
	Meta: func(b *api.QuotaBinding) *api.ObjectMeta { return &b.Metadata },
	Fields: map[string]func(*api.QuotaBinding) string{
		"metadata.name": func(b *api.QuotaBinding) string { return b.Metadata.Name },
		"spec.forest":   func(b *api.QuotaBinding) string { return b.Spec.Forest },
	},
}

// Check refuses selectors over fields that the kind does not have, before
// anything is listed.
func (l Listed[T]) Check(s FieldSelector) *api.Status {
	for _, r := range s {
		if r.where == nil && l.Fields[r.field] == nil {
			known := make([]string, 0, len(l.Fields))
			for f := range l.Fields {
				known = append(known, f)
			}
			slices.Sort(known)
			return api.Errorf(http.StatusBadRequest, "query parameter fieldSelector: unknown field %q: want one of %s",
				Clip(r.field), strings.Join(known, ", "))
		}
	}
	return nil
}

// Cut orders items by namespace and name, filters them and cuts one page out;
// more is the position to go on after, "" at the end.
// Each page is of the newest state: an object made or removed between two
// pages shows or not by its position.
func (l Listed[T]) Cut(items []T, q *Selection) (page []T, more string) {
	order := func(a, b T) int {
		ma, mb := l.Meta(&a), l.Meta(&b)
		return cmp.Or(cmp.Compare(ma.Namespace, mb.Namespace), cmp.Compare(ma.Name, mb.Name))
	}
	if !slices.IsSortedFunc(items, order) {
		slices.SortFunc(items, order)
	}
	namespace, name, _ := strings.Cut(q.after, "/")
	page = make([]T, 0, len(items))
	for i := range items {
		m := l.Meta(&items[i])
		if q.continues && cmp.Or(cmp.Compare(m.Namespace, namespace), cmp.Compare(m.Name, name)) <= 0 {
			continue
		}
		if !q.Labels.matches(m.Labels) || !l.matches(&items[i], q.Fields) || !l.sees(q.giver, &items[i]) {
			continue
		}
		if len(page) == q.pageLimit() {
			return page, Position(l.Meta(&page[len(page)-1]))
		}
		page = append(page, items[i])
	}
	return page, ""
}

// sees reports whether a caller sees an object; nil sees all.
func (l Listed[T]) sees(giver *Principal, item *T) bool {
	return giver == nil || l.Gives == nil || MayGrant(*giver, l.Gives(item)) == nil
}

func (l Listed[T]) matches(item *T, s FieldSelector) bool {
	for _, r := range s {
		if r.where != nil {
			if !r.where(func(field string) string { return l.Fields[field](item) }) {
				return false
			}
			continue
		}
		if (l.Fields[r.field](item) == r.value) == r.negated {
			return false
		}
	}
	return true
}
