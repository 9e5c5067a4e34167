package rest

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/service"
)

// listing reads the parameters of a list.
func listing[T any](c *call, l service.Listed[T]) *api.Status {
	if status := c.parameters(ListParameters...); status != nil {
		return status
	}
	return l.Check(c.query.Fields)
}

func (h *handler) listResourceQuotas(c *call) (answer, error) {
	if status := listing(c, service.ListedResourceQuotas); status != nil {
		return answer{}, status
	}
	if c.query.watch {
		return watching(h, c, service.ListedResourceQuotas, objects.ResourceQuotas)
	}
	return h.listing(c, func() (answer, error) {
		got, err := h.Service.ListResourceQuotas(c.ctx(), c.namespace)
		if err != nil {
			return answer{}, err
		}
		items, more := service.ListedResourceQuotas.Cut(got.Items, &c.query.Selection)
		return listAnswer(service.ListedResourceQuotas, api.KindResourceQuota+"List", got.Metadata, items, more)
	})
}

func (h *handler) listQuotaTrees(c *call) (answer, error) {
	if status := listing(c, service.ListedQuotaTrees); status != nil {
		return answer{}, status
	}
	if c.query.watch {
		return watching(h, c, service.ListedQuotaTrees, objects.QuotaTrees)
	}
	return h.listing(c, func() (answer, error) {
		got, err := h.Service.ListQuotaTrees(c.ctx())
		if err != nil {
			return answer{}, err
		}
		items, more := service.ListedQuotaTrees.Cut(got.Items, &c.query.Selection)
		return listAnswer(service.ListedQuotaTrees, api.KindQuotaTree+"List", got.Metadata, items, more)
	})
}

func (h *handler) listQuotaForests(c *call) (answer, error) {
	if status := listing(c, service.ListedQuotaForests); status != nil {
		return answer{}, status
	}
	if c.query.watch {
		return watching(h, c, service.ListedQuotaForests, objects.QuotaForests)
	}
	return h.listing(c, func() (answer, error) {
		got, err := h.Service.ListQuotaForests(c.ctx())
		if err != nil {
			return answer{}, err
		}
		items, more := service.ListedQuotaForests.Cut(got.Items, &c.query.Selection)
		return listAnswer(service.ListedQuotaForests, api.KindQuotaForest+"List", got.Metadata, items, more)
	})
}

func (h *handler) listQuotaBindings(c *call) (answer, error) {
	if status := listing(c, service.ListedQuotaBindings); status != nil {
		return answer{}, status
	}
	if c.query.watch {
		return watching(h, c, service.ListedQuotaBindings, objects.QuotaBindings)
	}
	return h.listing(c, func() (answer, error) {
		got, err := h.Service.ListQuotaBindings(c.ctx())
		if err != nil {
			return answer{}, err
		}
		items, more := service.ListedQuotaBindings.Cut(got.Items, &c.query.Selection)
		return listAnswer(service.ListedQuotaBindings, api.KindQuotaBinding+"List", got.Metadata, items, more)
	})
}

// nameAlone is the metadata of a status.
type nameAlone struct {
	Name string `json:"name"`
}

func (h *handler) getResourceQuotaStatus(c *call) (answer, error) {
	got, err := h.resourceQuotas().got(c)
	if err != nil {
		return answer{}, err
	}
	return ok(struct {
		Metadata nameAlone               `json:"metadata"`
		Status   api.ResourceQuotaStatus `json:"status"`
	}{nameAlone{got.Metadata.Name}, got.Status}), nil
}

func (h *handler) getQuotaTreeStatus(c *call) (answer, error) {
	got, err := h.quotaTrees().got(c)
	if err != nil {
		return answer{}, err
	}
	return ok(struct {
		Metadata nameAlone           `json:"metadata"`
		Status   api.QuotaTreeStatus `json:"status"`
	}{nameAlone{got.Metadata.Name}, got.Status}), nil
}

func (h *handler) explainQuota(c *call) (answer, error) {
	if status := c.parameters(); status != nil {
		return answer{}, status
	}
	got, err := h.Service.ExplainQuota(c.ctx(), c.namespace, c.name)
	if err != nil {
		return answer{}, err
	}
	got.Kind = "QuotaExplanation"
	return ok(got), nil
}

func (h *handler) tryQuota(c *call) (answer, error) {
	if status := c.parameters(); status != nil {
		return answer{}, status
	}
	consumer, status := h.document(c)
	if status != nil {
		return answer{}, status
	}
	got, err := h.Service.TryQuota(c.ctx(), consumer, c.caller)
	if err != nil {
		return answer{}, err
	}
	got.Kind = "QuotaDryRun"
	return ok(got), nil
}

func (h *handler) reclaimQuota(c *call) (answer, error) {
	if status := c.parameters("dryRun"); status != nil {
		return answer{}, status
	}
	body, status := h.optional(c)
	if status != nil {
		return answer{}, status
	}
	options, status := api.DecodeReclaimOptions(body)
	if status != nil {
		return answer{}, status
	}
	got, err := h.Service.ReclaimQuota(c.ctx(), c.name, c.query.dryRun, options.GracePeriodSeconds)
	if err != nil {
		return answer{}, err
	}
	got.Kind = api.KindQuotaReclaim
	return ok(got), nil
}
