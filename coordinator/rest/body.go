package rest

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/gate"
	"github.com/musterd/muster/yamldoc"
)

const (
	typeJSON       = "application/json"
	typeYAML       = "application/yaml"
	typeMergePatch = "application/merge-patch+json"
	typeStrategic  = "application/strategic-merge-patch+json"
)

// document reads a body as JSON, converting YAML. also are further types of JSON
// that the request may have.
func (h *handler) document(c *call, also ...string) ([]byte, *api.Status) {
	kind, status := contentType(c.r, append(also, typeJSON, typeYAML)...)
	if status != nil {
		return nil, status
	}
	body, status := h.body(c)
	if status != nil || kind != typeYAML {
		return body, status
	}
	return h.fromYAML(c, body)
}

// fromYAML converts a body from YAML into JSON.
func (h *handler) fromYAML(c *call, body []byte) ([]byte, *api.Status) {
	if len(body) > yamldoc.MaxBytes {
		return nil, api.Errorf(http.StatusRequestEntityTooLarge, "the body has %d bytes of YAML, the limit is %d: send JSON, which may have %d", len(body), yamldoc.MaxBytes, api.MaxDocument)
	}
	if status := charge(h, c, gate.OfYAML(len(body))); status != nil {
		return nil, status
	}
	release, ok := h.Gate.Rooms.YAML.Take(c.ctx(), c.caller, int64(len(body)))
	if !ok {
		return nil, h.throttled(c, throttleBodies, "YAML documents of others are being converted; ask again, or send JSON")
	}
	doc, err := yamldoc.ToJSON(body)
	release()
	var ambiguous *yamldoc.AmbiguousError
	switch {
	case errors.Is(err, yamldoc.ErrTooLarge):
		return nil, api.Errorf(http.StatusRequestEntityTooLarge, "%v; send JSON", err)
	case errors.As(err, &ambiguous):
		return nil, api.Errorf(http.StatusUnprocessableEntity, "%v", err)
	case err != nil:
		return nil, api.Errorf(http.StatusBadRequest, "the body is not YAML: %v", err)
	}
	return doc, nil
}

// options reads the options of a delete or cancel: the optional body, and the
// query's parameters, which Kubernetes takes as well.
func (h *handler) options(c *call, parameters ...string) (api.DeleteOptions, *api.Status) {
	if status := c.parameters(parameters...); status != nil {
		return api.DeleteOptions{}, status
	}
	body, status := h.optional(c)
	if status != nil {
		return api.DeleteOptions{}, status
	}
	o, status := api.DecodeDeleteOptions(body)
	if status != nil {
		return o, status
	}
	q := &c.query
	if q.grace != nil {
		if o.GracePeriodSeconds != nil && *o.GracePeriodSeconds != *q.grace {
			return o, api.Errorf(http.StatusBadRequest, "query parameter gracePeriodSeconds=%d: the body has gracePeriodSeconds %d; give one of the two", *q.grace, *o.GracePeriodSeconds)
		}
		o.GracePeriodSeconds = q.grace
	}
	if q.propagation != "" {
		if o.PropagationPolicy != "" && o.PropagationPolicy != q.propagation {
			return o, api.Errorf(http.StatusBadRequest, "query parameter propagationPolicy=%q: the body has propagationPolicy %q; give one of the two", clip(q.propagation), o.PropagationPolicy)
		}
		o.PropagationPolicy = q.propagation
	}
	text, err := json.Marshal(o)
	if err != nil {
		panic(err) // options can always be encoded
	}
	return api.DecodeDeleteOptions(text)
}

// CancelParameters are those of a cancel, DeleteParameters of a delete, and
// ReleaseParameters of a delete of several objects.
var (
	CancelParameters  = []string{"gracePeriodSeconds", "propagationPolicy"}
	DeleteParameters  = append([]string{"dryRun"}, CancelParameters...)
	ReleaseParameters = append([]string{"labelSelector"}, DeleteParameters...)
)

// optional reads a body as JSON, converting YAML. The body need not be there.
func (h *handler) optional(c *call) ([]byte, *api.Status) {
	if c.r.ContentLength == 0 {
		return nil, nil
	}
	body, status := h.body(c)
	if status != nil || len(body) == 0 {
		return nil, status
	}
	kind, status := contentType(c.r, typeJSON, typeYAML)
	if status != nil || kind == typeJSON {
		return body, status
	}
	return h.fromYAML(c, body)
}

// contentType returns which of the accepted types the body has, or 415.
func contentType(r *http.Request, accepted ...string) (string, *api.Status) {
	given := r.Header.Get("Content-Type")
	media := given
	if given != typeJSON {
		if parsed, _, err := mime.ParseMediaType(given); err == nil {
			media = parsed
		}
	}
	for _, a := range accepted {
		if media == a {
			return a, nil
		}
	}
	if given == "" {
		return "", api.Errorf(http.StatusUnsupportedMediaType, "no Content-Type: send %s", strings.Join(accepted, " or "))
	}
	return "", api.Errorf(http.StatusUnsupportedMediaType, "Content-Type %q: send %s", clip(given), strings.Join(accepted, " or "))
}

// body reads the whole body, at most api.MaxDocument. A longer one is refused
// without reading it where its length is announced.
func (h *handler) body(c *call) ([]byte, *api.Status) {
	tooLarge := func() *api.Status {
		c.w.Header().Set("Connection", "close")
		return api.Errorf(http.StatusRequestEntityTooLarge, "the body is larger than the limit of %d bytes", api.MaxDocument)
	}
	if c.r.ContentLength > api.MaxDocument {
		return nil, tooLarge()
	}
	if e := c.r.Header.Values("Content-Encoding"); len(e) > 0 && !strings.EqualFold(strings.Join(e, ","), "identity") {
		c.w.Header().Set("Connection", "close")
		return nil, api.Errorf(http.StatusUnsupportedMediaType, "Content-Encoding %q: send the body as it is", clip(strings.Join(e, ",")))
	}
	// The deadline is for the body alone: a deadline that stayed would end a
	// long wait as well. Test recorders have none, hence the ignored errors.
	control := http.NewResponseController(c.w)
	_ = control.SetReadDeadline(time.Now().Add(h.BodyTimeout))
	body, status, err := h.readAll(c, http.MaxBytesReader(c.w, c.r.Body, api.MaxDocument))
	if status != nil {
		c.w.Header().Set("Connection", "close") // the rest of the body is not read
		return nil, status
	}
	if err == nil { // else net/http would wait for the rest without a deadline
		_ = control.SetReadDeadline(time.Time{})
	}
	var tooLong *http.MaxBytesError
	switch {
	case err == nil:
		again := c.taken // is served again, once the leader has changed
		c.taken, c.sent = true, body
		if !again {
			if status := charge(h, c, gate.OfJSON(len(body))); status != nil {
				return nil, status
			}
		}
		if status := h.inTurn(c); status != nil {
			return nil, status
		}
		return body, nil
	case errors.As(err, &tooLong):
		return nil, tooLarge()
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.w.Header().Set("Connection", "close")
		return nil, api.Errorf(http.StatusBadRequest, "the body did not arrive within %s", h.BodyTimeout)
	}
	return nil, api.Errorf(http.StatusBadRequest, "the body could not be read: %v", err)
}

// firstRead is the room for the beginning of a body: most bodies are smaller.
const firstRead = 4 << 10

// more is how many bytes a full buffer grows by: as many as it has, and never beyond the
// announced length and the byte that finds the end.
func (h *handler) more(c *call, full int) int {
	more := max(firstRead, full)
	if announced := c.r.ContentLength + 1; announced > int64(full) {
		more = int(min(int64(more), announced-int64(full)))
	}
	return more
}

// readAll reads a body into a buffer that grows with the bytes that arrive, not
// with the length that is announced. A status means that there is no room.
func (h *handler) readAll(c *call, r io.Reader) ([]byte, *api.Status, error) {
	var body []byte
	for {
		if len(body) == cap(body) {
			more := h.more(c, cap(body))
			if status := h.grow(c, more); status != nil {
				return nil, status, nil
			}
			body = append(make([]byte, 0, cap(body)+more), body...)
		}
		n, err := r.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case errors.Is(err, io.EOF):
			return body, nil, nil
		case err != nil:
			return nil, nil, err
		}
	}
}
