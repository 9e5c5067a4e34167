package redis_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	client "github.com/redis/go-redis/v9"

	sink "github.com/musterd/muster/coordinator/history/redis"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/redis"
)

var at = time.Unix(1_771_459_200, 0)

func beat(node string, seconds int) sink.Beat {
	return sink.Beat{Node: resource.NodeID(node), At: at.Add(time.Duration(seconds) * time.Second), Pods: 43}
}

// options are those of a server whose clients have node n1 and others, but not "gone".
func options(address string) sink.Options {
	return sink.Options{Address: address, Log: slog.New(slog.DiscardHandler), Free: func(_ context.Context, node resource.NodeID) (sink.Free, bool, error) {
		return sink.Free{CPU: 24000, Memory: 137_438_953_472, GPUs: 3}, node != "gone", nil
	}}
}

// running is a sink that writes to the server until the test ends, and a client of the
// server.
func running(t *testing.T, s *redis.Server, change ...func(*sink.Options)) (*sink.Sink, *client.Client) {
	t.Helper()
	o := options(s.URL())
	for _, c := range change {
		c(&o)
	}
	out, err := sink.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- out.Run(ctx) }()
	address, err := client.ParseURL(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	c := client.NewClient(address)
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_ = c.Close()
	})
	return out, c
}

// await polls until the condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after 20 s: %s", what)
		}
	}
}

func TestTheKeysAreThoseOfTheSpecification(t *testing.T) {
	out, c := running(t, redis.Start(t))
	out.Offer(beat("n1", 0))
	out.Offer(beat("n2", 100))
	await(t, "two nodes are not written", func() bool { return out.Figures().Written == 2 })
	got, err := c.HGetAll(t.Context(), "node:heartbeat:n1").Result()
	want := map[string]string{"last_seen": "1771459200", "last_seen_ms": "1771459200000", "cpu_available": "24000", "memory_available": "137438953472", "gpu_available": "3", "pods_running": "43"}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, d)
	}
	stale, err := c.ZRangeByScore(t.Context(), "node:heartbeat:timestamps", &client.ZRangeBy{Min: "-inf", Max: fmt.Sprint(at.Unix() + 100 - 40)}).Result()
	if d := cmp.Diff([]string{"n1"}, stale); d != "" || err != nil {
		t.Errorf("nodes silent for 40 s: %v (-want +got)\n%s", err, d)
	}
}

func TestAnOlderHeartbeatTakesNothingBack(t *testing.T) {
	s := redis.Start(t)
	out, c := running(t, s)
	other, _ := running(t, s)
	out.Offer(beat("n1", 100))
	await(t, "the node is not written", func() bool { return out.Figures().Written == 1 })
	older := beat("n1", 0)
	older.Pods = 7
	other.Offer(older)
	other.Offer(beat("n2", 0))
	await(t, "the older one is not written", func() bool { return other.Figures().Written == 2 })
	if got, err := c.HMGet(t.Context(), "node:heartbeat:n1", "last_seen", "pods_running").Result(); err != nil || got[0] != fmt.Sprint(at.Unix()+100) || got[1] != "43" {
		t.Errorf("the node is %v, %v; want the newer heartbeat of 43 members", got, err)
	}
	if n, err := c.Exists(t.Context(), "node:heartbeat:n2").Result(); err != nil || n != 1 {
		t.Errorf("%d keys of the other node, %v", n, err)
	}
	if score, err := c.ZScore(t.Context(), "node:heartbeat:timestamps", "n1").Result(); err != nil || int64(score) != at.Unix()+100 {
		t.Errorf("score %f, %v; want %d", score, err, at.Unix()+100)
	}
}

// TestAnOlderHeartbeatOfOneSecondTakesNothingBack: within a second the milliseconds decide.
func TestAnOlderHeartbeatOfOneSecondTakesNothingBack(t *testing.T) {
	s := redis.Start(t)
	out, c := running(t, s)
	other, _ := running(t, s)
	newer, older := beat("n1", 0), beat("n1", 0)
	newer.At, older.Pods = newer.At.Add(600*time.Millisecond), 7
	out.Offer(newer)
	await(t, "the node is not written", func() bool { return out.Figures().Written == 1 })
	other.Offer(older)
	await(t, "the older one is not written", func() bool { return other.Figures().Written == 1 })
	if got, err := c.HMGet(t.Context(), "node:heartbeat:n1", "last_seen_ms", "pods_running").Result(); err != nil || got[0] != fmt.Sprint(newer.At.UnixMilli()) || got[1] != "43" {
		t.Errorf("the node is %v, %v; want the newer heartbeat of 43 members", got, err)
	}
}

// TestClustersShareAServer: a prefix keeps the keys of clusters apart.
func TestClustersShareAServer(t *testing.T) {
	out, c := running(t, redis.Start(t), func(o *sink.Options) { o.Prefix = "east:" })
	out.Offer(beat("n1", 0))
	await(t, "the node is not written", func() bool { return out.Figures().Written == 1 })
	keys, err := c.Keys(t.Context(), "*").Result()
	slices.Sort(keys)
	if d := cmp.Diff([]string{"east:node:heartbeat:n1", "east:node:heartbeat:timestamps"}, keys); d != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, d)
	}
}

// TestAnUnknownRestIsNotWritten: without the free amounts, the fields of an earlier
// heartbeat stay.
func TestAnUnknownRestIsNotWritten(t *testing.T) {
	out, c := running(t, redis.Start(t), func(o *sink.Options) {
		o.Free = func(context.Context, resource.NodeID) (sink.Free, bool, error) {
			return sink.Free{}, false, errors.New("busy")
		}
	})
	out.Offer(beat("n1", 0))
	await(t, "the node is not written", func() bool { return out.Figures().Written == 1 })
	got, err := c.HGetAll(t.Context(), "node:heartbeat:n1").Result()
	if d := cmp.Diff(map[string]string{"last_seen": "1771459200", "last_seen_ms": "1771459200000", "pods_running": "43"}, got); d != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, d)
	}
}

// TestAServerWithTLSAndAPassword: the connection is proven by the given authorities, and
// not made without them.
func TestAServerWithTLSAndAPassword(t *testing.T) {
	s, roots := redis.StartTLS(t, "hunter2")
	out, _ := running(t, redis.Start(t), func(o *sink.Options) { o.Address, o.Password, o.Roots = s.URL(), "hunter2", roots })
	out.Offer(beat("n1", 0))
	await(t, "the node is not written", func() bool { return out.Figures().Written == 1 })
	for name, change := range map[string]func(*sink.Options){
		"another password":  func(o *sink.Options) { o.Password = "hunter3" },
		"other authorities": func(o *sink.Options) { o.Roots = x509.NewCertPool() },
	} {
		other, _ := running(t, redis.Start(t), func(o *sink.Options) { o.Address, o.Password, o.Roots = s.URL(), "hunter2", roots }, change)
		other.Offer(beat("n2", 0))
		await(t, name+": no write has failed", func() bool { return other.Figures().Failures > 0 })
		if got := other.Figures().Written; got != 0 {
			t.Errorf("%s: %d written", name, got)
		}
	}
}

func TestAServerThatWasAwayGetsTheNewest(t *testing.T) {
	s := redis.Start(t)
	out, c := running(t, s)
	s.Kill()
	for i := range 50 {
		out.Offer(beat("n1", i))
		out.Offer(beat("n1", i-1))
	}
	await(t, "no write has failed", func() bool { return out.Figures().Failures > 0 })
	s.Restart(t)
	await(t, "the heartbeat is not written", func() bool { return out.Figures().Written > 0 })
	if got, err := c.HGet(t.Context(), "node:heartbeat:n1", "last_seen").Int64(); err != nil || got != at.Unix()+49 {
		t.Errorf("last seen %d, %v; want %d", got, err, at.Unix()+49)
	}
}

func TestHeartbeatsThatWaitAreBounded(t *testing.T) {
	out, err := sink.Open(options("unix:///nowhere"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100_010 {
		out.Offer(beat(fmt.Sprint("n", i), 0))
	}
	if got := out.Figures().Dropped; got != 10 {
		t.Errorf("%d dropped, want 10", got)
	}
}

func TestAWrongAddressIsRefusedWithoutItsPassword(t *testing.T) {
	for _, address := range []string{"http://u:hunter2@host", "redis://u:hunter2@host/notanumber", "redis://:hunter2@%zz"} {
		_, err := sink.Open(sink.Options{Address: address})
		if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "want redis://") {
			t.Errorf("%s: error %v, want one without the password", address, err)
		}
	}
}
