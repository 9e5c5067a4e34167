package rpc

import "sync"

// outboxSize is how many messages may wait for a leader that does not read:
// several seconds of the fastest leader. More is a slow leader, and its
// session ends, so that it cannot hold the agent's memory.
const outboxSize = 4096

// Envelope is one message to the leader.
type Envelope struct {
	Body Body
	// LedgerHash is the hash over all grants after the change that the body
	// reports.
	LedgerHash uint64
}

// Outbox is the queue of messages to one session. The ledger's owner puts
// messages in and never waits; the session takes them out in order.
type Outbox struct {
	queue chan Envelope
	ended chan struct{} // closed by End

	mu  sync.Mutex
	err error // why it ended
}

// NewOutbox returns an empty queue.
func NewOutbox() *Outbox {
	return &Outbox{queue: make(chan Envelope, outboxSize), ended: make(chan struct{})}
}

// Put queues a message and never blocks. A full queue ends the session.
func (o *Outbox) Put(e Envelope) {
	select {
	case o.queue <- e:
	default:
		o.End(ErrSlowLeader)
	}
}

// End closes the session for the given reason once; later calls do nothing.
// Queued messages may be lost.
func (o *Outbox) End(reason error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = reason
		close(o.ended)
	}
}

// Ended is closed once the session has been ended.
func (o *Outbox) Ended() <-chan struct{} { return o.ended }

// Next returns the next message, waiting for it; ok is false once the queue
// has ended.
func (o *Outbox) Next() (e Envelope, ok bool) {
	select {
	case e = <-o.queue:
		return e, true
	case <-o.ended:
		return Envelope{}, false
	}
}

// Reason returns why the outbox ended, nil before.
func (o *Outbox) Reason() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
