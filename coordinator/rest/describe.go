package rest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
)

// Route describes one route of the API, for its reference.
type Route struct {
	Method, Path string
	// Verb and Kind are the right that the route asks for, in the table of rights; ""
	// where anyone may use the route.
	Verb service.Verb
	Kind service.Kind
	// Access is "anyone", or the role with the fewest rights that may use the route.
	Access string
	// Everywhere: the role has to count in the whole cluster.
	Everywhere bool
	Text       string
	// Parameters are the names of the query's parameters.
	Parameters []string
	// Body and Answer are kinds of documents, "" for none. A list is the kind with
	// List behind it.
	Body, Answer string
	// Optional bodies may be left out.
	Optional bool
	// Code is the status code of success.
	Code int
	// Refusals are the codes that mean more here than in general.
	Refusals map[int]string
	// Example is a target and, behind a space, a body in JSON.
	Example string
}

// Pattern is the route as net/http writes it.
func (r Route) Pattern() string { return strings.TrimSpace(r.Method + " " + r.Path) }

// description is the part of a Route that its registration does not know.
type description struct {
	text          string
	body, answer  string
	optional      bool
	code          int
	refusals      map[int]string
	example       string
	extra         []string // parameters beside those of a list
	isList, waits bool
	gets          bool // one object, in the state that resourceVersion asks for
}

func (d description) parameters() []string {
	switch {
	case d.isList:
		return listParameters
	case d.waits && d.gets:
		return append([]string{"wait"}, getParameters...)
	case d.waits:
		return append([]string{"wait"}, d.extra...)
	case d.gets:
		return getParameters
	}
	return d.extra
}

// Routes describes every route, by path and method. A route without a description
// has none of its texts; a test names it.
func Routes() []Route {
	h := NewHandler(Config{Service: struct{ service.Service }{}, Authenticator: service.StaticToken(""), Roster: struct{ service.Roster }{}, Ready: func(context.Context) error { return nil }}).(*handler)
	all := descriptions()
	var routes []Route
	for pattern, who := range h.routes {
		if pattern == "/" {
			continue
		}
		method, path, _ := strings.Cut(pattern, " ")
		d := all[pattern]
		routes = append(routes, Route{
			Method: method, Path: path, Verb: who.verb, Kind: who.kind, Access: who.needs().String(), Everywhere: who.everywhere(pattern), Text: d.text, Parameters: d.parameters(), Body: d.body, Answer: d.answer,
			Optional: d.optional, Code: d.code, Refusals: d.refusals, Example: d.example,
		})
	}
	slices.SortFunc(routes, func(a, b Route) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method))
	})
	return routes
}

// Described are the patterns that have a description.
func Described() []string { return slices.Sorted(maps.Keys(descriptions())) }

// FieldSelectors are the fields that the lists of a kind select by.
func FieldSelectors() map[string][]string {
	return map[string][]string{
		api.KindAllocation: slices.Sorted(maps.Keys(service.ListedAllocations.Fields)), api.KindJob: slices.Sorted(maps.Keys(service.ListedJobs.Fields)),
		api.KindNode: slices.Sorted(maps.Keys(service.ListedNodes.Fields)), api.KindResourceQuota: slices.Sorted(maps.Keys(service.ListedResourceQuotas.Fields)),
		api.KindQuotaTree: slices.Sorted(maps.Keys(service.ListedQuotaTrees.Fields)), api.KindQuotaForest: slices.Sorted(maps.Keys(service.ListedQuotaForests.Fields)),
		api.KindQuotaBinding: slices.Sorted(maps.Keys(service.ListedQuotaBindings.Fields)),
		api.KindTenant:       slices.Sorted(maps.Keys(service.ListedTenants.Fields)), api.KindNamespace: slices.Sorted(maps.Keys(service.ListedNamespaces.Fields)),
		api.KindRoleBinding:   slices.Sorted(maps.Keys(service.ListedRoleBindings.Fields)),
		api.KindPriorityClass: slices.Sorted(maps.Keys(service.WrittenClasses.Listed.Fields)),
		api.KindQueue:         slices.Sorted(maps.Keys(service.WrittenQueues.Listed.Fields)),
		api.KindEvent:         slices.Sorted(maps.Keys(service.ListedEvents.Fields)),
	}
}
