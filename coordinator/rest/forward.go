package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
)

// Bounds of a request that is passed on.
const (
	peerDialTimeout = time.Second
	// peerPause is between two looks for a leader that answers.
	peerPause = 25 * time.Millisecond
	// catchUp bounds how long an answer to a write is held back until reads
	// here show the write.
	catchUp = time.Second
	// mostRefusal bounds the part of a refusal that is read, in bytes.
	mostRefusal = 1 << 20
	// mostBuffered bounds how much of an answer is read before any of it is
	// passed on, in bytes. No answer to a write is longer.
	mostBuffered = 1 << 20
	// leaderFirst bounds how long a read that is better answered by the leader
	// is left to it.
	leaderFirst = 2 * time.Second
	// answerMargin is how much longer than its client wants to wait a request is
	// left to a leader that does not answer.
	answerMargin = 2 * time.Second
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

// passing is one request on its way to the leader.
type passing struct {
	*handler
	call     *call
	serve    endpoint
	began    time.Time
	deadline time.Time // for finding a leader
	wait     time.Duration
	// limit ends the tries at a leader that does not answer.
	limit time.Time
	// begun: it may have been done already.
	begun bool
	// last is the answer of the last coordinator that was asked.
	last *api.Status
	// failed describes the last try that brought no answer; nil if the last
	// coordinator that was asked has answered.
	failed *failure
}

// failure is a try without an answer.
type failure struct {
	leader service.Leader
	err    error
	took   time.Duration
	silent bool // nothing came back, as through a cut or of a stopped process
}

// sentence describes a failure for the client.
func (f *failure) sentence() string {
	return fmt.Sprintf("coordinator %s, which leads, did not answer at %s within %s (%v)", f.leader.ID, f.leader.Address, f.took.Round(time.Millisecond), f.err)
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
	p.deadline, p.limit = p.began.Add(patience), p.began.Add(p.wait+answerMargin)
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
		if p.begun && !repeatable(c.r) || p.exhausted() {
			return h.unavailable(c, p.unknown())
		}
		select {
		case <-c.ctx().Done(): // the client went away, or this coordinator stops
			return h.unavailable(c, p.unknown())
		case <-time.After(peerPause):
		}
	}
}

// exhausted reports whether the leader has been silent for as long as the client
// can be left without an answer. One that refuses connections has ended, and
// another is waited for.
func (p *passing) exhausted() bool {
	return p.failed != nil && p.failed.silent && !time.Now().Before(p.limit)
}

// unknown is the answer where nobody may be asked any more.
func (p *passing) unknown() *api.Status {
	leads := p.failed != nil && p.stillLeads(p.failed.leader)
	switch {
	case !p.begun && leads:
		status := api.Errorf(http.StatusServiceUnavailable, "coordinator %s does not lead, and %s; nothing was done: ask again, or another coordinator", p.ID, p.failed.sentence())
		status.Reason = api.NotLeader
		return status
	case !p.begun:
		p.last.Reason = api.NotLeader
		return p.last
	case leads:
		status := api.Errorf(http.StatusServiceUnavailable, "%s: %s %s may have been done: look, or repeat it (a create with its Idempotency-Key happens once)",
			p.failed.sentence(), p.call.r.Method, p.call.r.URL.Path)
		status.Reason = api.LeaderUnreachable
		return status
	}
	status := api.Errorf(http.StatusServiceUnavailable,
		"the leader was lost before it answered %s %s, which may have been done: look, or repeat it (a create with its Idempotency-Key happens once)", p.call.r.Method, p.call.r.URL.Path)
	status.Reason = api.LeaderLost
	return status
}

// stillLeads reports whether a coordinator leads, as far as this one knows.
func (p *passing) stillLeads(leader service.Leader) bool {
	known, stop := context.WithCancel(p.call.ctx())
	stop()
	now, err := p.Peer.Leader(known)
	return err == nil && now == leader
}

// try asks the present leader; it reports whether the request has been
// answered.
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
	return p.reply(p.call, a), true
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

// left is the rest of the time that the client wants to wait.
func (p *passing) left() time.Duration {
	if p.wait == 0 {
		return 0
	}
	return max(p.wait-time.Since(p.began), time.Millisecond).Round(time.Millisecond)
}

// there sends the request to the leader and relays its answer.
func (p *passing) there(leader service.Leader) (int, bool) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(p.call.ctx(), p.left()+answerMargin)
	defer cancel()
	watch := p.followed(ctx, cancel, leader)
	defer watch()
	answer, sent, err := p.send(ctx, p.call, leader, p.left())
	if err != nil {
		p.unanswered(&failure{leader: leader, err: err, took: time.Since(began), silent: timedOut(err)}, sent)
		return 0, false
	}
	defer func() { _ = answer.Body.Close() }()
	if status := refusedElsewhere(answer); status != nil {
		p.failed = nil
		p.lost(status)
		return 0, false
	}
	code, err := p.relay(p.call, answer)
	if err != nil {
		p.unanswered(&failure{leader: leader, err: err, took: time.Since(began), silent: timedOut(err)}, true)
		return 0, false
	}
	return code, true
}

// unanswered notes a try that brought no answer. Connections that are as dead as
// the one that was used are not used again.
func (p *passing) unanswered(f *failure, sent bool) {
	p.failed = f
	if sent {
		p.begun = true
		p.deadline = time.Now().Add(p.Patience)
	}
	if f.silent {
		p.peers.CloseIdleConnections()
	}
	p.Logger.Debug("forward_failed", "leader", f.leader.ID, "address", f.leader.Address, "took", f.took, "error", f.err)
}

// timedOut reports whether an error means that no answer came in time.
func timedOut(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// followed gives a request up, by cancel, when another coordinator leads than
// the one that it was sent to: that one may hang. The caller ends it.
func (p *passing) followed(ctx context.Context, cancel func(), asked service.Leader) (end func()) {
	done := make(chan struct{})
	go func() {
		look := time.NewTicker(10 * peerPause)
		defer look.Stop()
		known, stop := context.WithCancel(ctx)
		stop() // the leader that is known already
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
	out.Header.Set(hopHeader, h.ID)
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
	if err != nil || json.Unmarshal(body, status) != nil {
		return nil //nolint:nilerr // an answer that is cut short is passed on as it is
	}
	return elsewhere(status)
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
	begun = true
	to := h.room.answers.begin(c.w, connectionOf(c.ctx()), held)
	defer to.end()
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

// leaderAnswers lets the leader answer a read that it knows more about; false
// if there is none, or it does not answer soon.
func (h *handler) leaderAnswers(c *call) (int, bool) {
	if h.Peer == nil || c.r.Header.Get(hopHeader) != "" {
		return 0, false
	}
	known, stop := context.WithCancel(c.ctx())
	stop()
	leader, err := h.Peer.Leader(known)
	if err != nil || leader.Own || h.silent.Load().covers(leader) {
		return 0, false
	}
	ctx, cancel := context.WithTimeout(c.ctx(), leaderFirst)
	defer cancel()
	answer, _, err := h.send(ctx, c, leader, 0)
	if err != nil {
		if timedOut(err) && c.ctx().Err() == nil {
			h.silent.Store(&silence{leader, time.Now().Add(silenceFor)})
		}
		return 0, false
	}
	defer func() { _ = answer.Body.Close() }()
	if refusedElsewhere(answer) != nil {
		return 0, false
	}
	code, err := h.relay(c, answer)
	return code, err == nil
}

// silence notes that a leader did not answer: reads that this coordinator can
// serve as well are not left to that leader for a while.
type silence struct {
	leader service.Leader
	until  time.Time
}

// silenceFor is how long that is.
const silenceFor = 5 * time.Second

func (s *silence) covers(leader service.Leader) bool {
	return s != nil && s.leader == leader && time.Now().Before(s.until)
}

// unavailable refuses a request that may be repeated soon.
func (h *handler) unavailable(c *call, status *api.Status) int {
	c.w.Header().Set("Retry-After", strconv.Itoa(1))
	return h.refuse(c.w, status)
}
