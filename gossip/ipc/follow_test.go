package ipc

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/serf/serf"
)

// acknowledging is a client's connection on which something happens while the
// server writes an acknowledgement.
type acknowledging struct {
	net.Conn
	happens func()
}

func (a *acknowledging) Write(b []byte) (int, error) {
	a.happens()
	return a.Conn.Write(b)
}

// asked serves one command on a connection and returns the error of its
// acknowledgement and a reader of what follows. While the acknowledgement is
// written, happens is called, once.
func asked(t *testing.T, s *Server, command string, body any, happens func()) (string, *codec.Decoder) {
	t.Helper()
	near, far := net.Pipe()
	done := false
	c := newConnection(s, &acknowledging{near, func() {
		if !done {
			done = true
			happens()
		}
	}})
	c.shaken, c.trusted = true, true
	served := make(chan error, 1)
	go func() { served <- c.serve() }()
	t.Cleanup(func() {
		_ = far.Close()
		<-served
		if len(s.streams) > 0 || s.config.Lines != nil && len(s.config.Lines.followers) > 0 || c.monitoring.Load() {
			t.Error("a connection that has ended still follows")
		}
	})
	if err := far.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	handle := &codec.MsgpackHandle{WriteExt: true}
	enc, dec := codec.NewEncoder(far, handle), codec.NewDecoder(far, handle)
	for _, message := range []any{&requestHeader{command, 7}, body} {
		if err := enc.Encode(message); err != nil {
			t.Fatal(err)
		}
	}
	var h responseHeader
	if err := dec.Decode(&h); err != nil {
		t.Fatal(err)
	}
	return h.Error, dec
}

func server(t *testing.T) *Server {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return &Server{config: Config{Lines: &Lines{}}, ctx: ctx, streams: make(map[*eventStream]bool)}
}

// A client may send an event right after the acknowledgement of a stream.
func TestAStreamBeginsBeforeItsAcknowledgement(t *testing.T) {
	s := server(t)
	problem, dec := asked(t, s, "stream", &streamRequest{"user:drill"}, func() { s.HandleEvent(serf.UserEvent{Name: "drill"}) })
	var h responseHeader
	var e eventRecord
	if err := dec.Decode(&h); err != nil || problem != "" {
		t.Fatal(problem, err)
	}
	if err := dec.Decode(&e); err != nil || e.Name != "drill" || h.Seq != 7 {
		t.Errorf("streamed %v of sequence %d, %v", e, h.Seq, err)
	}
}

func TestAMonitorBeginsBeforeItsAcknowledgement(t *testing.T) {
	s := server(t)
	write := func(text string) {
		if _, err := s.config.Lines.Write([]byte(text + "\n")); err != nil {
			t.Error(err)
		}
	}
	write("kept")
	problem, dec := asked(t, s, "monitor", &monitorRequest{"INFO"}, func() { write("new") })
	if problem != "" {
		t.Fatal(problem)
	}
	for _, want := range []string{"kept", "new"} {
		var h responseHeader
		var line logRecord
		if err := dec.Decode(&h); err != nil {
			t.Fatal(err)
		}
		if err := dec.Decode(&line); err != nil || line.Log != want {
			t.Errorf("monitored %q, %v, want %q", line.Log, err, want)
		}
	}
}

func TestARefusedStreamFollowsNothing(t *testing.T) {
	s := server(t)
	near, far := net.Pipe()
	defer func() { _ = near.Close(); _ = far.Close() }()
	c := newConnection(s, near)
	_, stop := context.WithCancel(c.ctx)
	for seq := range uint64(maxStreams) {
		c.stops[seq] = stop
	}
	stop()
	c.dec = codec.NewDecoderBytes(encoded(t, &streamRequest{"user"}), &codec.MsgpackHandle{})
	go func() { _ = c.streamEvents(maxStreams) }()
	var h responseHeader
	if err := codec.NewDecoder(far, &codec.MsgpackHandle{}).Decode(&h); err != nil || h.Error != tooManyStreams {
		t.Fatalf("%+v, %v", h, err)
	}
	if len(s.streams) != 0 {
		t.Error("a refused stream follows events")
	}
}

func encoded(t *testing.T, message any) (b []byte) {
	t.Helper()
	if err := codec.NewEncoderBytes(&b, &codec.MsgpackHandle{}).Encode(message); err != nil {
		t.Fatal(err)
	}
	return b
}
