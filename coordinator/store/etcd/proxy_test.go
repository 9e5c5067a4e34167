package etcd_test

import (
	"io"
	"net"
	"sync"
	"testing"
)

// proxy forwards connections to a server and can swallow the answers.
type proxy struct {
	addr string

	mu    sync.Mutex
	muted bool
	conns []net.Conn
}

func newProxy(t *testing.T, target string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{addr: l.Addr().String()}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", target)
			if err != nil {
				_ = in.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, in, out)
			p.mu.Unlock()
			wg.Go(func() { _, _ = io.Copy(out, in); _ = out.Close() })
			wg.Go(func() { _, _ = io.Copy(muffler{p, in}, out); _ = in.Close() })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.mu.Lock()
		p.drop()
		p.mu.Unlock()
		wg.Wait()
	})
	return p
}

// mute swallows answers until it is called with false, which also drops all
// connections, since their streams have a hole: first, so that nothing passes
// behind the hole.
func (p *proxy) mute(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !on {
		p.drop()
	}
	p.muted = on
}

// drop closes all connections. p.mu is held.
func (p *proxy) drop() {
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

type muffler struct {
	p *proxy
	w io.Writer
}

func (m muffler) Write(b []byte) (int, error) {
	m.p.mu.Lock()
	muted := m.p.muted
	m.p.mu.Unlock()
	if muted {
		return len(b), nil
	}
	return m.w.Write(b)
}
