package rest

import "github.com/musterd/muster/api"

var listedResourceQuotas = listed[api.ResourceQuota]{
	meta: func(q *api.ResourceQuota) *api.ObjectMeta { return &q.Metadata },
	fields: map[string]func(*api.ResourceQuota) string{
		"metadata.name":      func(q *api.ResourceQuota) string { return q.Metadata.Name },
		"metadata.namespace": func(q *api.ResourceQuota) string { return q.Metadata.Namespace },
	},
}

var listedQuotaTrees = listed[api.QuotaTree]{
	meta: func(t *api.QuotaTree) *api.ObjectMeta { return &t.Metadata },
	fields: map[string]func(*api.QuotaTree) string{
		"metadata.name": func(t *api.QuotaTree) string { return t.Metadata.Name },
	},
}

var listedQuotaForests = listed[api.QuotaForest]{
	meta: func(f *api.QuotaForest) *api.ObjectMeta { return &f.Metadata },
	fields: map[string]func(*api.QuotaForest) string{
		"metadata.name": func(f *api.QuotaForest) string { return f.Metadata.Name },
	},
}

var listedQuotaBindings = listed[api.QuotaBinding]{
	meta: func(b *api.QuotaBinding) *api.ObjectMeta { return &b.Metadata },
	fields: map[string]func(*api.QuotaBinding) string{
		"metadata.name": func(b *api.QuotaBinding) string { return b.Metadata.Name },
		"spec.forest":   func(b *api.QuotaBinding) string { return b.Spec.Forest },
	},
}

// listing reads the parameters of a list.
func listing[T any](c *call, l listed[T]) *api.Status {
	if status := c.parameters(listParameters...); status != nil {
		return status
	}
	return l.check(c.query.fields)
}

func (h *handler) listResourceQuotas(c *call) (answer, error) {
	if status := listing(c, listedResourceQuotas); status != nil {
		return answer{}, status
	}
	return h.listing(c, func() (answer, error) {
		got, err := h.Service.ListResourceQuotas(c.ctx(), c.namespace)
		if err != nil {
			return answer{}, err
		}
		items, more := listedResourceQuotas.page(got.Items, &c.query)
		return listedResourceQuotas.answer(api.KindResourceQuota+"List", got.Metadata, items, more)
	})
}

func (h *handler) listQuotaTrees(c *call) (answer, error) {
	if status := listing(c, listedQuotaTrees); status != nil {
		return answer{}, status
	}
	return h.listing(c, func() (answer, error) {
		got, err := h.Service.ListQuotaTrees(c.ctx())
		if err != nil {
			return answer{}, err
		}
		items, more := listedQuotaTrees.page(got.Items, &c.query)
		return listedQuotaTrees.answer(api.KindQuotaTree+"List", got.Metadata, items, more)
	})
}

func (h *handler) listQuotaForests(c *call) (answer, error) {
	if status := listing(c, listedQuotaForests); status != nil {
		return answer{}, status
	}
	return h.listing(c, func() (answer, error) {
		got, err := h.Service.ListQuotaForests(c.ctx())
		if err != nil {
			return answer{}, err
		}
		items, more := listedQuotaForests.page(got.Items, &c.query)
		return listedQuotaForests.answer(api.KindQuotaForest+"List", got.Metadata, items, more)
	})
}

func (h *handler) listQuotaBindings(c *call) (answer, error) {
	if status := listing(c, listedQuotaBindings); status != nil {
		return answer{}, status
	}
	return h.listing(c, func() (answer, error) {
		got, err := h.Service.ListQuotaBindings(c.ctx())
		if err != nil {
			return answer{}, err
		}
		items, more := listedQuotaBindings.page(got.Items, &c.query)
		return listedQuotaBindings.answer(api.KindQuotaBinding+"List", got.Metadata, items, more)
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
