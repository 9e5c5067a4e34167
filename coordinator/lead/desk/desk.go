// Package desk keeps the calls of clients that have no answer yet: the subject whose change
// each call waits for, the time of the answer at the latest, and the questions whether the
// leader has taken in all writes; and the request ids of a day. Desk knows no unit, job or
// node: a subject is a name that the leader gives. Desk judges no request.
package desk

import (
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
)

// Subject is the name of an object whose changes calls wait for.
type Subject string

// Desk has the open calls of a term. A single goroutine uses it at a time.
//
// Invariant: calls has each call until the call is over, and no other.
// Invariant: waiting has each call with a subject once, under the subject, and no empty list.
type Desk struct {
	post     *post.Post
	calls    map[post.Token]*Call
	waiting  map[Subject][]*Call // in the order of their waits
	changed  []Subject           // with calls, since the last Recheck
	settling map[post.Token]func()
}

// New is a desk without calls; the answers leave by p.
func New(p *post.Post) *Desk {
	return &Desk{post: p, calls: map[post.Token]*Call{}, waiting: map[Subject][]*Call{}, settling: map[post.Token]func(){}}
}

// state of a call.
type state uint8

const (
	open  state = iota
	begun       // the request is being carried out: a refusal is final, and the request is not served again
	over        // answered, or the client is gone
)

// Call is a request that is being served.
type Call struct {
	desk   *Desk
	token  post.Token
	state  state
	author post.Author
	due    *post.Alarm // for AnswerBy

	subject Subject
	ready   func() bool // whether the wait for subject is over; nil without a wait
}

// Open begins a call. The answer carries the token.
func (d *Desk) Open(t post.Token, author post.Author) *Call {
	c := &Call{desk: d, token: t, author: author}
	d.calls[t] = c
	return c
}

// Gone ends a call whose client waits no longer.
func (d *Desk) Gone(t post.Token) {
	if c := d.calls[t]; c != nil {
		c.end()
	}
}

// Act has the writes that follow belong to the author of the call, until restore.
func (c *Call) Act() (restore func()) { return c.desk.post.ActFor(&c.author) }

// Person is the author of the call; "" for a program.
func (c *Call) Person() string { return c.author.Person() }

// Begin notes that the request is being carried out.
func (c *Call) Begin() {
	if c.state == open {
		c.state = begun
	}
}

// Answer ends the call with a result, or with a refusal. Of several answers the first counts.
func (c *Call) Answer(result any, status *api.Status) {
	if c.state == over {
		return
	}
	final := c.state == begun
	c.end()
	c.desk.post.Add(post.Effect{Kind: post.AnswerClient, Token: c.token, Result: result, Status: status, Final: final})
}

func (c *Call) end() {
	c.state = over
	delete(c.desk.calls, c.token)
	c.desk.post.Cancel(c.due)
	c.stopWaiting()
}

// IsOver reports whether the call is answered, or the client is gone.
func (c *Call) IsOver() bool { return c.state == over }

// AnswerBy runs expired after a time, unless the call is over.
func (c *Call) AnswerBy(wait time.Duration, expired func()) {
	c.due = c.desk.post.After(wait, func() {
		if c.state != over {
			expired()
		}
	})
}

// Settle runs then, for the author of the call, when the leader has taken in each write that
// has landed by now: other clients may have seen the write.
func (c *Call) Settle(then func()) {
	t := c.desk.post.NextToken()
	c.desk.settling[t] = func() {
		if c.state != over {
			defer c.Act()()
			then()
		}
	}
	c.desk.post.Add(post.Effect{Kind: post.AskSettled, Token: t})
}

// Settled answers the question of a Settle.
func (d *Desk) Settled(t post.Token) {
	if then := d.settling[t]; then != nil {
		delete(d.settling, t)
		then()
	}
}
