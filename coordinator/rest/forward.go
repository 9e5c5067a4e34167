package rest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/gate"
	"github.com/musterd/muster/coordinator/service"
)

// Bounds of a request that is passed on.
const (
	peerDialTimeout = time.Second
	// mostRefusal bounds the part of a refusal that is read, in bytes.
	mostRefusal = 1 << 20
	// mostBuffered bounds how much of an answer is read before any of it is
	// passed on, in bytes. No answer to a write is longer.
	mostBuffered = 1 << 20
)

// repeatOf says whether a request may be sent again after it may have been done:
// reads, and creations that carry a key.
func repeatOf(r *http.Request) service.Repeat {
	switch {
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		return service.Read
	case r.Method == http.MethodPost && r.Header.Get("Idempotency-Key") != "":
		return service.Keyed
	}
	return service.Once
}

// passOn answers a request that this coordinator cannot: the leader does, once
// there is one. It returns the status code.
func (h *handler) passOn(c *call, serve endpoint, refused *api.Status) (code int) {
	if !c.taken {
		if _, status := h.body(c); status != nil {
			return h.refuse(c.w, status)
		}
	}
	if status := h.bounded(c, gate.Forwards, 1); status != nil {
		return h.refuse(c.w, status)
	}
	status := h.Forward.Pass(c.ctx(), service.Passage{
		Name: c.r.Method + " " + c.r.URL.Path, Repeat: repeatOf(c.r), Wait: c.query.wait, Lasts: c.within, Hopped: c.r.Header.Get(hopHeader) != "",
		Here: func(left time.Duration) (elsewhere *api.Status) {
			code, elsewhere = h.here(c, serve, left)
			return elsewhere
		},
		There: func(ctx context.Context, leader service.Leader, left time.Duration) (got service.Attempt) {
			code, got = h.there(ctx, c, leader, left)
			return got
		},
	}, refused)
	if ended := service.Refused(c.ctx()); ended != nil && status != nil {
		status = ended
	}
	if status != nil {
		return h.refuse(c.w, service.NameFault(status, h.Store))
	}
	return code
}

// here serves the request after all.
func (h *handler) here(c *call, serve endpoint, left time.Duration) (code int, elsewhere *api.Status) {
	c.rewind(left)
	a, err := serve(c)
	if status := service.Elsewhere(err); status != nil {
		return 0, status
	}
	if err != nil {
		return h.refuse(c.w, h.statusOf(c.r, err)), nil
	}
	return h.reply(c, a), nil
}

// there sends the request to the leader and relays the leader's answer. After a
// silence the idle connections to coordinators are closed: they may be dead, too.
func (h *handler) there(ctx context.Context, c *call, leader service.Leader, left time.Duration) (code int, got service.Attempt) {
	got.At = leader.Address
	answer, sent, err := h.send(ctx, c, leader, left)
	if err == nil {
		defer func() { _ = answer.Body.Close() }()
		if got.Refused = refusedElsewhere(answer); got.Refused != nil {
			return 0, got
		}
		sent = true
		code, err = h.relay(c, answer)
	}
	if err != nil {
		got.Err, got.Sent, got.Silent = err, sent, timedOut(err)
	}
	if got.Silent {
		h.peers.CloseIdleConnections()
	}
	return code, got
}

// timedOut reports whether an error means that no answer came in time.
func timedOut(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// send sends the request to a coordinator, under the caller's own name. sent is
// false if an error came before anything of the request left.
func (h *handler) send(ctx context.Context, c *call, leader service.Leader, wait time.Duration) (answer *http.Response, sent bool, err error) {
	target, err := base(leader.Address)
	if err != nil {
		return nil, false, err
	}
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	target.Path, target.RawPath, target.RawQuery = c.r.URL.Path, c.r.URL.RawPath, withWait(c.r.URL.RawQuery, wait)
	out, err := http.NewRequestWithContext(ctx, c.r.Method, target.String(), bytes.NewReader(c.sent))
	if err != nil {
		return nil, false, err
	}
	out.Header = endToEnd(c.r.Header)
	out.Header.Set(hopHeader, h.Forward.ID())
	out.Header.Set(clientHeader, c.r.RemoteAddr)
	out.Header.Del(certificateHeader)
	if name := proofsOf(c.r).Certificate(); name != "" {
		out.Header.Set(certificateHeader, name)
	}
	out.Header.Set(hopProofHeader, h.Forward.HopProof(hopIn(out.Header)))
	answer, err = h.peers.Do(out)
	return answer, connected.Load(), err
}

// withWait replaces the wait in a query that has one.
func withWait(raw string, wait time.Duration) string {
	if wait == 0 {
		return raw
	}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return raw
	}
	values.Set("wait", wait.String())
	return values.Encode()
}

// refusedElsewhere reads the refusal of a coordinator that does not lead, or no
// longer; nil for any other answer, which is left as it is.
func refusedElsewhere(answer *http.Response) *api.Status {
	if answer.StatusCode != http.StatusServiceUnavailable {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, mostRefusal))
	answer.Body = io.NopCloser(bytes.NewReader(body))
	status := new(api.Status)
	if err != nil || yaml.Unmarshal(body, status) != nil {
		return nil //nolint:nilerr // an answer that is cut short is passed on as it is
	}
	return service.Elsewhere(status)
}

// relay writes the leader's answer, once reads here show the state that it
// reports. After an error nothing has been written: all that fits into memory
// is read before.
func (h *handler) relay(c *call, answer *http.Response) (int, error) {
	held := int64(0)
	if n := buffered(answer); n > smallAnswer && c.r.Method == http.MethodGet {
		if !h.room.answers.take(c.ctx(), n) {
			return h.refuse(c.w, h.tooManyAnswers(c)), nil
		}
		held = n
	}
	begun := false
	defer func() {
		if !begun {
			h.room.answers.room.Release(held)
		}
	}()
	begin, err := io.ReadAll(io.LimitReader(answer.Body, mostBuffered))
	if err != nil {
		return 0, err
	}
	if rev := revisionOf(answer.Header); rev > 0 && c.r.Method != http.MethodGet {
		h.Forward.CatchUp(c.ctx(), rev)
	}
	header := c.w.Header()
	for name, values := range endToEnd(answer.Header) {
		header[name] = values
	}
	begun = true
	to := h.room.answers.begin(c.w, c.connection(), held)
	defer to.end()
	to.allow(c.within)
	c.w.WriteHeader(answer.StatusCode)
	if _, err := io.Copy(to, io.MultiReader(bytes.NewReader(begin), answer.Body)); err != nil {
		to.hangUp()
		panic(http.ErrAbortHandler) // half an answer must not look whole
	}
	return answer.StatusCode, nil
}

// buffered is how much of an answer is read before any of it is passed on.
func buffered(answer *http.Response) int64 {
	if answer.ContentLength < 0 {
		return mostBuffered
	}
	return min(answer.ContentLength, mostBuffered)
}
