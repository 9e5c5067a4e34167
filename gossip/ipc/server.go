package ipc

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/serf/serf"
)

// Config is a port.
type Config struct {
	Serf  *serf.Serf
	Token string // required
	// Keys may be nil: gossip is not encrypted.
	Keys Keys
	// Answers are, by query, this member's full answers for operators of this host,
	// in place of those that it gives to the ring.
	Answers map[string]func(payload []byte) []byte
	// CheckTags refuses tags that the other members would not accept.
	CheckTags func(tags map[string]string) error
	Lines     *Lines
	Logger    *slog.Logger
}

const (
	maxConnections = 64
	maxStreams     = 16      // of one connection
	maxRequest     = 1 << 20 // bytes of one request, header included
	// loginTime is for handshake and token, sendTime for one message to a client.
	loginTime = 10 * time.Second
	sendTime  = 10 * time.Second
)

// Server is an open port. Close ends it.
type Server struct {
	config   Config
	name     string // the member's
	listener net.Listener
	wg       sync.WaitGroup
	ctx      context.Context // ends with Close; handlers that wait obey it
	cancel   context.CancelFunc

	mu          sync.Mutex
	closed      bool
	connections map[*connection]bool
	streams     map[*eventStream]bool
}

// Serve serves the port until Close. The listener is the server's.
func Serve(l net.Listener, c Config) *Server {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{
		config: c, name: c.Serf.LocalMember().Name, listener: l, ctx: ctx, cancel: cancel,
		connections: make(map[*connection]bool), streams: make(map[*eventStream]bool),
	}
	s.wg.Go(s.accept)
	return s
}

// answers reports whether operators of this host get another answer than the
// ring.
func (s *Server) answers(query string) bool { return s.config.Answers[query] != nil }

// Close closes the port and its connections and waits for them.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	for c := range s.connections {
		_ = c.conn.Close()
	}
	s.mu.Unlock()
	s.cancel()
	_ = s.listener.Close()
	s.wg.Wait()
}

func (s *Server) accept() {
	for {
		conn, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.config.Logger.Warn("serf_rpc_not_accepted", "error", err)
			select {
			case <-s.ctx.Done():
				return
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		c := newConnection(s, conn)
		if !s.register(c) {
			_ = conn.Close()
			continue
		}
		s.wg.Go(func() {
			defer s.end(c)
			if err := c.serve(); err != nil && !errors.Is(err, io.EOF) && s.ctx.Err() == nil {
				s.config.Logger.Debug("serf_rpc_connection_ended", "from", conn.RemoteAddr().String(), "error", err)
			}
		})
	}
}

func (s *Server) register(c *connection) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.connections) >= maxConnections {
		return false
	}
	s.connections[c] = true
	return true
}

func (s *Server) end(c *connection) {
	_ = c.conn.Close()
	c.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.connections, c)
}

// HandleEvent hands an event of the ring to the clients that stream it. It
// never blocks: a slow client loses events.
func (s *Server) HandleEvent(e serf.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for stream := range s.streams {
		stream.offer(e)
	}
}

func (s *Server) follow(stream *eventStream, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if on {
		s.streams[stream] = true
	} else {
		delete(s.streams, stream)
	}
}
