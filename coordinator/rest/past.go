package rest

import (
	"github.com/musterd/muster/coordinator/service"
)

// routePast registers the lists of the past.
func (h *handler) routePast(v1 string) {
	list := to(service.VerbList, service.KindPast)
	h.route("GET "+v1+"/history/allocations", list, func(c *call) (answer, error) {
		return past(c, func(q service.PastQuery) (any, error) { return h.Past.PastAllocations(c.ctx(), q) })
	})
	h.route("GET "+v1+"/history/preemptions", list, func(c *call) (answer, error) {
		return past(c, func(q service.PastQuery) (any, error) { return h.Past.PastPreemptions(c.ctx(), q) })
	})
	h.route("GET "+v1+"/history/events", list, func(c *call) (answer, error) {
		return past(c, func(q service.PastQuery) (any, error) { return h.Past.PastEvents(c.ctx(), q) })
	})
}

// past reads a query about the past and answers with a page.
func past(c *call, ask func(service.PastQuery) (any, error)) (answer, error) {
	c.query.past = &service.PastQuery{Sees: service.PastOf(c.caller), Limit: service.DefaultPastLimit}
	if status := c.parameters(service.PastParameters...); status != nil {
		return answer{}, status
	}
	got, err := ask(*c.query.past)
	if err != nil {
		return answer{}, err
	}
	return ok(got), nil
}
