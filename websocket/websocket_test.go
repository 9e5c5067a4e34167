package websocket_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/websocket"
)

// closing is a buffer that can be closed.
type closing struct{ *bytes.Buffer }

func (closing) Close() error { return nil }

// What one side writes, the other side reads as the same messages, also where pings are
// between them; and a whole message more than the bound is none.
func TestMessagesArriveAsTheyWereSent(t *testing.T) {
	const most = 70_000
	rapid.Check(t, func(t *rapid.T) {
		var wire, back bytes.Buffer
		client := rapid.Bool().Draw(t, "from the client")
		from := websocket.New(bufio.NewReader(&back), closing{&wire}, client, most)
		var sent [][]byte
		for range rapid.IntRange(0, 5).Draw(t, "messages") {
			m := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "message")
			if rapid.IntRange(0, 9).Draw(t, "long") == 0 {
				m = bytes.Repeat([]byte{'x'}, rapid.SampledFrom([]int{125, 126, 65_535, 65_536, most}).Draw(t, "size"))
			}
			cut := rapid.IntRange(0, len(m)).Draw(t, "cut")
			if err := from.Write(m[:cut], m[cut:]); err != nil {
				t.Fatal(err)
			}
			sent = append(sent, m)
			if rapid.Bool().Draw(t, "ping") {
				_ = from.Ping()
			}
		}
		_ = from.End(websocket.Normal)
		seen := 0
		to := websocket.New(bufio.NewReader(&wire), closing{&back}, !client, most)
		to.Seen = func() { seen++ }
		for i, want := range sent {
			got, err := to.Read()
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("message %d is %d bytes, %v, want %d bytes", i, len(got), err, len(want))
			}
		}
		if _, err := to.Read(); !errors.Is(err, websocket.ErrClosed) || seen < len(sent)+1 {
			t.Fatalf("the end is %v, after %d frames", err, seen)
		}
	})
}

func TestFramesThatNobodyMaySend(t *testing.T) {
	masked := "\x00\x00\x00\x00"
	for name, c := range map[string]struct{ text, want string }{
		"a text":                       {"\x81\x81" + masked + "x", "a text"},
		"an extension":                 {"\xc2\x81" + masked + "x", "extension"},
		"no mask":                      {"\x82\x01x", "masked is false"},
		"an opcode of the future":      {"\x83\x81" + masked + "x", "opcode 3 is not known"},
		"a control of the future":      {"\x8b\x81" + masked + "x", "opcode 11 is not known"},
		"a control in parts":           {"\x09\x81" + masked + "x", "whole: false"},
		"a long control":               {"\x89\xfe\x00\x7e" + masked + strings.Repeat("x", 126), "a control frame of 126 bytes"},
		"the rest of nothing":          {"\x80\x81" + masked + "x", "opcode 0 is out of order"},
		"a message within another":     {"\x02\x81" + masked + "x\x82\x81" + masked + "x", "opcode 2 is out of order"},
		"a message too large":          {"\x82\x8b" + masked, "a message of more than 10 bytes"},
		"parts too large together":     {"\x02\x88" + masked + "12345678\x80\x83" + masked, "a message of more than 10 bytes"},
		"a size of 2^64-1":             {"\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff" + masked, "a message of more than 10 bytes"},
		"an end in the middle":         {"\x82\x85" + masked + "x", "unexpected EOF"},
		"an end in the middle of head": {"\x82\xfe\x00", "unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			var back bytes.Buffer
			conn := websocket.New(bufio.NewReader(strings.NewReader(c.text)), closing{&back}, false, 10)
			m, err := conn.Read()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q, %v; want %q", m, err, c.want)
			}
			var broken *websocket.ProtocolError
			if errors.As(err, &broken) == strings.Contains(c.want, "EOF") {
				t.Errorf("%v is the peer's fault: %t", err, errors.As(err, &broken))
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("\x82\x81\x00\x00\x00\x00x\x89\x80\x00\x00\x00\x00\x88\x82\x00\x00\x00\x00\x03\xe8"), false)
	f.Add([]byte("\x02\x01x\x80\x01y\x82\x7e\x00\x7f"), true)
	f.Fuzz(func(t *testing.T, data []byte, client bool) {
		var back bytes.Buffer
		conn := websocket.New(bufio.NewReader(bytes.NewReader(data)), closing{&back}, client, 100)
		for {
			m, err := conn.Read()
			if len(m) > 100 || err != nil && m != nil {
				t.Fatalf("%d bytes, %v", len(m), err)
			}
			if err != nil {
				return
			}
		}
	})
}

func TestHandshake(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refused := websocket.Check(r, "echo"); refused != nil {
			http.Error(w, refused.Text, refused.Code)
			return
		}
		w.Header().Set("X-Request-Id", "7")
		conn, _, err := websocket.Accept(w, r, "echo", 100)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		for {
			m, err := conn.Read()
			if err != nil {
				return
			}
			_ = conn.Write([]byte("echo "), m)
		}
	}))
	t.Cleanup(server.Close)
	ask := func(protocol string, header http.Header) (*websocket.Conn, *http.Response, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = header
		return websocket.Ask(http.DefaultClient, r, protocol, 100)
	}
	conn, answer, err := ask("echo", http.Header{})
	if err != nil || answer.Header.Get("X-Request-Id") != "7" {
		t.Fatal(answer, err)
	}
	defer conn.Close()
	if err := conn.Write([]byte("one")); err != nil {
		t.Fatal(err)
	}
	if m, err := conn.Read(); err != nil || string(m) != "echo one" {
		t.Errorf("%q %v", m, err)
	}
	for name, c := range map[string]struct {
		protocol string
		header   http.Header
		code     int
	}{
		"another subprotocol": {"other", http.Header{}, 400},
		"another origin":      {"echo", http.Header{"Origin": {"https://elsewhere.example"}}, 403},
	} {
		conn, answer, err := ask(c.protocol, c.header)
		if err != nil || conn != nil || answer.StatusCode != c.code {
			t.Errorf("%s: %v, %v, want %d", name, answer, err, c.code)
			continue
		}
		answer.Body.Close()
	}
}

// A server that answers without proof that it knows the protocol is none.
func TestAServerThatOnlySwitches(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n")
				}
			}()
		}
	}()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if conn, _, err := websocket.Ask(http.DefaultClient, r, "echo", 100); conn != nil || err == nil || !strings.Contains(err.Error(), "Sec-WebSocket-Accept differs") {
		t.Errorf("%v, %v", conn, err)
	}
}
