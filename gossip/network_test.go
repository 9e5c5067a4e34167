package gossip

import (
	"bytes"
	"io"
	"log"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
)

// listening is a network on a free port of a loopback address, which the test closes.
func listening(t testing.TB, addr string) *network {
	n, err := listen(addr, 0, log.New(io.Discard, "", 0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	return n
}

func (n *network) addr() string { return n.tcp.Addr().String() }

func TestNetworkCarriesPackets(t *testing.T) {
	from, to := listening(t, "127.0.0.1"), listening(t, "127.0.0.1")
	texts := []string{"first", "x", strings.Repeat("y", 9000), "last"}
	for _, text := range texts {
		if _, err := from.WriteToAddress([]byte(text), memberlist.Address{Addr: to.addr(), Name: "to"}); err != nil {
			t.Fatal(err)
		}
	}
	var kept []*memberlist.Packet
	for range texts {
		kept = append(kept, <-to.PacketCh())
	}
	for i, p := range kept { // only now: no packet may share the bytes of a later one
		if string(p.Buf) != texts[i] || p.From.String() != from.addr() {
			t.Errorf("packet %d: %d bytes from %s, want %d from %s", i, len(p.Buf), p.From, len(texts[i]), from.addr())
		}
	}
}

func TestNetworkDropsAnEmptyPacket(t *testing.T) {
	from, to := listening(t, "127.0.0.1"), listening(t, "127.0.0.1")
	for _, text := range []string{"", "behind it"} {
		if _, err := from.WriteTo([]byte(text), to.addr()); err != nil {
			t.Fatal(err)
		}
	}
	if p := <-to.PacketCh(); string(p.Buf) != "behind it" {
		t.Errorf("the packet has %q", p.Buf)
	}
}

func TestNetworkCarriesStreams(t *testing.T) {
	from, to := listening(t, "127.0.0.1"), listening(t, "127.0.0.1")
	out, err := from.DialAddressTimeout(memberlist.Address{Addr: to.addr()}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	in := <-to.StreamCh()
	defer in.Close()
	if _, err := out.Write([]byte("state")); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(in); err != nil || !bytes.Equal(got, []byte("state")) {
		t.Errorf("the stream has %q, %v", got, err)
	}
}

func TestNetworkAdvertises(t *testing.T) {
	n := listening(t, "127.0.0.1")
	cases := map[string]struct {
		ip   string
		port int
		want string
	}{
		"the bound address where none is asked for":         {want: n.addr()},
		"the address that was asked for, and its port":      {ip: "192.0.2.7", port: 7, want: "192.0.2.7:7"},
		"an IPv6 address that stands for IPv4 becomes that": {ip: "::ffff:192.0.2.7", port: 7, want: "192.0.2.7:7"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			ip, port, err := n.FinalAdvertiseAddr(c.ip, c.port)
			if got := net.JoinHostPort(ip.String(), strconv.Itoa(port)); err != nil || got != c.want {
				t.Errorf("%s, %v; want %s", got, err, c.want)
			}
		})
	}
	if _, _, err := n.FinalAdvertiseAddr("no address", 7); err == nil {
		t.Error("a text that is no address passes")
	}
}

func TestNetworkOnTakenPort(t *testing.T) {
	n := listening(t, "127.0.0.1")
	if again, err := listen("127.0.0.1", n.port(), log.New(io.Discard, "", 0)); err == nil {
		t.Errorf("a second network listens at %s", again.addr())
	}
}

// TestNetworkEndsWhileNobodyReads closes a network whose packets and streams nobody
// takes: its goroutines end, which TestMain checks.
func TestNetworkEndsWhileNobodyReads(t *testing.T) {
	from, to := listening(t, "127.0.0.1"), listening(t, "127.0.0.1")
	if _, err := from.WriteTo([]byte("x"), to.addr()); err != nil {
		t.Fatal(err)
	}
	c, err := from.DialTimeout(to.addr(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 2 { // the second one does nothing
		if err := to.Shutdown(); err != nil {
			t.Fatal(err)
		}
	}
}

// BenchmarkPacket is a packet of 1,400 bytes from one transport to another, over
// loopback.
func BenchmarkPacket(b *testing.B) {
	packet := make([]byte, 1400)
	run := func(b *testing.B, from, to memberlist.Transport, addr string) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := from.WriteTo(packet, addr); err != nil {
				b.Fatal(err)
			}
			<-to.PacketCh()
		}
	}
	b.Run("memberlist", func(b *testing.B) {
		open := func() *memberlist.NetTransport {
			t, err := memberlist.NewNetTransport(&memberlist.NetTransportConfig{BindAddrs: []string{"127.0.0.1"}, Logger: log.New(io.Discard, "", 0)})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() {
				if err := t.Shutdown(); err != nil {
					b.Error(err)
				}
			})
			return t
		}
		from, to := open(), open()
		run(b, from, to, net.JoinHostPort("127.0.0.1", strconv.Itoa(to.GetAutoBindPort())))
	})
	b.Run("network", func(b *testing.B) {
		from, to := listening(b, "127.0.0.1"), listening(b, "127.0.0.1")
		run(b, from, to, to.addr())
	})
}
