package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/musterd/muster/api"
)

// Bounds of what is passed on.
const (
	peerDialTimeout = time.Second
	// peerPause is between two looks for a leader that answers.
	peerPause = 25 * time.Millisecond
	// catchUp bounds how long an answer to a write is held back until reads
	// here show the write.
	catchUp = time.Second
	// mostRefusal bounds what is read of a refusal, in bytes.
	mostRefusal = 1 << 20
	// leaderFirst bounds how long a read that is better answered by the leader
	// is left to it.
	leaderFirst = 2 * time.Second
	// mostForwards bounds the requests that are passed on at one time.
	mostForwards = 1024
)

// elsewhere is the refusal in an error that asks for another coordinator, nil
// for any other error.
func elsewhere(err error) *api.Status {
	var status *api.Status
	if errors.As(err, &status) && (status.Reason == api.NotLeader || status.Reason == api.LeaderLost) {
		return status
	}
	return nil
}

// repeatable reports whether a request may be sent again after it may have been
// done: reads, and creations that carry a key.
func repeatable(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodPost && r.Header.Get("Idempotency-Key") != ""
}

// passing is one request on its way to whoever leads.
type passing struct {
	*handler
	call     *call
	serve    endpoint
	began    time.Time
	deadline time.Time // for finding a leader
	wait     time.Duration
	// begun: it may have been done already.
	begun bool
	// last is what the last coordinator said that was asked.
	last *api.Status
}

// passOn answers a request that this coordinator cannot: the leader does, once
// there is one. It returns the status code.
func (h *handler) passOn(c *call, serve endpoint, refused *api.Status) int {
	select {
	case h.forwards <- struct{}{}:
		defer func() { <-h.forwards }()
	default:
		return h.unavailable(c, api.Errorf(http.StatusServiceUnavailable, "%d requests are being passed on to the leader already; ask again", mostForwards))
	}
	patience := h.Patience
	if c.r.Header.Get(hopHeader) != "" {
		patience = min(patience, peerDialTimeout) // it is about to lead, or the other one was wrong
	}
	p := &passing{handler: h, call: c, serve: serve, began: time.Now(), wait: c.query.wait, begun: refused.Reason == api.LeaderLost, last: refused}
	p.deadline = p.began.Add(patience)
	// A test recorder has no deadline to set, hence the ignored error.
	_ = http.NewResponseController(c.w).SetWriteDeadline(p.deadline.Add(p.wait + writeTimeout))
	if !c.taken {
		if _, status := h.body(c); status != nil {
			return h.refuse(c.w, status)
		}
	}
	for {
		code, answered := p.try()
		if answered {
			return code
		}
		if p.begun && !repeatable(c.r) {
			return h.unavailable(c, p.unknown())
		}
		select {
		case <-c.ctx().Done(): // the client went away, or this coordinator stops
			return h.unavailable(c, p.unknown())
		case <-time.After(peerPause):
		}
	}
}

// unknown is the answer where nobody may be asked any more.
func (p *passing) unknown() *api.Status {
	if !p.begun {
		p.last.Reason = api.NotLeader
		return p.last
	}
	status := api.Errorf(http.StatusServiceUnavailable,
		"the leader was lost before it answered %s %s, which may have been done: look, or repeat it (a create with its Idempotency-Key happens once)", p.call.r.Method, p.call.r.URL.Path)
	status.Reason = api.LeaderLost
	return status
}

// try asks whoever leads now; it reports whether the request has been answered.
func (p *passing) try() (int, bool) {
	if p.begun && !repeatable(p.call.r) {
		return 0, false
	}
	ctx, cancel := context.WithDeadline(p.call.ctx(), p.deadline)
	leader, err := p.Peer.Leader(ctx)
	cancel()
	switch {
	case err != nil || time.Now().After(p.deadline):
		if p.call.ctx().Err() != nil {
			return 0, false
		}
		return p.unavailable(p.call, p.unknown()), true
	case leader.Own:
		return p.here()
	case p.call.r.Header.Get(hopHeader) != "":
		return p.refuse(p.call.w, p.last), true
	}
	return p.there(leader)
}

// here serves the request after all.
func (p *passing) here() (int, bool) {
	p.call.rewind(p.left())
	a, err := p.serve(p.call)
	if status := elsewhere(err); status != nil {
		p.lost(status)
		return 0, false
	}
	if err != nil {
		return p.refuse(p.call.w, p.statusOf(p.call.r, err)), true
	}
	return p.write(p.call.w, a), true
}

// lost notes that a coordinator that led does so no more. The time for finding
// another begins anew.
func (p *passing) lost(status *api.Status) {
	p.last = status
	if status.Reason == api.LeaderLost {
		p.begun = true
		p.deadline = time.Now().Add(p.Patience)
	}
}

// left is what is left of the time that the client wants to wait.
func (p *passing) left() time.Duration {
	if p.wait == 0 {
		return 0
	}
	return max(p.wait-time.Since(p.began), time.Millisecond).Round(time.Millisecond)
}

// there sends the request to the leader and relays its answer.
func (p *passing) there(leader Leader) (int, bool) {
	ctx, cancel := context.WithTimeout(p.call.ctx(), p.left()+writeTimeout)
	defer cancel()
	watch := p.followed(ctx, cancel, leader)
	defer watch()
	answer, err := p.send(ctx, p.call, leader, p.left())
	if err != nil {
		if !notSent(err) {
			p.begun = true
			p.deadline = time.Now().Add(p.Patience)
		}
		p.Logger.Debug("forward_failed", "leader", leader.ID, "error", err)
		return 0, false
	}
	defer func() { _ = answer.Body.Close() }()
	if status := refusedElsewhere(answer); status != nil {
		p.lost(status)
		return 0, false
	}
	return p.relay(p.call, answer), true
}

// followed gives a request up, by cancel, when another coordinator leads than
// the one that it was sent to: that one may hang. The caller ends it.
func (p *passing) followed(ctx context.Context, cancel func(), asked Leader) (end func()) {
	done := make(chan struct{})
	go func() {
		look := time.NewTicker(10 * peerPause)
		defer look.Stop()
		known, stop := context.WithCancel(ctx)
		stop() // what is known already
		for {
			select {
			case <-done:
				return
			case <-look.C:
				if now, err := p.Peer.Leader(known); err == nil && now != asked {
					cancel()
					return
				}
			}
		}
	}()
	return func() { close(done) }
}

// send sends the request to a coordinator, under the caller's own name.
func (h *handler) send(ctx context.Context, c *call, leader Leader, wait time.Duration) (*http.Response, error) {
	target, err := base(leader.Address)
	if err != nil {
		return nil, err
	}
	target.Path, target.RawPath, target.RawQuery = c.r.URL.Path, c.r.URL.RawPath, withWait(c.r.URL.RawQuery, wait)
	out, err := http.NewRequestWithContext(ctx, c.r.Method, target.String(), bytes.NewReader(c.sent))
	if err != nil {
		return nil, err
	}
	out.Header = endToEnd(c.r.Header)
	out.Header.Set(hopHeader, h.ID)
	return h.peers.Do(out)
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

// notSent reports whether an error came before anything of the request left.
func notSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
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
	if err != nil || json.Unmarshal(body, status) != nil {
		return nil //nolint:nilerr // an answer that is cut short is passed on as it is
	}
	return elsewhere(status)
}

// relay writes the leader's answer, once reads here show what it tells of.
func (h *handler) relay(c *call, answer *http.Response) int {
	if rev := revisionOf(answer.Header); rev > 0 && c.r.Method != http.MethodGet {
		ctx, cancel := context.WithTimeout(c.ctx(), catchUp)
		if err := h.Peer.Reach(ctx, rev); err != nil {
			h.Logger.Debug("forward_behind", "revision", rev, "error", err)
		}
		cancel()
	}
	header := c.w.Header()
	for name, values := range endToEnd(answer.Header) {
		header[name] = values
	}
	c.w.WriteHeader(answer.StatusCode)
	if _, err := io.Copy(c.w, answer.Body); err != nil {
		panic(http.ErrAbortHandler) // half an answer must not look whole
	}
	return answer.StatusCode
}

// leaderAnswers lets the leader answer a read that it knows more about; false
// if there is none, or it does not answer soon.
func (h *handler) leaderAnswers(c *call) (int, bool) {
	if h.Peer == nil || c.r.Header.Get(hopHeader) != "" {
		return 0, false
	}
	known, stop := context.WithCancel(c.ctx())
	stop()
	leader, err := h.Peer.Leader(known)
	if err != nil || leader.Own {
		return 0, false
	}
	ctx, cancel := context.WithTimeout(c.ctx(), leaderFirst)
	defer cancel()
	answer, err := h.send(ctx, c, leader, 0)
	if err != nil {
		return 0, false
	}
	defer func() { _ = answer.Body.Close() }()
	if refusedElsewhere(answer) != nil {
		return 0, false
	}
	return h.relay(c, answer), true
}

// unavailable refuses what may be asked again soon.
func (h *handler) unavailable(c *call, status *api.Status) int {
	c.w.Header().Set("Retry-After", strconv.Itoa(1))
	return h.refuse(c.w, status)
}
