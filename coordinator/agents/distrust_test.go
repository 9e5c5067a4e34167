package agents_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/musterd/muster/coordinator/agents"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

func TestAStreamThatIsDistrustedComesBackLaterEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		agent := n.listen(t, "a:1")
		pool, events := newPool(t, n)
		pool.SetTarget("n1", "a:1")
		for _, want := range []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second} {
			stream := open(t, agent, events)
			start := time.Now()
			pool.Distrust("n1")
			pool.Distrust("n1") // there is no stream any more: nothing more
			stream.ended(t)
			next[grant.Disconnected](t, events)
			time.Sleep(time.Second)
			pool.SetTarget("n1", "a:1") // nothing shortens it
			pool.Registered("n1", resource.Incarnation{})
			pool.Hint("n1")
			next, _ := waitFor(agent)
			if got := time.Since(start); got < want || got > want+time.Second {
				t.Errorf("the next stream came after %v, want %v", got, want)
			}
			next.say(t, hello(t, "n1"))
			<-events
			pool.Reconnect("n1")
			next.ended(t)
			<-events
		}
		stream := open(t, agent, events)
		pool.Distrust("n1")
		stream.ended(t)
		next[grant.Disconnected](t, events)
		time.Sleep(time.Second)
		start := time.Now()
		pool.Trust("n1")
		open(t, agent, events)
		if got := time.Since(start); got > time.Second {
			t.Errorf("after it was trusted again the stream came after %v", got)
		}
	})
}

// waitFor accepts a stream however long it takes.
func waitFor(s *server) (*session, error) {
	one := <-s.sessions
	_, err := one.Recv()
	return one, err
}

func TestHintsShortenAWaitOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts atomic.Int32
		pool := agents.NewPool(t.Context(), agents.Options{
			Identity: func(context.Context, resource.NodeID) (resource.Incarnation, resource.Revision, error) {
				attempts.Add(1)
				return resource.Incarnation{}, 0, errors.New("the store is away")
			},
			Dial:   []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())},
			Logger: slog.New(slog.DiscardHandler),
		})
		defer pool.Close()
		pool.Hint("n1") // of nobody
		pool.SetTarget("n1", "nowhere:1")
		time.Sleep(30 * time.Second)
		before := attempts.Load()
		for range 10_000 {
			pool.Hint("n1")
			time.Sleep(time.Millisecond)
		}
		if n := attempts.Load() - before; n < 10 || n > 60 {
			t.Errorf("%d attempts in 10 s of hints", n)
		}
	})
}

// The message names both nodes, and is written once.
func TestAnotherNodeAtTheAddressIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		agent := n.listen(t, "a:1")
		var log bytes.Buffer
		pool := agents.NewPool(t.Context(), agents.Options{
			Identity: func(context.Context, resource.NodeID) (resource.Incarnation, resource.Revision, error) {
				return incarnation, 5, nil
			},
			Deliver: func(e grant.Event) { t.Errorf("event %+v", e) },
			Dial:    []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(n.dial)},
			Logger:  slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})),
		})
		start := time.Now()
		streams := 0
		pool.SetTarget("n1", "a:1")
		for time.Since(start) < 10*time.Minute {
			stream, err := waitFor(agent)
			if err != nil {
				t.Fatal(err)
			}
			streams++
			stream.say(t, hello(t, "n9"))
			stream.ended(t)
		}
		pool.Close()
		if streams > 25 {
			t.Errorf("%d streams in 10 minutes, want one a minute in the end", streams)
		}
		text := log.String()
		if strings.Count(text, "\n") != 1 || !strings.Contains(text, "n9") || !strings.Contains(text, "n1") {
			t.Errorf("logged %q, want one line that names n1 and n9", text)
		}
	})
}
