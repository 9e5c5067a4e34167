package ipc

import (
	"bufio"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/serf/serf"
)

// connection is one client. serve owns all fields but those below mu.
type connection struct {
	server *Server
	conn   net.Conn
	limit  *io.LimitedReader
	dec    *codec.Decoder
	ctx    context.Context // ends with the connection
	cancel context.CancelFunc
	wg     sync.WaitGroup // the streams

	shaken, trusted bool
	monitoring      atomic.Bool

	// stops ends the streams, by sequence. A stream that has ended leaves it.
	stopping sync.Mutex
	stops    map[uint64]context.CancelFunc

	sending sync.Mutex
	writer  *bufio.Writer
	enc     *codec.Encoder

	mu      sync.Mutex
	lastID  uint64
	pending map[uint64]*serf.Query // queries that were streamed to the client
}

func newConnection(s *Server, conn net.Conn) *connection {
	handle := &codec.MsgpackHandle{WriteExt: true, BasicHandle: codec.BasicHandle{TimeNotBuiltin: true}} //nolint:staticcheck // serf's format
	c := &connection{
		server: s, conn: conn, limit: &io.LimitedReader{R: conn, N: maxRequest}, writer: bufio.NewWriter(conn),
		stops: make(map[uint64]context.CancelFunc), pending: make(map[uint64]*serf.Query),
	}
	c.ctx, c.cancel = context.WithCancel(s.ctx)
	c.dec = codec.NewDecoder(bufio.NewReader(c.limit), handle)
	c.enc = codec.NewEncoder(c.writer, handle)
	return c
}

// serve answers requests until the client goes or breaks a rule.
func (c *connection) serve() error {
	defer c.wg.Wait()
	defer c.cancel()
	if err := c.conn.SetReadDeadline(time.Now().Add(loginTime)); err != nil {
		return err
	}
	for {
		c.limit.N = maxRequest
		var h requestHeader
		if err := c.dec.Decode(&h); err != nil {
			return fmt.Errorf("request header: %w", err)
		}
		if err := c.request(h); err != nil {
			return err
		}
	}
}

// request answers one request. An error ends the connection.
func (c *connection) request(h requestHeader) error {
	switch {
	case h.Command == "handshake":
		return c.handshake(h.Seq)
	case !c.shaken:
		return errors.Join(errors.New(handshakeRequired), c.send(h.Seq, handshakeRequired, nil))
	case h.Command == "auth":
		return c.auth(h.Seq)
	case !c.trusted:
		return errors.Join(errors.New(authRequired), c.send(h.Seq, authRequired, nil))
	}
	command, known := commands[h.Command]
	if !known {
		return errors.Join(fmt.Errorf("command %q: %s", h.Command, unsupportedCommand), c.send(h.Seq, unsupportedCommand, nil))
	}
	return command(c, h.Seq)
}

func (c *connection) handshake(seq uint64) error {
	var r handshakeRequest
	if err := c.dec.Decode(&r); err != nil {
		return err
	}
	problem := ""
	switch {
	case r.Version != version:
		problem = unsupportedVersion
	case c.shaken:
		problem = duplicateHandshake
	default:
		c.shaken = true
	}
	return c.send(seq, problem, nil)
}

func (c *connection) auth(seq uint64) error {
	var r authRequest
	if err := c.dec.Decode(&r); err != nil {
		return err
	}
	if subtle.ConstantTimeCompare([]byte(r.AuthKey), []byte(c.server.config.Token)) != 1 {
		return errors.Join(errors.New(invalidAuthToken), c.send(seq, invalidAuthToken, nil))
	}
	c.trusted = true
	return errors.Join(c.conn.SetReadDeadline(time.Time{}), c.send(seq, "", nil))
}

// send writes a header and, if it is not nil, a body. Streams and answers take
// turns.
func (c *connection) send(seq uint64, problem string, body any) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	if err := c.conn.SetWriteDeadline(time.Now().Add(sendTime)); err != nil {
		return err
	}
	if err := c.enc.Encode(&responseHeader{seq, problem}); err != nil {
		return err
	}
	if body != nil {
		if err := c.enc.Encode(body); err != nil {
			return err
		}
	}
	return c.writer.Flush()
}

// stream runs a stream under a request's sequence until it ends, the client
// stops it or goes. The result is the reason why it does not run, "" if it
// runs.
func (c *connection) stream(seq uint64, run func(context.Context)) (problem string) {
	c.stopping.Lock()
	defer c.stopping.Unlock()
	if _, exists := c.stops[seq]; exists {
		return streamExists
	}
	if len(c.stops) >= maxStreams {
		return tooManyStreams
	}
	ctx, stop := context.WithCancel(c.ctx)
	c.stops[seq] = stop
	c.wg.Go(func() {
		run(ctx)
		c.stopStream(seq)
	})
	return ""
}

// stopStream ends the stream of a sequence, if there is one.
func (c *connection) stopStream(seq uint64) {
	c.stopping.Lock()
	defer c.stopping.Unlock()
	if stop, ok := c.stops[seq]; ok {
		stop()
		delete(c.stops, seq)
	}
}

// await keeps a query of the ring for the client's answer and returns its id.
func (c *connection) await(q *serf.Query) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for id, old := range c.pending {
		if now.After(old.Deadline()) {
			delete(c.pending, id)
		}
	}
	c.lastID++
	c.pending[c.lastID] = q
	return c.lastID
}

func (c *connection) answer(id uint64, payload []byte) error {
	c.mu.Lock()
	q, waits := c.pending[id]
	c.mu.Unlock()
	if !waits {
		return errors.New(invalidQueryID)
	}
	return q.Respond(payload)
}
