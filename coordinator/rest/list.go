package rest

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/musterd/muster/api"
)

// listed describes the objects of one kind to a list.
type listed[T any] struct {
	meta   func(*T) *api.ObjectMeta
	fields map[string]func(*T) string
}

var listedAllocations = listed[api.Allocation]{
	meta: func(a *api.Allocation) *api.ObjectMeta { return &a.Metadata },
	fields: map[string]func(*api.Allocation) string{
		"metadata.name":      func(a *api.Allocation) string { return a.Metadata.Name },
		"metadata.namespace": func(a *api.Allocation) string { return a.Metadata.Namespace },
		"spec.nodeName":      func(a *api.Allocation) string { return a.Status.NodeName },
		"status.job":         func(a *api.Allocation) string { return a.Status.Job },
		"status.nodeId":      func(a *api.Allocation) string { return string(a.Status.NodeID) },
		"status.phase":       func(a *api.Allocation) string { return string(a.Status.Phase) },
	},
}

var listedJobs = listed[api.Job]{
	meta: func(j *api.Job) *api.ObjectMeta { return &j.Metadata },
	fields: map[string]func(*api.Job) string{
		"metadata.name":      func(j *api.Job) string { return j.Metadata.Name },
		"metadata.namespace": func(j *api.Job) string { return j.Metadata.Namespace },
		"status.phase":       func(j *api.Job) string { return string(j.Status.Phase) },
	},
}

var listedNodes = listed[api.Node]{
	meta: func(n *api.Node) *api.ObjectMeta { return &n.Metadata },
	fields: map[string]func(*api.Node) string{
		"metadata.name":      func(n *api.Node) string { return n.Metadata.Name },
		"spec.unschedulable": func(n *api.Node) string { return strconv.FormatBool(n.Spec.Unschedulable) },
		"status.phase":       func(n *api.Node) string { return n.Status.Phase },
	},
}

// check refuses selectors over fields that the kind does not have, before
// anything is listed.
func (l listed[T]) check(s fieldSelector) *api.Status {
	for _, r := range s {
		if l.fields[r.field] == nil {
			known := make([]string, 0, len(l.fields))
			for f := range l.fields {
				known = append(known, f)
			}
			slices.Sort(known)
			return api.Errorf(http.StatusBadRequest, "query parameter fieldSelector: unknown field %q: want one of %s",
				clip(r.field), strings.Join(known, ", "))
		}
	}
	return nil
}

// page orders items by namespace and name, filters them and cuts one page out;
// more is the position to go on after, "" at the end.
// Each page is of the newest state: an object made or removed between two
// pages shows or not by its position.
func (l listed[T]) page(items []T, q *query) (page []T, more string) {
	order := func(a, b T) int {
		ma, mb := l.meta(&a), l.meta(&b)
		return cmp.Or(cmp.Compare(ma.Namespace, mb.Namespace), cmp.Compare(ma.Name, mb.Name))
	}
	if !slices.IsSortedFunc(items, order) {
		slices.SortFunc(items, order)
	}
	namespace, name, _ := strings.Cut(q.after, "/")
	page = make([]T, 0, len(items))
	for i := range items {
		m := l.meta(&items[i])
		if q.continues && cmp.Or(cmp.Compare(m.Namespace, namespace), cmp.Compare(m.Name, name)) <= 0 {
			continue
		}
		if !q.labels.matches(m.Labels) || !l.matches(&items[i], q.fields) {
			continue
		}
		if len(page) == q.pageLimit() {
			return page, position(l.meta(&page[len(page)-1]))
		}
		page = append(page, items[i])
	}
	return page, ""
}

func (l listed[T]) matches(item *T, s fieldSelector) bool {
	for _, r := range s {
		if (l.fields[r.field](item) == r.value) == r.negated {
			return false
		}
	}
	return true
}
