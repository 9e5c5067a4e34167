package rest

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
)

// Store knows the faults of the store. Look is Fault after a fresh look.
type Store interface {
	service.StoreFaults
	Look(ctx context.Context) error
}

// excludeStore is the query of /readyz for the coordinator alone, without the store.
const excludeStore = "exclude=store"

// statusOf turns a service's error into the answer's status.
func (h *handler) statusOf(r *http.Request, err error) *api.Status {
	var status *api.Status
	ended := service.Refused(r.Context())
	switch {
	case ended != nil:
		return ended
	case errors.As(err, &status):
		return service.NameFault(status, h.Store)
	case service.StoreRefusal(err) != nil:
		return service.StoreRefusal(err)
	case r.Context().Err() != nil:
		return api.Errorf(http.StatusServiceUnavailable, "%s %s was given up: the client went away, or this coordinator stops; ask again", r.Method, r.URL.Path)
	}
	h.Logger.Error("request_failed", "method", r.Method, "path", r.URL.Path, "request_id", r.Header.Get(requestIDHeader), "error", err)
	return api.Errorf(http.StatusInternalServerError, "%s %s failed inside the coordinator; its log says why", r.Method, r.URL.Path)
}

func (h *handler) refuse(w http.ResponseWriter, s *api.Status) int {
	if s.Code == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="muster"`)
	}
	if s.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(s.RetryAfterSeconds))
	}
	named := *s // which may be shared
	named.RequestID = w.Header().Get(requestIDHeader)
	return h.write(w, answer{code: s.Code, body: &named})
}

// write encodes the answer once and sends it.
func (h *handler) write(w http.ResponseWriter, a answer) int {
	to := h.room.answers.begin(w, a.conn, a.held)
	defer to.end()
	to.allow(a.within)
	if a.list == nil {
		a.encode()
		a.list = new(pieces)
	}
	header := w.Header()
	if header.Get("Content-Type") == typeYAML {
		a.asYAML()
	} else {
		header["Content-Type"] = jsonContentType
	}
	header.Set("Content-Length", strconv.Itoa(len(a.head)+a.list.size+1))
	if h.Revision != nil {
		if rev := h.Revision(); rev > 0 {
			header.Set(revisionHeader, strconv.FormatInt(rev, 10))
		}
	}
	w.WriteHeader(a.code)
	_, err := to.Write(a.head)
	_ = a.list.each(func(part []byte) error {
		if err == nil {
			_, err = to.Write(part)
			to.release(piece)
		}
		return err
	})
	if err == nil {
		_, err = to.Write([]byte{'\n'})
	}
	if err != nil {
		to.hangUp()
		h.Logger.Debug("answer_not_taken", "error", err)
		if a.shared {
			panic(http.ErrAbortHandler) // half an answer must not look whole
		}
	}
	return a.code
}

var jsonContentType = []string{"application/json"}

func (h *handler) ready(c *call) (answer, error) {
	if h.Ready != nil {
		if err := h.Ready(c.ctx()); err != nil {
			return answer{}, api.Errorf(http.StatusServiceUnavailable, "not ready: %v", err)
		}
	}
	if h.Store != nil && c.r.URL.RawQuery != excludeStore {
		if err := h.Store.Look(c.ctx()); err != nil {
			return answer{}, service.NameFault(api.Errorf(http.StatusServiceUnavailable, "not ready: %v", err), h.Store)
		}
	}
	if h.Roster != nil {
		return ok(h.Roster.Self()), nil
	}
	return ok("ok"), nil
}

// nothingHere answers requests that no other pattern takes: 405 where the path
// is served with another method, else 404.
func (h *handler) nothingHere(c *call) (answer, error) {
	var allowed []string
	for _, method := range []string{"DELETE", "GET", "PATCH", "POST", "PUT"} {
		probe := &http.Request{Method: method, URL: c.r.URL, Host: c.r.Host}
		if _, pattern := h.mux.Handler(probe); pattern != "" && pattern != "/" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) > 0 {
		list := strings.Join(allowed, ", ")
		if slices.Contains(allowed, http.MethodGet) {
			allowed = append(allowed, http.MethodHead)
		}
		c.w.Header().Set("Allow", strings.Join(append(allowed, http.MethodOptions), ", "))
		if c.r.Method == http.MethodOptions {
			return answer{stream: func() int {
				c.w.Header().Del("Content-Type")
				c.w.WriteHeader(http.StatusNoContent)
				return http.StatusNoContent
			}}, nil
		}
		return answer{}, api.Errorf(http.StatusMethodNotAllowed, "%s takes %s, not %s", clip(c.r.URL.Path), list, clip(c.r.Method))
	}
	return answer{}, api.Errorf(http.StatusNotFound, "there is no %s in this version's API", clip(c.r.URL.Path))
}
