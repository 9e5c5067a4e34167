package rest

import (
	"net/http"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
)

// documented serves the documents of one kind by which quota is set. It is
// immutable.
type documented[T api.QuotaDocument] struct {
	service.Documents[T]
	// key returns the object that a request's URL names.
	key func(*call) (namespace, name string)
	// changeParameters are those of the query of a change.
	changeParameters []string
}

// answered is the answer that holds one object.
func (d documented[T]) answered(code int, got *T, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	d.Typed(got)
	return answer{code: code, body: got}, nil
}

// parameters reads the query of a change.
func (d documented[T]) parameters(c *call) *api.Status {
	if status := c.parameters(d.changeParameters...); status != nil {
		return status
	}
	if c.query.allowUnknown {
		c.r = c.r.WithContext(service.AllowUnknownResources(c.ctx()))
	}
	return nil
}

// submitted reads the document of a create or a replacement.
func (d documented[T]) submitted(h *handler, c *call) (*T, *api.Status) {
	if status := d.parameters(c); status != nil {
		return nil, status
	}
	doc, status := h.document(c)
	if status != nil {
		return nil, status
	}
	v, status := decoded(h, c, doc, d.Decode)
	if status != nil {
		return nil, status
	}
	namespace, name := d.key(c)
	return v, d.At(v, namespace, name)
}

func (d documented[T]) post(h *handler) endpoint {
	return func(c *call) (answer, error) {
		v, status := d.submitted(h, c)
		if status != nil {
			return answer{}, status
		}
		got, err := d.Create(c.ctx(), v)
		return d.answered(http.StatusCreated, got, err)
	}
}

func (d documented[T]) put(h *handler) endpoint {
	return func(c *call) (answer, error) {
		v, status := d.submitted(h, c)
		if status != nil {
			return answer{}, status
		}
		got, created, err := d.Put(c.ctx(), v)
		if created {
			return d.answered(http.StatusCreated, got, err)
		}
		return d.answered(http.StatusOK, got, err)
	}
}

func (d documented[T]) patch(h *handler) endpoint {
	return func(c *call) (answer, error) {
		if status := d.parameters(c); status != nil {
			return answer{}, status
		}
		if _, status := contentType(c.r, typeMergePatch); status != nil {
			return answer{}, status
		}
		body, status := h.body(c)
		if status != nil {
			return answer{}, status
		}
		namespace, name := d.key(c)
		got, err := d.Patch(c.ctx(), namespace, name, body)
		return d.answered(http.StatusOK, got, err)
	}
}

// got gets the object that the URL names.
func (d documented[T]) got(c *call) (*T, error) {
	if status := c.reading(); status != nil {
		return nil, status
	}
	namespace, name := d.key(c)
	return d.Get(c.ctx(), namespace, name)
}

func (d documented[T]) one(c *call) (answer, error) {
	got, err := d.got(c)
	return d.answered(http.StatusOK, got, err)
}

func (d documented[T]) delete(h *handler) endpoint {
	return func(c *call) (answer, error) {
		require, status := h.removal(c)
		if status != nil {
			return answer{}, status
		}
		namespace, name := d.key(c)
		got, err := d.Remove(c.ctx(), namespace, name, require)
		return d.answered(http.StatusOK, got, err)
	}
}

// removal reads the options of a DELETE of an object that holds nothing: its
// preconditions count, and the other options have no effect.
func (h *handler) removal(c *call) (require api.Preconditions, status *api.Status) {
	if status := c.parameters(); status != nil {
		return require, status
	}
	return h.preconditions(c)
}

// preconditions reads the body of a DELETE as removal does, and leaves the parameters
// to its caller.
func (h *handler) preconditions(c *call) (require api.Preconditions, status *api.Status) {
	body, status := h.optional(c)
	if status != nil {
		return require, status
	}
	o, status := api.DecodeDeleteOptions(body)
	if status != nil {
		return require, status
	}
	c.warnRecordedOnly(o.OfWork())
	if o.Preconditions != nil {
		require = *o.Preconditions
	}
	return require, nil
}
