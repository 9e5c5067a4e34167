package rest

import (
	"net/http"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/service"
)

// submission reads the parts that every create has in common: the document as it was
// sent and as it is kept; meta is the decoded document's.
func (h *handler) submission(c *call, sent, doc []byte, meta *api.ObjectMeta, repeated *bool) (service.Create, *api.Status) {
	if meta.Namespace != "" && meta.Namespace != c.namespace {
		return service.Create{}, api.Errorf(http.StatusBadRequest, "metadata.namespace: %q does not match the namespace %q of the URL",
			meta.Namespace, c.namespace)
	}
	meta.Namespace = c.namespace
	id, status := c.idempotencyKey()
	if status != nil {
		return service.Create{}, status
	}
	if status := h.park(c); status != nil {
		return service.Create{}, status
	}
	c.waiting()
	return service.Create{Namespace: c.namespace, Document: doc, Hash: service.HashOf(sent), RequestID: id, Repeated: repeated, Wait: c.query.wait}, nil
}

// created is 201, or 200 for the repetition of an earlier request.
func created(body any, repeated bool) answer {
	a := answer{code: http.StatusCreated, body: body}
	if repeated {
		a.code = http.StatusOK
	}
	return a
}

func (h *handler) createAllocation(c *call) (answer, error) {
	if status := c.parameters("wait", "dryRun"); status != nil {
		return answer{}, status
	}
	sent, status := h.document(c)
	if status != nil {
		return answer{}, status
	}
	doc := compacted(sent)
	a, status := decoded(h, c, doc, api.KeptAllocation)
	if status == nil {
		status = c.caller.CheckPriority(a.Spec.Priority, a.Spec.PriorityClass)
	}
	if status != nil {
		return answer{}, status
	}
	repeated := false
	create, status := h.submission(c, sent, doc, &a.Metadata, &repeated)
	if status != nil {
		return answer{}, status
	}
	if c.query.dryRun {
		got, err := h.Service.TryAllocation(c.ctx(), create, a, c.explainOptions())
		return found(got, err)
	}
	recordedOnly := a.RecordedOnly()
	got, err := h.Service.CreateAllocation(c.ctx(), create, a)
	if err != nil {
		return answer{}, err
	}
	c.warnRecordedOnly(recordedOnly)
	return created(service.TypedAllocation(got), repeated), nil
}

func (h *handler) getAllocation(c *call) (answer, error) {
	if status := c.reading("wait"); status != nil {
		return answer{}, status
	}
	c.waiting()
	got, err := h.Service.GetAllocation(c.ctx(), c.namespace, c.name, c.query.wait)
	if err != nil {
		return answer{}, err
	}
	return ok(service.TypedAllocation(got)), nil
}

func (h *handler) listAllocations(c *call) (answer, error) {
	if status := c.parameters(ListParameters...); status != nil {
		return answer{}, status
	}
	if status := service.ListedAllocations.Check(c.query.Fields); status != nil {
		return answer{}, status
	}
	if c.query.watch {
		return watching(h, c, service.ListedAllocations, objects.Allocations)
	}
	return h.listing(c, func() (answer, error) {
		items, meta, more, err := service.ListAllocations(c.ctx(), h.Service, c.namespace, &c.query.Selection)
		if err != nil {
			return answer{}, err
		}
		return listAnswer(service.ListedAllocations, api.KindAllocation+"List", meta, items, more)
	})
}

// workPatch reads a merge patch of an allocation or a job. A strategic merge patch is
// the same: no list in them may change.
func (h *handler) workPatch(c *call, kind string) (api.WorkPatch, *api.Status) {
	if status := c.parameters(); status != nil {
		return api.WorkPatch{}, status
	}
	if _, status := contentType(c.r, typeMergePatch, typeStrategic); status != nil {
		return api.WorkPatch{}, status
	}
	body, status := h.body(c)
	if status != nil {
		return api.WorkPatch{}, status
	}
	return api.DecodeWorkPatch(kind, c.namespace, c.name, body)
}

func (h *handler) patchAllocation(c *call) (answer, error) {
	patch, status := h.workPatch(c, api.KindAllocation)
	if status != nil {
		return answer{}, status
	}
	got, err := h.Service.PatchAllocation(c.ctx(), c.namespace, c.name, patch)
	if err != nil {
		return answer{}, err
	}
	return ok(service.TypedAllocation(got)), nil
}

func (h *handler) deleteAllocation(c *call) (answer, error) {
	options, status := h.options(c, DeleteParameters...)
	if status != nil {
		return answer{}, status
	}
	if c.query.dryRun {
		return h.untouchedAllocation(c)
	}
	got, err := h.Service.DeleteAllocation(c.ctx(), c.namespace, c.name, options)
	if err != nil {
		return answer{}, err
	}
	return ok(service.TypedAllocation(got)), nil
}

func (h *handler) explainAllocation(c *call) (answer, error) {
	if status := c.parameters("nodes"); status != nil {
		return answer{}, status
	}
	got, err := h.Service.ExplainAllocation(c.ctx(), c.namespace, c.name, c.explainOptions())
	if err != nil {
		return answer{}, err
	}
	got.Kind = "Explanation"
	return ok(got), nil
}

// explainOptions are the caller's, as the query has them.
func (c *call) explainOptions() service.ExplainOptions {
	return service.ExplainOptions{Operator: c.caller.Everywhere(service.Tenants), EveryNode: c.query.everyNode}
}

// untouchedAllocation is the answer to a dry run of a deletion: the allocation as
// it is, or the refusal that the deletion would get.
func (h *handler) untouchedAllocation(c *call) (answer, error) {
	got, err := h.Service.GetAllocation(c.ctx(), c.namespace, c.name, 0)
	if err != nil {
		return answer{}, err
	}
	if status := service.Deletable(got); status != nil {
		return answer{}, status
	}
	return ok(service.TypedAllocation(got)), nil
}
