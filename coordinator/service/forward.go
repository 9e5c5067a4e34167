package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/musterd/muster/api"
)

// Bounds of a request that is passed on.
const (
	// defaultPatience is how long a request waits for a leader.
	defaultPatience = 7 * time.Second
	// hoppedPatience is how long a request that another coordinator has passed on
	// waits: this coordinator is about to lead, or the other one was wrong.
	hoppedPatience = time.Second
	// peerPause is between two looks for a leader that answers.
	peerPause = 25 * time.Millisecond
	// answerMargin is how much longer than its client wants to wait a request is
	// left to a leader that does not answer.
	answerMargin = 2 * time.Second
)

// MostForwards bounds the requests that a coordinator passes on at one time.
const MostForwards = 1024

// Forward gives requests to the coordinator that leads: it finds the leader,
// tries, tries again where that is safe, and describes the outcome of a request whose
// answer is missing. All codecs of a coordinator share one. It may be used by
// many goroutines.
type Forward struct {
	id       string
	peer     Peer
	patience time.Duration
	log      *slog.Logger
	slots    chan struct{} // one for each request that is being passed on
	key      string        // of proofs (ProveBy)
}

// NewForward makes the Forward of a coordinator. patience bounds how long a
// request waits for a leader; 0 = 7 s. A nil logger discards.
func NewForward(id string, peer Peer, patience time.Duration, log *slog.Logger) *Forward {
	if patience == 0 {
		patience = defaultPatience
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Forward{id: id, peer: peer, patience: patience, log: log, slots: make(chan struct{}, MostForwards)}
}

// ID names this coordinator to others.
func (f *Forward) ID() string { return f.id }

// Elsewhere is the refusal in an error that asks for another coordinator, nil
// for any other error.
func Elsewhere(err error) *api.Status {
	var status *api.Status
	if errors.As(err, &status) && (status.Reason == api.NotLeader || status.Reason == api.LeaderLost) {
		return status
	}
	return nil
}

// Repeat says whether a request may be sent again after it may have been done.
type Repeat uint8

// Once: it may not. Keyed: a creation with a key happens once, however often it
// is sent. Read: it changes nothing.
const (
	Once Repeat = iota
	Keyed
	Read
)

// Passage is one request on its way to the leader, as its codec sees it.
type Passage struct {
	// Name is the request in messages, "DELETE /api/v1/…".
	Name   string
	Repeat Repeat
	// Wait is how long the client wants to wait for the answer beyond the usual.
	Wait time.Duration
	// Lasts is how much longer than usual the answer may take, though the client has not
	// asked to wait.
	Lasts time.Duration
	// Hopped: another coordinator has passed the request on. It goes no further.
	Hopped bool
	// Here serves the request at this coordinator, with the rest of Wait. It
	// returns a refusal by Elsewhere, or nil after it has answered.
	Here func(left time.Duration) *api.Status
	// There asks the leader and relays its answer.
	There func(ctx context.Context, leader Leader, left time.Duration) Attempt
}

// Attempt is the result of one try at the leader. The zero value means that the
// request has been answered; otherwise nothing has been answered yet.
type Attempt struct {
	// At is the address that was asked.
	At string
	// Refused is the refusal of a coordinator that does not lead, or no longer.
	Refused *api.Status
	// Err means that no answer came.
	Err error
	// Sent: something of the request had left before Err.
	Sent bool
	// Silent: nothing came back in time, as through a cut or of a stopped process.
	Silent bool
}

func (a Attempt) answered() bool { return a.Refused == nil && a.Err == nil }

// passing is a Passage under way.
type passing struct {
	*Forward
	Passage
	began    time.Time
	deadline time.Time // for finding a leader
	limit    time.Time // of the tries at a leader that does not answer
	begun    bool      // the request may have been done already
	last     *api.Status
	failed   *failure // the last try that brought no answer; nil if it brought one
}

// failure is a try without an answer.
type failure struct {
	leader Leader
	Attempt
	took time.Duration
}

// sentence describes a failure for the client.
func (f *failure) sentence() string {
	return fmt.Sprintf("coordinator %s, which leads, did not answer at %s within %s (%v)", f.leader.ID, f.At, f.took.Round(time.Millisecond), f.Err)
}

// retryAfter is the time after which a request that was not passed on may be
// sent again, in seconds.
const retryAfter = 1

func unavailable(format string, args ...any) *api.Status {
	status := api.Errorf(http.StatusServiceUnavailable, format, args...)
	status.RetryAfterSeconds = retryAfter
	return status
}

// Pass has the leader answer a request that this coordinator has refused, once
// there is a leader. It returns nil after the request has been answered, else
// the 503 that the codec answers.
func (f *Forward) Pass(ctx context.Context, p Passage, refused *api.Status) *api.Status {
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	default:
		return unavailable("%d requests are being passed on to the leader already; ask again", MostForwards)
	}
	patience := f.patience
	if p.Hopped {
		patience = min(patience, hoppedPatience)
	}
	now := time.Now()
	on := &passing{Forward: f, Passage: p, began: now, deadline: now.Add(patience), limit: now.Add(p.Wait + answerMargin), last: refused}
	on.begun = refused.Reason == api.LeaderLost && p.Repeat != Read
	for {
		if status, done := on.try(ctx); done {
			return status
		}
		if on.begun && p.Repeat == Once || on.exhausted() {
			return on.unknown(ctx)
		}
		select {
		case <-ctx.Done(): // the client went away, or this coordinator stops
			return on.unknown(ctx)
		case <-time.After(peerPause):
		}
	}
}

// try asks the present leader. done means that the request has been answered, or
// is to be refused with a status.
func (p *passing) try(ctx context.Context) (status *api.Status, done bool) {
	if p.begun && p.Repeat == Once {
		return nil, false
	}
	search, cancel := context.WithDeadline(ctx, p.deadline)
	leader, err := p.peer.Leader(search)
	cancel()
	switch {
	case err != nil || time.Now().After(p.deadline):
		if ctx.Err() != nil {
			return nil, false
		}
		return p.unknown(ctx), true
	case leader.Own:
		refused := p.Here(p.left())
		if refused != nil {
			p.lost(refused)
		}
		return nil, refused == nil
	case p.Hopped:
		return p.last, true
	}
	return nil, p.there(ctx, leader)
}

// there sends the request to the leader; it reports whether the request has been
// answered.
func (p *passing) there(ctx context.Context, leader Leader) bool {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, p.left()+answerMargin+p.Lasts)
	defer cancel()
	defer p.followed(ctx, cancel, leader)()
	got := p.There(ctx, leader, p.left())
	switch {
	case got.answered():
		return true
	case got.Refused != nil:
		p.failed = nil
		p.lost(got.Refused)
		return false
	}
	p.failed = &failure{leader: leader, Attempt: got, took: time.Since(began)}
	if got.Sent {
		p.begun = p.Repeat != Read
		p.deadline = time.Now().Add(p.patience)
	}
	p.log.Debug("forward_failed", "request", p.Name, "leader", leader.ID, "address", got.At, "took", p.failed.took, "error", got.Err)
	return false
}

// lost notes that a coordinator that led does so no more. The time for finding
// another begins anew.
func (p *passing) lost(status *api.Status) {
	p.last = status
	if status.Reason == api.LeaderLost {
		p.begun = p.Repeat != Read
		p.deadline = time.Now().Add(p.patience)
	}
}

// left is the rest of the time that the client wants to wait.
func (p *passing) left() time.Duration {
	if p.Wait == 0 {
		return 0
	}
	return max(p.Wait-time.Since(p.began), time.Millisecond).Round(time.Millisecond)
}

// exhausted reports whether the leader has been silent for as long as the client
// can be left without an answer. A leader that refuses connections has ended, and
// another is waited for.
func (p *passing) exhausted() bool {
	return p.failed != nil && p.failed.Silent && !time.Now().Before(p.limit)
}

// unknown is the answer where no coordinator may be asked any more.
func (p *passing) unknown(ctx context.Context) *api.Status {
	const again = "look, or repeat it (a create with its idempotency key happens once)"
	leads := p.failed != nil && p.stillLeads(ctx, p.failed.leader)
	switch {
	case !p.begun && leads:
		return unavailable("coordinator %s does not lead, and %s; nothing was done: ask again, or another coordinator", p.id, p.failed.sentence()).Because(api.NotLeader)
	case !p.begun:
		status := *p.last // which may be shared
		status.Reason, status.RetryAfterSeconds = api.NotLeader, retryAfter
		return &status
	case leads:
		return unavailable("%s: %s may have been done: %s", p.failed.sentence(), p.Name, again).Because(api.LeaderUnreachable)
	}
	return unavailable("the leader was lost before it answered %s, which may have been done: %s", p.Name, again).Because(api.LeaderLost)
}

// known is the leader that this coordinator knows already.
func (f *Forward) known(ctx context.Context) (Leader, error) {
	ended, stop := context.WithCancel(ctx)
	stop()
	return f.peer.Leader(ended)
}

// stillLeads reports whether a coordinator leads, as far as this one knows.
func (f *Forward) stillLeads(ctx context.Context, leader Leader) bool {
	now, err := f.known(ctx)
	return err == nil && now == leader
}

// followed gives a request up, by cancel, when another coordinator leads than the
// coordinator that the request was sent to, which may hang. The caller calls end.
func (f *Forward) followed(ctx context.Context, cancel func(), asked Leader) (end func()) {
	done := make(chan struct{})
	go func() {
		look := time.NewTicker(10 * peerPause)
		defer look.Stop()
		for {
			select {
			case <-done:
				return
			case <-look.C:
				if now, err := f.known(ctx); err == nil && now != asked {
					cancel()
					return
				}
			}
		}
	}()
	return func() { close(done) }
}

// CatchUp waits until reads at this coordinator show a revision that the leader
// has answered a write with, for at most a second.
func (f *Forward) CatchUp(ctx context.Context, revision int64) {
	ctx, cancel := context.WithTimeout(ctx, catchUp)
	defer cancel()
	if err := f.peer.Reach(ctx, revision); err != nil {
		f.log.Debug("forward_behind", "revision", revision, "error", err)
	}
}

// catchUp bounds how long an answer to a write is held back until reads here show
// the write.
const catchUp = time.Second
