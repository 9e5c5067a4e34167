package gossip

import (
	"net"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/memberlist"
)

// lateStream is a transport that has accepted one more stream when it is shut
// down, and cannot end before it has handed that over, as memberlist's own.
type lateStream struct {
	memberlist.Transport
	streams chan net.Conn
	late    net.Conn
}

func (t *lateStream) StreamCh() <-chan net.Conn { return t.streams }

func (t *lateStream) Shutdown() error {
	t.streams <- t.late
	return nil
}

func TestAShutdownTakesTheStreamThatWasJustAccepted(t *testing.T) {
	cases := map[string]int{ // streams that wait before, which the ring never takes
		"no stream waits":                0,
		"a stream waits to be passed on": 1,
	}
	for name, waiting := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ours, theirs := net.Pipe()
				transport := &lateStream{streams: make(chan net.Conn), late: ours}
				s, err := newSeam(&memberlist.Config{Transport: transport}, &refusals{})
				if err != nil {
					t.Fatal(err)
				}
				for range waiting {
					c, _ := net.Pipe()
					transport.streams <- c
				}
				synctest.Wait()
				if err := s.Shutdown(); err != nil { // a deadlock fails the bubble
					t.Fatal(err)
				}
				if _, err := theirs.Read(make([]byte, 1)); err == nil {
					t.Error("the late stream is still open")
				}
			})
		})
	}
}
