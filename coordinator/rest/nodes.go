package rest

import (
	"net"
	"net/http"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/service"
)

func (h *handler) listNodes(c *call) (answer, error) {
	if status := c.parameters(ListParameters...); status != nil {
		return answer{}, status
	}
	if status := service.ListedNodes.Check(c.query.Fields); status != nil {
		return answer{}, status
	}
	if c.query.watch {
		return watching(h, c, service.ListedNodes, objects.Nodes)
	}
	return h.listing(c, func() (answer, error) {
		got, err := h.Service.ListNodes(c.ctx())
		if err != nil {
			return answer{}, err
		}
		items, more := service.ListedNodes.Cut(got.Items, &c.query.Selection)
		return listAnswer(service.ListedNodes, api.KindNode+"List", got.Metadata, items, more)
	})
}

func (h *handler) getNode(c *call) (answer, error) {
	if status := c.reading(); status != nil {
		return answer{}, status
	}
	got, err := h.Service.GetNode(c.ctx(), c.name)
	if err != nil {
		return answer{}, err
	}
	return ok(service.TypedNode(got)), nil
}

// createNode creates a node, for an operator or for the host itself with its bootstrap
// token.
func (h *handler) createNode(c *call) (answer, error) {
	if status := c.parameters(); status != nil {
		return answer{}, status
	}
	doc, status := h.document(c)
	if status != nil {
		return answer{}, status
	}
	n, status := decoded(h, c, doc, api.DecodeNodeCreate)
	if status != nil {
		return answer{}, status
	}
	create := func() (*api.Node, error) { return service.CreateNode(c.ctx(), h.Service, h.Identity, n, c.caller.Name) }
	if c.bootstrapToken != "" {
		from, _, _ := net.SplitHostPort(c.r.RemoteAddr)
		id, err := h.Identity.AdmitCreation(c.ctx(), c.bootstrapToken, n.Metadata.Name, from)
		if err != nil {
			return answer{}, err
		}
		ProveConnection(c.ctx())
		host := service.Host(n.Metadata.Name, id)
		if status := h.Access.Authorize(host, service.VerbCreate, service.KindNodes, "", n.Metadata.Name); status != nil {
			return answer{}, status
		}
		h.identify(c, host, to(service.VerbCreate, service.KindNodes))
		create = func() (*api.Node, error) { return h.Service.CreateNode(c.ctx(), n) }
	}
	got, err := create()
	if err != nil {
		return answer{}, err
	}
	c.warnRecordedOnly(n.RecordedOnly())
	return answer{code: http.StatusCreated, body: service.TypedNode(got)}, nil
}

// patchNodeStatus takes a merge patch of the allocatable part.
func (h *handler) patchNodeStatus(c *call) (answer, error) {
	if status := c.parameters(); status != nil {
		return answer{}, status
	}
	if _, status := contentType(c.r, typeMergePatch, typeStrategic); status != nil {
		return answer{}, status
	}
	body, status := h.body(c)
	if status != nil {
		return answer{}, status
	}
	patch, status := api.DecodeNodeStatusPatch(c.name, body)
	if status != nil {
		return answer{}, status
	}
	got, err := h.Service.PatchNodeStatus(c.ctx(), c.name, patch)
	if err != nil {
		return answer{}, err
	}
	service.WarnIgnored(c.ctx(), patch)
	return ok(service.TypedNode(got)), nil
}

// patchNode takes a merge patch of labels, annotations, taints and
// unschedulable.
func (h *handler) patchNode(c *call) (answer, error) {
	if status := c.parameters(); status != nil {
		return answer{}, status
	}
	kind, status := contentType(c.r, typeMergePatch, typeStrategic)
	if status != nil {
		return answer{}, status
	}
	body, status := h.body(c)
	if status != nil {
		return answer{}, status
	}
	decode := api.DecodeNodePatch
	if kind == typeStrategic {
		decode = api.DecodeNodeStrategicPatch
	}
	patch, status := decode(c.name, body)
	if status != nil {
		return answer{}, status
	}
	got, err := h.Service.PatchNode(c.ctx(), c.name, patch)
	if err != nil {
		return answer{}, err
	}
	return ok(service.TypedNode(got)), nil
}

// approveNode approves all that a node has registered.
func (h *handler) approveNode(c *call) (answer, error) {
	if status := c.parameters(); status != nil {
		return answer{}, status
	}
	body, status := h.optional(c)
	if status != nil {
		return answer{}, status
	}
	o, status := api.DecodeApproveOptions(body)
	if status != nil {
		return answer{}, status
	}
	got, err := h.Service.ApproveNode(c.ctx(), c.name, o)
	if err != nil {
		return answer{}, err
	}
	return ok(service.TypedNode(got)), nil
}

// deleteNode forgets a node that has left for good.
func (h *handler) deleteNode(c *call) (answer, error) {
	require, status := h.removal(c)
	if status != nil {
		return answer{}, status
	}
	got, err := h.Service.DeleteNode(c.ctx(), c.name, require)
	if err != nil {
		return answer{}, err
	}
	return ok(service.TypedNode(got)), nil
}

// fenceNode fences a node; it may be confirmed dead in the same request.
func (h *handler) fenceNode(c *call) (answer, error) {
	if status := c.parameters(); status != nil {
		return answer{}, status
	}
	body, status := h.optional(c)
	if status != nil {
		return answer{}, status
	}
	o, status := api.DecodeFenceOptions(body)
	if status != nil {
		return answer{}, status
	}
	got, err := h.Service.FenceNode(c.ctx(), c.name, o)
	if err != nil {
		return answer{}, err
	}
	return ok(service.TypedNode(got)), nil
}

// reconcileNode ends a node's quarantine, or shows the effect without it.
func (h *handler) reconcileNode(c *call) (answer, error) {
	if status := c.parameters(); status != nil {
		return answer{}, status
	}
	body, status := h.optional(c)
	if status != nil {
		return answer{}, status
	}
	o, status := api.DecodeReconcileOptions(body)
	if status != nil {
		return answer{}, status
	}
	got, err := h.Service.ReconcileNode(c.ctx(), c.name, o)
	if err != nil {
		return answer{}, err
	}
	return ok(got), nil
}
