package delay_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterd/muster/test/delay"
)

// echo answers every connection with what it sends.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { defer conn.Close(); _, _ = io.Copy(conn, conn) })
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return l.Addr().String()
}

// send writes text through the proxy and returns what comes back of it.
func send(t *testing.T, p *delay.Proxy, text []byte) []byte {
	t.Helper()
	conn, err := net.Dial("tcp", p.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = conn.Write(text) }() // ends with the connection
	back := make([]byte, len(text))
	n, _ := io.ReadFull(conn, back) // a cut connection gives less
	return back[:n]
}

// What arrives is a prefix of what was sent, whatever the rules; all of it
// where nothing is cut.
func TestBytesOfAConnectionKeepTheirOrder(t *testing.T) {
	target := echo(t)
	rapid.Check(t, func(r *rapid.T) {
		rules := delay.Rules{
			Seed:     rapid.Uint64().Draw(r, "seed"),
			Latest:   time.Duration(rapid.IntRange(0, 3).Draw(r, "latest")) * time.Millisecond,
			Stalls:   rapid.IntRange(0, 20).Draw(r, "stalls"),
			Stall:    10 * time.Millisecond,
			CutAfter: rapid.SampledFrom([]int{0, 1, 1000, 100_000}).Draw(r, "cut after"),
		}
		text := make([]byte, rapid.IntRange(1, 50_000).Draw(r, "size"))
		lot := rand.NewChaCha8([32]byte{1})
		_, _ = lot.Read(text)
		p := delay.Start(t, "127.0.0.1:0", target, rules)
		defer p.Stop()
		p.Disturb()
		back := send(t, p, text)
		if !bytes.HasPrefix(text, back) {
			r.Fatalf("%d bytes came back that are no prefix of the %d sent", len(back), len(text))
		}
		if rules.CutAfter == 0 && len(back) != len(text) {
			r.Fatalf("%d of %d bytes came back, though nothing is cut", len(back), len(text))
		}
	})
}

func TestConnectionsAreCutUntilItIsCalm(t *testing.T) {
	p := delay.Start(t, "127.0.0.1:0", echo(t), delay.Rules{Seed: 1, CutAfter: 100})
	p.Disturb()
	text := make([]byte, 20_000)
	for range 10 {
		if back := send(t, p, text); len(back) == len(text) {
			t.Errorf("a connection that lasts about 100 bytes carried %d", len(text))
		}
	}
	if p.Counts().Cuts == 0 {
		t.Errorf("nothing was cut: %+v", p.Counts())
	}
	p.Calm()
	if back := send(t, p, text); len(back) != len(text) {
		t.Errorf("a calm proxy carried %d of %d bytes", len(back), len(text))
	}
}
