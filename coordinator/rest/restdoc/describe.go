// Package restdoc describes the routes of the REST API for the reference: texts,
// parameters, documents, codes and examples. Tests write docs/reference and the OpenAPI
// document from the descriptions, and hold each registered route to a description. The
// package registers no route and serves no request; coordinator/rest does.
package restdoc

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/service"
)

// Route describes a route of the API, for the reference.
type Route struct {
	Method, Path string
	// Verb and Kind are the right that the route asks for, in the table of rights; ""
	// where the route needs no token.
	Verb service.Verb
	Kind service.Kind
	// Access is "anyone", or the role with the fewest rights that may use the route.
	Access string
	// Everywhere: the role has to count in the whole cluster.
	Everywhere bool
	Text       string
	// Parameters are the names of the query's parameters.
	Parameters []string
	// Body and Answer are kinds of documents, "" without a document. A list is the kind with
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

// description is the part of a Route beside the registration.
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
		return rest.ListParameters
	case d.waits && d.gets:
		return append([]string{"wait"}, rest.GetParameters...)
	case d.waits:
		return append([]string{"wait"}, d.extra...)
	case d.gets:
		return rest.GetParameters
	}
	return d.extra
}

// Routes describes every route, by path and method. A route without a description
// has no texts; a test fails with its name.
func Routes() []Route {
	all := descriptions()
	var routes []Route
	for _, r := range rest.Routes() {
		method, path, _ := strings.Cut(r.Pattern, " ")
		d := all[r.Pattern]
		routes = append(routes, Route{
			Method: method, Path: path, Verb: r.Verb, Kind: r.Kind, Access: r.Access, Everywhere: r.Everywhere, Text: d.text, Parameters: d.parameters(), Body: d.body, Answer: d.answer,
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
