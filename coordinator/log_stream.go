package coordinator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/grant"
)

// logStream is the output of the members of one job, for one reader. One goroutine
// follows the job, and one goroutine a member reads from its agent.
type logStream struct {
	c      *Coordinator
	name   objects.Name
	uid    string
	query  service.LogQuery
	chunks chan *api.LogChunk // no piece waits: a slow reader slows the agents
	over   chan struct{}      // closed once no member starts any more
	end    chan error         // capacity 1: the error that ends the stream
	cancel context.CancelFunc
}

// logRetry is the time between two attempts to reach an agent.
const logRetry = time.Second

func openLogStream(ctx context.Context, c *Coordinator, name objects.Name, uid string, q service.LogQuery, v *objects.View, release func()) *logStream {
	ctx, cancel := context.WithCancel(ctx)
	s := &logStream{c: c, name: name, uid: uid, query: q, chunks: make(chan *api.LogChunk), over: make(chan struct{}), end: make(chan error, 1), cancel: cancel}
	go func() {
		defer release()
		s.end <- s.run(ctx, v)
	}()
	return s
}

// Next implements service.LogStream.
func (s *logStream) Next(ctx context.Context) (*api.LogChunk, error) {
	select {
	case piece := <-s.chunks:
		return piece, nil
	case err := <-s.end:
		s.end <- err
		if err == nil {
			err = io.EOF
		}
		return nil, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Close implements service.LogStream.
func (s *logStream) Close() { s.cancel() }

// run reads every start of the job until the job has ended, or as far as there is
// anything now.
func (s *logStream) run(ctx context.Context, v *objects.View) error {
	var readers sync.WaitGroup
	defer readers.Wait()
	defer s.cancel()
	seen := map[memberStart]bool{}
	for {
		j, found := v.Job(s.name.Namespace + "/" + s.name.Name)
		ours := found && j.Record.UID == s.uid
		over := !ours || !s.query.Follow || api.Phase(j.Record.Phase).Ended()
		if over {
			close(s.over) // before the last readers begin: they say why there is no output
		}
		if ours {
			for _, start := range startsOf(&j, s.query) {
				if !seen[start] {
					seen[start] = true
					readers.Go(func() { s.read(ctx, start) })
				}
			}
		}
		if over {
			readers.Wait()
			return ctx.Err()
		}
		var err error
		if v, err = s.c.changed(ctx, s.name, v.Revision()); err != nil {
			return err
		}
	}
}

// read gives the output of one start. A node that cannot be reached is asked again as
// long as the job lasts.
func (s *logStream) read(ctx context.Context, start memberStart) {
	p := pieces{stream: s, ctx: ctx, start: start}
	told := false
	for {
		err := s.readOnce(ctx, start, &p)
		switch {
		case err == nil, ctx.Err() != nil:
			p.flush()
			return
		case errors.Is(err, grant.ErrNoLog):
			if s.isOver() { // else the unit was evicted before the start
				p.say(fmt.Sprintf("node %s has no output of member %d: the member was never started there, or its output is kept no more", start.node, start.member))
			}
			return
		case s.isOver():
			p.say(fmt.Sprintf("the output of member %d cannot be read: %v", start.member, err))
			return
		case !told:
			p.say(fmt.Sprintf("the output of member %d cannot be read now, and is asked for again: %v", start.member, err))
			told = true
		}
		select {
		case <-time.After(logRetry):
		case <-s.over:
		case <-ctx.Done():
		}
	}
}

func (s *logStream) readOnce(ctx context.Context, start memberStart, p *pieces) error {
	address, err := s.c.agentAddress(start.node)
	if err != nil {
		return err
	}
	q := grant.LogQuery{Tx: start.tx, Member: start.index, From: p.next(), Follow: s.query.Follow}
	return s.c.logs.Read(ctx, start.node, address, q, p.take)
}

// isOver reports whether no member starts any more.
func (s *logStream) isOver() bool {
	select {
	case <-s.over:
		return true
	default:
		return false
	}
}

// pieces hands the output of one start on. A character that is cut at the end of a
// piece waits for its rest.
type pieces struct {
	stream *logStream
	ctx    context.Context // of the stream
	start  memberStart
	at     int64  // offset of rest
	rest   []byte // the beginning of a character
}

// next is the offset behind everything that has arrived.
func (p *pieces) next() int64 { return p.at + int64(len(p.rest)) }

// take hands a piece on.
func (p *pieces) take(at int64, data []byte) error {
	if at != p.next() { // what was between is kept no more
		if err := p.flush(); err != nil {
			return err
		}
		p.at = at
	}
	data = append(p.rest, data...)
	cut := len(data) - cutCharacter(data)
	p.rest = append([]byte(nil), data[cut:]...)
	return p.give(data[:cut])
}

// flush hands on what waits for the rest of a character.
func (p *pieces) flush() error {
	rest := p.rest
	p.rest = nil
	return p.give(rest)
}

func (p *pieces) give(data []byte) error {
	if len(data) == 0 {
		return nil
	}
	piece := p.piece()
	piece.SetBytes(data)
	p.at += int64(len(data))
	return p.send(piece)
}

// say hands on why output is missing.
func (p *pieces) say(message string) {
	piece := p.piece()
	piece.Message = message
	_ = p.send(piece) // fails only where nobody reads any more
}

func (p *pieces) piece() *api.LogChunk {
	return &api.LogChunk{Member: int32(p.start.member), Node: string(p.start.node), Transaction: p.start.tx, Offset: p.at}
}

func (p *pieces) send(piece *api.LogChunk) error {
	select {
	case p.stream.chunks <- piece:
		return nil
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
}

// cutCharacter is the number of bytes at the end of data that begin a character whose
// rest is missing.
func cutCharacter(data []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(data); n++ {
		if b := data[len(data)-n]; utf8.RuneStart(b) {
			if b >= utf8.RuneSelf && !utf8.FullRune(data[len(data)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}
