package rest

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/service"
)

// routeWritten registers the endpoints of the kinds of package service's Written.
func (h *handler) routeWritten(v1 string) {
	routeKind(h, v1, service.WrittenQueues, objects.Queues)
	routeKind(h, v1, service.WrittenClasses, objects.PriorityClasses)
}

// routeKind registers the endpoints of one kind.
func routeKind[T api.QuotaDocument](h *handler, v1 string, k service.WrittenKind[T], kind objects.Kind) {
	all := v1 + "/" + string(k.Kind)
	h.route("GET "+all, to(service.VerbList, k.Kind), func(c *call) (answer, error) {
		if status := listing(c, k.Listed); status != nil {
			return answer{}, status
		}
		if c.query.watch {
			return watching(h, c, k.Listed, kind)
		}
		return h.listing(c, func() (answer, error) {
			got, meta, err := k.List(c.ctx(), h.Service)
			if err != nil {
				return answer{}, err
			}
			items, more := k.Listed.Cut(got, &c.query.Selection)
			return listAnswer(k.Listed, k.Document+"List", meta, items, more)
		})
	})
	routeDocuments(h, all, "/{name}", k.Kind, documented[T]{k.Documents(h.Service), clusterKey, nil})
}
