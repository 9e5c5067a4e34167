// Package redis writes the newest heartbeat of each node into a Redis server, for tools
// that read heartbeats there, under the keys of spec/storage-design.txt:
//
//	HSET node:heartbeat:<node> last_seen <unix seconds> cpu_available <millicores>
//	     memory_available <bytes> gpu_available <devices> pods_running <members>
//	ZADD node:heartbeat:timestamps <unix seconds> <node>
//
// A script on the server leaves out a heartbeat that is older than the stored one.
//
// Muster itself reads none of it: a node's silence is gossip's to find. The package
// decides no liveness. A server that is slow or away costs the newest heartbeats of that
// time and nothing else. Options.Prefix is put before each key, so that clusters can share
// a server.
package redis

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"time"

	client "github.com/redis/go-redis/v9"

	"github.com/musterd/muster/resource"
)

const (
	// timestamps is the sorted set of the nodes by their last heartbeat.
	timestamps = "node:heartbeat:timestamps"
	heartbeat  = "node:heartbeat:"

	// timeout bounds a connection, a write and an answer.
	timeout = 2 * time.Second
	// pause lies between two writes, and before the repetition of one that failed.
	pause = time.Second
	// most is the number of nodes whose heartbeats wait; those beyond are dropped.
	most = 100_000
	// batch is the number of nodes in one write.
	batch = 1000
	// silence is the time without a heartbeat after which the sink asks whether the node
	// is still registered, lookEvery the time between two such looks.
	silence   = time.Minute
	lookEvery = time.Minute
)

// Beat is one heartbeat.
type Beat struct {
	Node resource.NodeID
	At   time.Time
	Pods int // the members that the node holds
}

// Free is the free amount of a node: millicores, bytes, GPUs (rounded down).
type Free struct {
	CPU    resource.Millicores
	Memory resource.Bytes
	GPUs   int
}

// Options are a server and the content of its keys.
type Options struct {
	// Address is redis://, rediss:// (TLS) or unix://, with user and database as of the
	// Redis documentation.
	Address string
	// Password, if set, is used in the place of that of Address.
	Password string
	// Roots are the authorities of a server with TLS; nil: those of the host.
	Roots *x509.CertPool
	// Prefix is put before each key.
	Prefix string
	// Free returns the free amount of a node; false: no such node is registered. With an error
	// the heartbeat is written without these fields.
	Free func(ctx context.Context, node resource.NodeID) (Free, bool, error)
	Log  *slog.Logger
}

// Figures count what became of heartbeats since the start.
type Figures struct {
	Written  int64 // nodes written
	Failures int64 // writes that failed; the heartbeats wait for the next
	Dropped  int64 // heartbeats beyond the bound
}

// Sink writes heartbeats. Offer may be called from any goroutine; Run has the server.
type Sink struct {
	options Options
	client  *client.Client
	wake    chan struct{} // 1: a wake-up that waits is enough
	// written are the nodes with keys in the server, and their last heartbeats; of Run.
	// adopted: those that were there before this sink are among them.
	written map[resource.NodeID]time.Time
	adopted bool

	mu      sync.Mutex
	waiting map[resource.NodeID]Beat
	gone    map[resource.NodeID]bool // nodes to forget; none of them waits
	figures Figures
}

// Open reads the options. It connects to nothing. An error does not show the password.
func Open(o Options) (*Sink, error) {
	options, err := client.ParseURL(o.Address)
	if err != nil {
		return nil, fmt.Errorf("redis address %s: want redis://HOST:PORT/DATABASE, rediss://… or unix://SOCKET", redacted(o.Address))
	}
	if o.Password != "" {
		options.Password = o.Password
	}
	if o.Roots != nil {
		if options.TLSConfig == nil {
			return nil, fmt.Errorf("redis address %s: authorities have no effect without TLS; write it as rediss://…", redacted(o.Address))
		}
		options.TLSConfig.RootCAs = o.Roots
	}
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout, options.PoolTimeout = timeout, timeout, timeout, timeout
	options.PoolSize, options.MaxRetries = 1, -1
	options.ContextTimeoutEnabled = true
	return &Sink{
		options: o, client: client.NewClient(options), wake: make(chan struct{}, 1), written: map[resource.NodeID]time.Time{},
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

// look has the keys of nodes be removed that have been silent and are not registered any
// more.
func (s *Sink) look(ctx context.Context) {
	if !s.adopted {
		s.adopted = s.adopt(ctx) == nil // else the next look tries again
	}
	for node, at := range s.written {
		if time.Since(at) < silence {
			continue
		}
		if _, registered, err := s.options.Free(ctx, node); err == nil && !registered {
			delete(s.written, node)
			s.forget(node)
		}
	}
}

// adopt learns the nodes that have keys already: one may have been deleted while no
// coordinator ran that had written them.
func (s *Sink) adopt(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for first := int64(0); first < most; first += batch {
		part, err := s.client.ZRangeWithScores(ctx, s.options.Prefix+timestamps, first, first+batch-1).Result()
		if err != nil {
			return err
		}
		for _, z := range part {
			name, _ := z.Member.(string)
			if node := resource.NodeID(name); s.written[node].IsZero() {
				s.written[node] = time.Unix(int64(z.Score), 0)
			}
		}
		if len(part) < batch {
			return nil
		}
	}
	return nil
}

// forget removes the node's keys with the next write.
func (s *Sink) forget(node resource.NodeID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, waits := s.waiting[node]; !waits && len(s.waiting)+len(s.gone) < most {
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
	looks := time.NewTicker(lookEvery)
	defer looks.Stop()
	for {
		select {
		case <-ctx.Done():
			return s.client.Close()
		case <-looks.C:
			s.look(ctx)
			continue
		case <-s.wake:
		}
		err := s.flush(ctx)
		if (err != nil) != failing && ctx.Err() == nil {
			if failing = err != nil; failing {
				s.options.Log.Warn("redis_heartbeats_wait", "error", err)
			} else {
				s.options.Log.Info("redis_heartbeats_written_again")
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
		if len(beats) > 0 {
			keys, args := s.script(ctx, beats)
			p.Eval(ctx, putNewer, keys, args...)
		}
		for _, node := range gone {
			p.Del(ctx, s.key(node))
			p.ZRem(ctx, s.options.Prefix+timestamps, string(node))
		}
		return nil
	})
	if err == nil {
		for _, b := range beats {
			s.written[b.Node] = b.At
		}
	}
	return err
}

// putNewer writes the heartbeats that are not older than those in the server. Several
// coordinators write, and an older heartbeat may arrive last. KEYS are the sorted set and the key of
// each node; ARGV has seven values for each node: its name, the seconds, the milliseconds, the
// members, and the three free amounts, "" where unknown. The field last_seen_ms tells two
// heartbeats of one second apart; a key of an older version has none.
const putNewer = `
for i = 2, #KEYS do
  local at = (i - 2) * 7
  local node, seen, ms = ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local last = redis.call('ZSCORE', KEYS[1], node)
  local lastms = redis.call('HGET', KEYS[i], 'last_seen_ms')
  if not last or tonumber(last) < tonumber(seen) or (tonumber(last) == tonumber(seen) and (not lastms or tonumber(lastms) <= tonumber(ms))) then
    redis.call('HSET', KEYS[i], 'last_seen', seen, 'last_seen_ms', ms, 'pods_running', ARGV[at + 4])
    if ARGV[at + 5] ~= '' then
      redis.call('HSET', KEYS[i], 'cpu_available', ARGV[at + 5], 'memory_available', ARGV[at + 6], 'gpu_available', ARGV[at + 7])
    end
    redis.call('ZADD', KEYS[1], seen, node)
  end
end
return 'OK'`

// script returns the keys and values of putNewer.
func (s *Sink) script(ctx context.Context, beats []Beat) (keys []string, args []any) {
	keys = append(keys, s.options.Prefix+timestamps)
	for _, b := range beats {
		keys = append(keys, s.key(b.Node))
		args = append(args, string(b.Node), b.At.Unix(), b.At.UnixMilli(), b.Pods)
		if free, registered, err := s.options.Free(ctx, b.Node); err == nil && registered {
			args = append(args, int64(free.CPU), int64(free.Memory), free.GPUs)
		} else {
			args = append(args, "", "", "")
		}
	}
	return keys, args
}

func (s *Sink) key(node resource.NodeID) string { return s.options.Prefix + heartbeat + string(node) }
