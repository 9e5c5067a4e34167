package rest

import (
	"context"

	"github.com/musterd/muster/coordinator/service"
)

// Route is one route as its registration knows it.
type Route struct {
	// Pattern is the route as net/http writes it.
	Pattern string
	// Verb and Kind are the right that the route asks for; "" where anyone may use it.
	Verb service.Verb
	Kind service.Kind
	// Access is "anyone", or the role with the fewest rights that may use the route.
	Access string
	// Everywhere: the role has to count in the whole cluster.
	Everywhere bool
}

// Routes are all routes of a handler with each option, in no order. coordinator/rest/restdoc
// adds their texts.
func Routes() []Route {
	h := NewHandler(Config{Service: struct{ service.Service }{}, Authenticator: service.StaticToken(""), Roster: struct{ service.Roster }{}, Ready: func(context.Context) error { return nil }}).(*handler)
	var routes []Route
	for pattern, who := range h.routes {
		if pattern != "/" {
			routes = append(routes, Route{Pattern: pattern, Verb: who.verb, Kind: who.kind, Access: who.needs().String(), Everywhere: who.everywhere(pattern)})
		}
	}
	return routes
}
