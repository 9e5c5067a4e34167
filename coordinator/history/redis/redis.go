// Package redis writes the newest heartbeat of each node into a Redis server, for tools
// that read heartbeats there, under the keys of spec/storage-design.txt:
//
//	HSET node:heartbeat:<node> last_seen <unix seconds> cpu_available <millicores>
//	     memory_available <bytes> gpu_available <devices> pods_running <members>
//	ZADD node:heartbeat:timestamps <unix seconds> <node>
//
// Muster itself reads none of it: a node's silence is gossip's to find. The package
// decides no liveness. A server that is slow or away costs the newest heartbeats of that
// time and nothing else.
package redis

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"sync"
	"time"

	client "github.com/redis/go-redis/v9"

	"github.com/musterd/muster/resource"
)

const (
	// timestamps is the sorted set of the nodes by their last heartbeat.
	timestamps = "node:heartbeat:timestamps"
	keyPrefix  = "node:heartbeat:"

	// timeout bounds a connection, a write and an answer.
	timeout = 2 * time.Second
	// pause lies between two writes, and before the repetition of one that failed.
	pause = time.Second
	// most is the number of nodes whose heartbeats wait; those beyond are dropped.
	most = 100_000
	// batch is the number of nodes in one write.
	batch = 1000
)

// Beat is one heartbeat.
type Beat struct {
	Node resource.NodeID
	At   time.Time
	// What the node has left: millicores, bytes, whole devices without a holder.
	CPU    resource.Millicores
	Memory resource.Bytes
	GPUs   int
	// Pods are the members that the node holds.
	Pods int
}

// Figures count what became of heartbeats since the start.
type Figures struct {
	Written  int64 // nodes written
	Failures int64 // writes that failed; the heartbeats wait for the next
	Dropped  int64 // heartbeats beyond the bound
}

// Sink writes heartbeats. Offer may be called from any goroutine; Run has the server.
type Sink struct {
	client *client.Client
	log    *slog.Logger
	wake   chan struct{} // 1: a wake-up that waits is enough

	mu      sync.Mutex
	waiting map[resource.NodeID]Beat
	gone    map[resource.NodeID]bool // nodes to forget; none of them waits
	figures Figures
}

// Open reads the address: redis://, rediss:// (TLS) or unix://, with user, password and
// database as of the Redis documentation. It connects to nothing. An error does not show
// the password.
func Open(address string, log *slog.Logger) (*Sink, error) {
	options, err := client.ParseURL(address)
	if err != nil {
		return nil, fmt.Errorf("redis address %s: want redis://HOST:PORT/DATABASE, rediss://… or unix://SOCKET", redacted(address))
	}
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout, options.PoolTimeout = timeout, timeout, timeout, timeout
	options.PoolSize, options.MaxRetries = 1, -1
	options.ContextTimeoutEnabled = true
	return &Sink{
		client: client.NewClient(options), log: log, wake: make(chan struct{}, 1),
		waiting: map[resource.NodeID]Beat{}, gone: map[resource.NodeID]bool{},
	}, nil
}

// redacted is an address without its password.
func redacted(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "(no URL)"
	}
	return u.Redacted()
}

// Offer keeps a heartbeat for the next write, in the place of an older one of the node.
// It never blocks.
func (s *Sink) Offer(b Beat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last, waits := s.waiting[b.Node]; waits && !b.At.After(last.At) {
		return
	} else if !waits && len(s.waiting)+len(s.gone) >= most {
		s.figures.Dropped++
		return
	}
	delete(s.gone, b.Node)
	s.waiting[b.Node] = b
	s.signal()
}

// Forget removes the node's keys with the next write: the node is no longer registered.
func (s *Sink) Forget(node resource.NodeID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, node)
	if len(s.waiting)+len(s.gone) < most {
		s.gone[node] = true
		s.signal()
	}
}

func (s *Sink) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Figures returns the counts.
func (s *Sink) Figures() Figures {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.figures
}

// Run writes what is offered, at most once a second, until the context ends. What cannot
// be written waits for the next second; the log has one line for the first failure and
// one for the recovery.
func (s *Sink) Run(ctx context.Context) error {
	failing := false
	for {
		select {
		case <-ctx.Done():
			return s.client.Close()
		case <-s.wake:
		}
		err := s.flush(ctx)
		if (err != nil) != failing && ctx.Err() == nil {
			if failing = err != nil; failing {
				s.log.Warn("redis_heartbeats_wait", "error", err)
			} else {
				s.log.Info("redis_heartbeats_written_again")
			}
		}
		select {
		case <-ctx.Done():
			return s.client.Close()
		case <-time.After(pause):
		}
	}
}

// flush writes what waits, in parts. What a failed part had waits again.
func (s *Sink) flush(ctx context.Context) error {
	for {
		beats, gone := s.take()
		if len(beats)+len(gone) == 0 {
			return nil
		}
		if err := s.write(ctx, beats, gone); err != nil {
			s.putBack(beats, gone)
			return err
		}
		s.mu.Lock()
		s.figures.Written += int64(len(beats))
		s.mu.Unlock()
	}
}

// take takes one part of what waits.
func (s *Sink) take() (beats []Beat, gone []resource.NodeID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for node, b := range s.waiting {
		if len(beats) == batch {
			break
		}
		beats = append(beats, b)
		delete(s.waiting, node)
	}
	for node := range s.gone {
		if len(gone) == batch {
			break
		}
		gone = append(gone, node)
		delete(s.gone, node)
	}
	return beats, gone
}

// putBack lets a part wait again, where nothing newer of the node does.
func (s *Sink) putBack(beats []Beat, gone []resource.NodeID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.figures.Failures++
	for _, b := range beats {
		if _, newer := s.waiting[b.Node]; !newer && !s.gone[b.Node] {
			s.waiting[b.Node] = b
		}
	}
	for _, node := range gone {
		if _, newer := s.waiting[node]; !newer {
			s.gone[node] = true
		}
	}
	s.signal()
}

// write sends one part in one round trip.
func (s *Sink) write(ctx context.Context, beats []Beat, gone []resource.NodeID) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err := s.client.Pipelined(ctx, func(p client.Pipeliner) error {
		for _, b := range beats {
			seen := b.At.Unix()
			p.HSet(ctx, keyPrefix+string(b.Node), "last_seen", strconv.FormatInt(seen, 10), "cpu_available", int64(b.CPU),
				"memory_available", int64(b.Memory), "gpu_available", b.GPUs, "pods_running", b.Pods)
			// Another coordinator may have heard the node later.
			p.ZAddGT(ctx, timestamps, client.Z{Score: float64(seen), Member: string(b.Node)})
		}
		for _, node := range gone {
			p.Del(ctx, keyPrefix+string(node))
			p.ZRem(ctx, timestamps, string(node))
		}
		return nil
	})
	return err
}
