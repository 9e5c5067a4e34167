package lead

import (
	"slices"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/ceiling"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
)

// This file serves clients' requests: each is an input, and its answer an effect.

// Request is an order or a question of a client. A request is never changed, since
// the coordinator may submit it a second time after a refusal that is not final.
type Request interface {
	// serve carries the request out. The call has one answer, at once or later.
	serve(l *Leader, c *call)
}

type (
	// ClientRequest is a request of a client. The answer carries its Token.
	ClientRequest struct {
		Token   post.Token
		Request Request
	}
	// ClientGone says that a client no longer waits for its answer.
	ClientGone struct{ Token post.Token }
	// SettleAnswer answers AskSettled: the leader has handled every write that had landed.
	SettleAnswer struct{ Token post.Token }
)

func (ClientRequest) input() {}
func (ClientGone) input()    {}
func (SettleAnswer) input()  {}

// call is a request that is being served.
type call struct {
	leader *Leader
	token  post.Token
	// begun: what was asked for is under way. A refusal from then on is final, and
	// the request is not served again.
	begun  bool
	over   bool // answered, or nobody waits for the answer
	author post.Author
	// on is the unit that the call waits for, due when the client wants an answer
	// at the latest.
	on  *unit
	due *post.Alarm
}

// answer ends the call with a result, or with a refusal.
func (c *call) answer(result any, status *api.Status) {
	if c.over {
		return
	}
	c.leader.leaveCall(c)
	c.leader.post.Add(post.Effect{Kind: post.AnswerClient, Token: c.token, Result: result, Status: status, Final: c.begun})
}

// serve serves a request and keeps the call as long as it has no answer.
func (l *Leader) serve(in ClientRequest) {
	c := &call{leader: l, token: in.Token, author: authorOf(in.Request)}
	l.calls[in.Token] = c
	defer l.post.ActFor(&c.author)()
	in.Request.serve(l, c)
}

// leaveCall forgets a call.
func (l *Leader) leaveCall(c *call) {
	c.over = true
	delete(l.calls, c.token)
	l.post.Cancel(c.due)
	if c.on != nil {
		l.stopWaiting(c)
	}
}

// waiter is a call that waits for a unit to change.
type waiter struct {
	call *call
	// ready looks whether the wait is over, and goes on with the call if so.
	ready func() bool
}

// wait has ready run now and after each change of a unit, until it reports true.
func (l *Leader) wait(c *call, u *unit, ready func() bool) {
	if !ready() {
		l.waitForChange(c, u, ready)
	}
}

// waitForChange is wait from the next change on.
func (l *Leader) waitForChange(c *call, u *unit, ready func() bool) {
	c.on = u
	l.waiters[u] = append(l.waiters[u], &waiter{c, ready})
}

// stopWaiting ends the wait of a call.
func (l *Leader) stopWaiting(c *call) {
	left := slices.DeleteFunc(l.waiters[c.on], func(w *waiter) bool { return w.call == c })
	if l.waiters[c.on] = left; len(left) == 0 {
		delete(l.waiters, c.on)
	}
	c.on = nil
}

// recheckWaiters has the calls look again that wait for units which have changed. It
// runs when an input has been handled, so that no call sees half of a change.
func (l *Leader) recheckWaiters() {
	for len(l.changed) > 0 {
		u := l.changed[0]
		l.changed = l.changed[1:]
		for _, w := range slices.Clone(l.waiters[u]) {
			l.recheckWaiter(w)
		}
	}
	l.changed = nil
}

func (l *Leader) recheckWaiter(w *waiter) {
	c := w.call
	if c.over || c.on == nil {
		return
	}
	u := c.on
	l.stopWaiting(c)
	defer l.post.ActFor(&c.author)()
	if !w.ready() {
		l.waitForChange(c, u, w.ready)
	}
}

// answerBy has expired run when a client wants its answer at the latest, unless
// the call is over by then.
func (l *Leader) answerBy(c *call, wait time.Duration, expired func()) {
	c.due = l.post.After(wait, func() {
		if !c.over {
			expired()
		}
	})
}

// settleFirst goes on with a call when the leader has taken in all that had landed in
// the store by now: others may have seen it.
func (l *Leader) settleFirst(c *call, then func()) {
	t := l.post.NextToken()
	l.settling[t] = func() {
		if !c.over {
			defer l.post.ActFor(&c.author)()
			then()
		}
	}
	l.post.Add(post.Effect{Kind: post.AskSettled, Token: t})
}

// AskedBy is a change that a person asks for: the entry of the change is written with
// it.
type AskedBy struct {
	By *record.Audit
	Request
}

// authorOf is the author whom the wrappers of a request name.
func authorOf(r Request) post.Author {
	var by *record.Audit
	var caller ceiling.Caller
	for {
		switch w := r.(type) {
		case AskedBy:
			by, r = w.By, w.Request
		case Bounded:
			caller, r = w.Caller, w.Request
		default:
			return post.NewAuthor(by, caller)
		}
	}
}
