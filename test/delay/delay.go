// Package delay is a TCP proxy for tests that delays what passes, lets
// connections stall, and cuts them at any byte. Bytes of one connection never
// change places, as TCP promises; those of different connections do, because
// every connection draws its own delays. It decides by a seed how long and
// where, not whether what passes makes sense.
package delay

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Rules are a proxy's faults. The zero value passes everything on at once.
type Rules struct {
	Seed uint64
	// Latest is the greatest delay of a piece; each draws its own.
	Latest time.Duration
	// Stalls of a thousand pieces stand for up to Stall before they, and
	// whatever follows on their connection, go on.
	Stalls int
	Stall  time.Duration
	// CutAfter is the mean number of bytes after which a connection is cut, in
	// either direction, at any byte; 0 never cuts.
	CutAfter int
}

// Counts are what a proxy has done.
type Counts struct {
	Connections, Pieces, Bytes, Stalls, Cuts int64
}

// pieceSize is the most bytes that are delayed together, and queued the most
// pieces that wait in one direction of a connection.
const (
	pieceSize = 4 << 10
	queued    = 256
)

// Proxy passes connections on to one target.
type Proxy struct {
	target string
	rules  Rules
	listen net.Listener
	ctx    context.Context
	stop   context.CancelFunc
	wg     sync.WaitGroup
	wild   atomic.Bool

	connections, pieces, bytes, stalls, cuts atomic.Int64
}

// Start listens and serves until the test ends, or Stop. It is calm.
func Start(t testing.TB, listen, target string, r Rules) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", listen)
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{target: target, rules: r, listen: l}
	p.ctx, p.stop = context.WithCancel(context.Background())
	p.wg.Go(p.accept)
	t.Cleanup(p.Stop)
	return p
}

// Address is where it listens.
func (p *Proxy) Address() string { return p.listen.Addr().String() }

// Calm ends all faults: what passes from now on passes at once.
func (p *Proxy) Calm() { p.wild.Store(false) }

// Disturb brings the faults of the rules, which no proxy starts with, also upon
// connections that are open.
func (p *Proxy) Disturb() { p.wild.Store(true) }

// Counts returns what it has done so far.
func (p *Proxy) Counts() Counts {
	return Counts{p.connections.Load(), p.pieces.Load(), p.bytes.Load(), p.stalls.Load(), p.cuts.Load()}
}

// Stop cuts every connection and waits for their ends.
func (p *Proxy) Stop() {
	p.stop()
	p.listen.Close()
	p.wg.Wait()
}

func (p *Proxy) accept() {
	for number := uint64(0); ; number++ {
		near, err := p.listen.Accept()
		if err != nil {
			return // closed
		}
		p.connections.Add(1)
		p.wg.Go(func() { p.serve(near, number) })
	}
}

// serve passes one connection on. Its two directions end together.
func (p *Proxy) serve(near net.Conn, number uint64) {
	defer near.Close()
	dialer := net.Dialer{Timeout: 5 * time.Second}
	far, err := dialer.DialContext(p.ctx, "tcp", p.target)
	if err != nil {
		return
	}
	defer far.Close()
	ctx, cut := context.WithCancel(p.ctx)
	defer cut()
	var wg sync.WaitGroup
	for direction, ends := range [][2]net.Conn{{near, far}, {far, near}} {
		lot := rand.New(rand.NewPCG(p.rules.Seed, number<<1|uint64(direction)))
		wg.Go(func() { defer cut(); p.pass(ctx, ends[0], ends[1], lot) })
	}
	<-ctx.Done()
	near.Close()
	far.Close()
	wg.Wait()
}

// piece is some bytes and when they are due.
type piece struct {
	data []byte
	due  time.Time
}

// pass carries bytes one way until an end closes or the connection is cut.
func (p *Proxy) pass(ctx context.Context, from io.Reader, to io.Writer, lot *rand.Rand) {
	pieces := make(chan piece, queued) // what is on its way
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(pieces)
	wg.Go(func() { deliver(ctx, to, pieces) })
	left := p.budget(lot)
	var last time.Time
	for {
		data := make([]byte, pieceSize)
		n, err := from.Read(data)
		if n == 0 && err != nil {
			return
		}
		over := left > 0 && n >= left && p.wild.Load()
		if over {
			n = left - 1
			p.cuts.Add(1)
		} else if left > 0 {
			left = max(left-n, 1)
		}
		p.pieces.Add(1)
		p.bytes.Add(int64(n))
		if due := time.Now().Add(p.delay(lot)); due.After(last) {
			last = due
		}
		select {
		case pieces <- piece{data[:n], last}:
		case <-ctx.Done():
			return
		}
		if over || errors.Is(err, io.EOF) {
			return
		}
	}
}

// budget is how many bytes a direction lasts; 0 is for ever.
func (p *Proxy) budget(lot *rand.Rand) int {
	if p.rules.CutAfter == 0 {
		return 0
	}
	return 1 + int(lot.ExpFloat64()*float64(p.rules.CutAfter))
}

func (p *Proxy) delay(lot *rand.Rand) time.Duration {
	if !p.wild.Load() {
		return 0
	}
	if lot.IntN(1000) < p.rules.Stalls {
		p.stalls.Add(1)
		return time.Duration(lot.Int64N(int64(p.rules.Stall) + 1))
	}
	return time.Duration(lot.Int64N(int64(p.rules.Latest) + 1))
}

// deliver writes every piece when it is due.
func deliver(ctx context.Context, to io.Writer, pieces <-chan piece) {
	for next := range pieces {
		timer := time.NewTimer(time.Until(next.due))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
		if ctx.Err() != nil {
			continue // until the reader has seen it too
		}
		if _, err := to.Write(next.data); err != nil {
			continue // the other direction sees it and ends both
		}
	}
}
