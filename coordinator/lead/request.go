package lead

import (
	"github.com/musterd/muster/coordinator/ceiling"
	"github.com/musterd/muster/coordinator/lead/desk"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
)

// This file serves clients' requests: each is an input, and its answer an effect.

// Request is an order or a question of a client. A request is never changed, since
// the coordinator may submit it a second time after a refusal that is not final.
type Request interface {
	// serve carries the request out. The call has one answer, at once or later.
	serve(l *Leader, c *desk.Call)
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

// serve serves a request; the desk keeps the call as long as it has no answer.
func (l *Leader) serve(in ClientRequest) {
	c := l.desk.Open(in.Token, authorOf(in.Request))
	defer c.Act()()
	in.Request.serve(l, c)
}

// changesOf is the name by which calls wait for changes of a unit.
func changesOf(u *work.Unit) desk.Subject { return desk.Subject(u.Record.UID) }

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
