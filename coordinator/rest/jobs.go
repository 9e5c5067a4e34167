package rest

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/service"
)

// jobStatus is the answer of …/status and …/cancel.
type jobStatus struct {
	Status api.JobStatus `json:"status"`
}

func (h *handler) createJob(c *call) (answer, error) {
	if status := c.parameters("wait", "dryRun"); status != nil {
		return answer{}, status
	}
	sent, status := h.document(c)
	if status != nil {
		return answer{}, status
	}
	doc := compacted(sent)
	j, status := decoded(h, c, doc, api.KeptJob)
	if status == nil {
		status = c.caller.CheckPriority(j.Spec.Priority, j.Spec.PriorityClass)
	}
	if status != nil {
		return answer{}, status
	}
	repeated := false
	create, status := h.submission(c, sent, doc, &j.Metadata, &repeated)
	if status != nil {
		return answer{}, status
	}
	if c.query.dryRun {
		got, err := h.Service.TryJob(c.ctx(), create, j, c.explainOptions())
		return found(got, err)
	}
	recordedOnly := j.RecordedOnly()
	got, err := h.Service.CreateJob(c.ctx(), create, j)
	if err != nil {
		return answer{}, err
	}
	c.warnRecordedOnly(recordedOnly)
	return created(service.TypedJob(got), repeated), nil
}

// job gets the job that the URL names, waiting where asked to.
func (h *handler) job(c *call) (*api.Job, error) {
	if status := c.reading("wait"); status != nil {
		return nil, status
	}
	c.waiting()
	return h.Service.GetJob(c.ctx(), c.namespace, c.name, c.query.wait)
}

func (h *handler) getJob(c *call) (answer, error) {
	got, err := h.job(c)
	if err != nil {
		return answer{}, err
	}
	return ok(service.TypedJob(got)), nil
}

func (h *handler) getJobStatus(c *call) (answer, error) {
	got, err := h.job(c)
	if err != nil {
		return answer{}, err
	}
	return ok(jobStatus{Status: got.Status}), nil
}

func (h *handler) listJobs(c *call) (answer, error) {
	if status := c.parameters(ListParameters...); status != nil {
		return answer{}, status
	}
	if status := service.ListedJobs.Check(c.query.Fields); status != nil {
		return answer{}, status
	}
	if c.query.watch {
		return watching(h, c, service.ListedJobs, objects.Jobs)
	}
	return h.listing(c, func() (answer, error) {
		items, meta, more, err := service.ListJobs(c.ctx(), h.Service, c.namespace, &c.query.Selection)
		if err != nil {
			return answer{}, err
		}
		return listAnswer(service.ListedJobs, api.KindJob+"List", meta, items, more)
	})
}

func (h *handler) patchJob(c *call) (answer, error) {
	patch, status := h.workPatch(c, api.KindJob)
	if status != nil {
		return answer{}, status
	}
	got, err := h.Service.PatchJob(c.ctx(), c.namespace, c.name, patch)
	if err != nil {
		return answer{}, err
	}
	return ok(service.TypedJob(got)), nil
}

func (h *handler) cancelJob(c *call) (answer, error) {
	options, status := h.options(c, CancelParameters...)
	if status != nil {
		return answer{}, status
	}
	got, err := h.Service.CancelJob(c.ctx(), c.namespace, c.name, options)
	if err != nil {
		return answer{}, err
	}
	return ok(jobStatus{Status: got.Status}), nil
}

func (h *handler) boostJob(c *call) (answer, error) {
	if status := c.parameters(); status != nil {
		return answer{}, status
	}
	body, status := h.document(c)
	if status != nil {
		return answer{}, status
	}
	o, status := api.DecodeBoostOptions(body)
	if status != nil {
		return answer{}, status
	}
	got, err := h.Service.BoostJob(c.ctx(), c.namespace, c.name, o)
	if err != nil {
		return answer{}, err
	}
	return ok(got), nil
}

func (h *handler) deleteJob(c *call) (answer, error) {
	options, status := h.options(c, DeleteParameters...)
	if status != nil {
		return answer{}, status
	}
	if c.query.dryRun {
		return h.untouchedJob(c)
	}
	got, err := h.Service.DeleteJob(c.ctx(), c.namespace, c.name, options)
	if err != nil {
		return answer{}, err
	}
	return ok(service.TypedJob(got)), nil
}

func (h *handler) explainJob(c *call) (answer, error) {
	if status := c.parameters("nodes"); status != nil {
		return answer{}, status
	}
	got, err := h.Service.ExplainJob(c.ctx(), c.namespace, c.name, c.explainOptions())
	if err != nil {
		return answer{}, err
	}
	got.Kind = "Explanation"
	return ok(got), nil
}

// untouchedJob is the answer to a dry run of a deletion: the job as it is.
func (h *handler) untouchedJob(c *call) (answer, error) {
	got, err := h.Service.GetJob(c.ctx(), c.namespace, c.name, 0)
	if err != nil {
		return answer{}, err
	}
	return ok(service.TypedJob(got)), nil
}
