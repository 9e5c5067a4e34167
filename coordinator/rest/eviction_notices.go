package rest

import (
	"mime"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/service"
)

// listEvictions shows the notices of evictions on a node, or watches them. Both are
// made of the allocations that every coordinator follows.
func (h *handler) listEvictions(c *call) (answer, error) {
	if status := c.parameters("watch", "resourceVersion"); status != nil {
		return answer{}, status
	}
	if _, err := h.Service.GetNode(c.ctx(), c.name); err != nil {
		return answer{}, err
	}
	evicted := func(a *api.Allocation) bool {
		_, is := api.EvictionOn(c.name, a)
		return is
	}
	if c.query.watch {
		return h.watchEvictions(c, evicted)
	}
	got, err := h.Service.ListAllocations(c.ctx(), "", service.Page[api.Allocation]{Match: evicted})
	if err != nil {
		return answer{}, err
	}
	list := api.EvictionNoticeList{Kind: "EvictionNoticeList", Metadata: got.Metadata, Items: []api.EvictionNotice{}}
	for i := range got.Items {
		notice, _ := api.EvictionOn(c.name, &got.Items[i])
		list.Items = append(list.Items, notice)
	}
	return ok(list), nil
}

// watchEvictions answers with one notice a line, as the specification shows; with
// Server-Sent Events where the client accepts these alone.
func (h *handler) watchEvictions(c *call, evicted func(*api.Allocation) bool) (answer, error) {
	selects := func(o any) bool { return evicted(o.(*api.Allocation)) }
	return h.openWatch(c, objects.Allocations, func(s *watchStream) {
		s.lines, s.selects = !acceptsEvents(c.r.Header.Get("Accept")), selects
		s.encode = func(e *objects.Event) []byte {
			if kind, _ := objects.Selected(e, selects); kind != objects.Added {
				return nil
			}
			notice, _ := api.EvictionOn(c.name, e.Object.(*api.Allocation))
			if e.ID.Revision > 0 {
				notice.ResourceVersion = e.ID.String()
			}
			return objects.Encode(notice)
		}
	})
}

// acceptsEvents reports whether a client names Server-Sent Events.
func acceptsEvents(accept string) bool {
	for part := range strings.SplitSeq(accept, ",") {
		if media, _, _ := mime.ParseMediaType(part); media == typeEvents {
			return true
		}
	}
	return false
}
