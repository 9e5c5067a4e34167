package rest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/musterd/muster/api"
)

// documented serves the documents of one kind by which quota is set: they are
// created, replaced and patched under optimistic concurrency. It is immutable.
type documented[T api.QuotaDocument] struct {
	decode func(doc []byte) (*T, *api.Status)
	meta   func(*T) *api.ObjectMeta
	// typed names version and kind, which a service may leave out.
	typed func(*T)
	// bare drops the status, which clients do not set.
	bare func(*T)
	// key returns the object that a request's URL names.
	key func(*call) (namespace, name string)
	// recordedOnly may be nil.
	recordedOnly func(*T) []string

	get    func(ctx context.Context, namespace, name string) (*T, error)
	create func(context.Context, *T) (*T, error)
	// update replaces an object; where there is none it may create it.
	update func(context.Context, *T) (*T, error)
	remove func(ctx context.Context, namespace, name string) (*T, error)
}

// answered is the answer that holds one object.
func (d documented[T]) answered(code int, got *T) answer {
	d.typed(got)
	return answer{code: code, body: got}
}

// warned is answered, with a warning about fields that have no effect.
func (d documented[T]) warned(code int, got *T) answer {
	a := d.answered(code, got)
	if d.recordedOnly != nil {
		a.warning = d.recordedOnly(got)
	}
	return a
}

// submitted reads the document of a create or a replacement.
func (d documented[T]) submitted(h *handler, c *call) (*T, *api.Status) {
	if status := c.parameters(); status != nil {
		return nil, status
	}
	doc, status := h.document(c)
	if status != nil {
		return nil, status
	}
	v, status := decoded(h, c, doc, d.decode)
	if status != nil {
		return nil, status
	}
	meta := d.meta(v)
	namespace, name := d.key(c)
	if meta.Namespace != "" && meta.Namespace != namespace {
		return nil, api.Errorf(http.StatusBadRequest, "metadata.namespace: %q does not match the namespace %q of the URL",
			meta.Namespace, namespace)
	}
	meta.Namespace = namespace
	if name != "" && meta.Name != name {
		return nil, api.Errorf(http.StatusBadRequest, "metadata.name: %q does not match the name %q of the URL", meta.Name, name)
	}
	return v, nil
}

func (d documented[T]) post(h *handler) endpoint {
	return func(c *call) (answer, error) {
		v, status := d.submitted(h, c)
		if status != nil {
			return answer{}, status
		}
		d.meta(v).ResourceVersion = ""
		got, err := d.create(c.ctx(), v)
		if err != nil {
			return answer{}, err
		}
		return d.warned(http.StatusCreated, got), nil
	}
}

// races bounds how often a change is repeated that lost to another.
const races = 5

// put replaces an object, or creates it where it does not exist and no
// resourceVersion requires that it exists.
func (d documented[T]) put(h *handler) endpoint {
	return func(c *call) (answer, error) {
		v, status := d.submitted(h, c)
		if status != nil {
			return answer{}, status
		}
		if d.meta(v).ResourceVersion != "" {
			return d.replaced(d.update(c.ctx(), v))
		}
		var refused error
		for range races {
			got, err := d.create(c.ctx(), v)
			if err == nil {
				return d.warned(http.StatusCreated, got), nil
			}
			if !is(err, http.StatusConflict) {
				return answer{}, err
			}
			got, refused = d.update(c.ctx(), v)
			if !is(refused, http.StatusNotFound) {
				return d.replaced(got, refused)
			}
		}
		return answer{}, refused
	}
}

func (d documented[T]) replaced(got *T, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	return d.warned(http.StatusOK, got), nil
}

// is reports whether err is a Status of the code.
func is(err error, code int) bool {
	var status *api.Status
	return errors.As(err, &status) && status.Code == code
}

// patch applies a merge patch (RFC 7386) to the object as it is. A
// resourceVersion in it is a precondition; without one a patch that loses to
// another change is applied anew to the changed object.
func (d documented[T]) patch(h *handler) endpoint {
	return func(c *call) (answer, error) {
		if status := c.parameters(); status != nil {
			return answer{}, status
		}
		if _, status := contentType(c.r, typeMergePatch); status != nil {
			return answer{}, status
		}
		body, status := h.body(c)
		if status != nil {
			return answer{}, status
		}
		var lost error
		seen := ""
		for range races {
			current, err := d.got(c)
			if err != nil {
				return answer{}, err
			}
			version := d.meta(current).ResourceVersion
			if lost != nil && version == seen {
				return answer{}, lost // refused for another reason than a race
			}
			patched, status := d.patched(current, body)
			if status != nil {
				return answer{}, status
			}
			got, err := d.update(c.ctx(), patched)
			if !is(err, http.StatusConflict) || conditional(body) {
				return d.replaced(got, err)
			}
			lost, seen = err, version
		}
		return answer{}, lost
	}
}

// patched is the result of a patch of an object.
func (d documented[T]) patched(current *T, patch []byte) (*T, *api.Status) {
	meta := *d.meta(current)
	d.bare(current)
	merged, status := api.MergePatch(current, patch)
	if status != nil {
		return nil, status
	}
	v, status := d.decode(merged)
	if status != nil {
		return nil, status
	}
	now := d.meta(v)
	switch {
	case now.Name != meta.Name:
		return nil, api.Errorf(http.StatusUnprocessableEntity, "metadata.name: %q: a patch cannot rename %q", clip(now.Name), meta.Name)
	case now.Namespace != "" && now.Namespace != meta.Namespace:
		return nil, api.Errorf(http.StatusUnprocessableEntity, "metadata.namespace: %q: a patch cannot move what is in %q", clip(now.Namespace), meta.Namespace)
	case now.ResourceVersion == "":
		now.ResourceVersion = meta.ResourceVersion
	}
	now.Namespace = meta.Namespace
	return v, nil
}

// conditional reports whether a patch, known to be an object, carries a
// resourceVersion.
func conditional(patch []byte) bool {
	var p struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	return json.Unmarshal(patch, &p) == nil && p.Metadata.ResourceVersion != ""
}

// got gets the object that the URL names.
func (d documented[T]) got(c *call) (*T, error) {
	if status := c.parameters(); status != nil {
		return nil, status
	}
	namespace, name := d.key(c)
	return d.get(c.ctx(), namespace, name)
}

func (d documented[T]) one(c *call) (answer, error) {
	got, err := d.got(c)
	if err != nil {
		return answer{}, err
	}
	return d.answered(http.StatusOK, got), nil
}

func (d documented[T]) delete(c *call) (answer, error) {
	if status := c.parameters(); status != nil {
		return answer{}, status
	}
	namespace, name := d.key(c)
	got, err := d.remove(c.ctx(), namespace, name)
	if err != nil {
		return answer{}, err
	}
	return d.answered(http.StatusOK, got), nil
}
