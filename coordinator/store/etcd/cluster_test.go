package etcd_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/etcd"
	"github.com/musterd/muster/coordinator/store/storetest"
	"github.com/musterd/muster/test/etcdcluster"
)

// journal collects log lines.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

func (j *journal) logger() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }

// await polls until the journal holds a text.
func (j *journal) await(t *testing.T, text string) {
	t.Helper()
	await(t, "the log to hold "+text, func() bool { return strings.Contains(j.String(), text) })
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.NewTimer(3 * patience)
	defer deadline.Stop()
	for !done() {
		select {
		case <-deadline.C:
			t.Fatalf("waited %v for %s", 3*patience, what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// to is a configuration for a cluster of three.
func to(c *etcdcluster.Cluster) etcd.Config {
	files := c.ClientTLS()
	return etcd.Config{
		Endpoints: c.Endpoints(), TLS: etcd.TLS{CAFile: files.CAFile, CertFile: files.CertFile, KeyFile: files.KeyFile},
		RequestTimeout: 500 * time.Millisecond,
	}
}

func asMuster(c etcd.Config) etcd.Config {
	c.Username, c.Password, c.PasswordFile = etcdcluster.MusterUser, etcdcluster.Password, "/etc/muster/etcd-password"
	return c
}

func put(ctx context.Context, s store.KVStore, value string) error {
	r, err := s.Txn(ctx, record.Txn{Then: []record.Op{record.Put("/registry/k", []byte(value))}})
	if err == nil && !r.Succeeded {
		err = errors.New("a transaction without compares did not succeed")
	}
	return err
}

// insist writes until it is acknowledged; an outcome may be unknown meanwhile,
// and a write that was not sent for want of an answer is refused for certain.
func insist(t *testing.T, s store.KVStore, value string) {
	t.Helper()
	await(t, "a write", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		err := put(ctx, s, value)
		if err != nil && ctx.Err() == nil && !errors.Is(err, record.ErrUnknownOutcome) && !strings.Contains(err.Error(), "compare the store's past") {
			t.Fatalf("write %s: %v, want an unknown outcome if any", value, err)
		}
		return err == nil
	})
}

// follow waits until a watch has delivered a value.
func follow(t *testing.T, watched <-chan record.Batch, value string) {
	t.Helper()
	deadline := time.NewTimer(3 * patience)
	defer deadline.Stop()
	for {
		select {
		case b, open := <-watched:
			if !open || b.Err != nil {
				t.Fatalf("waiting for %s the watch ended: %v", value, b.Err)
			}
			for _, e := range b.Events {
				if string(e.KV.Value) == value {
					return
				}
			}
		case <-deadline.C:
			t.Fatalf("the watch did not deliver %s", value)
		}
	}
}

// TestContractTLSAndUsers runs the contract with the role of docs/store.md, over
// tokens that do not last as long as the run.
func TestContractTLSAndUsers(t *testing.T) {
	t.Parallel()
	c := etcdcluster.Start(t, etcdcluster.Options{TLS: true, Auth: true, AuthTokenTTL: 3 * time.Second, MaxTxnOps: 300})
	storetest.Run(t, func(t *testing.T) store.Store {
		config := asMuster(to(c))
		config.RequestTimeout = patience // a slow write is not in doubt here
		return connect(t, config, 300)
	})
	s := connect(t, asMuster(to(c)), 300)
	defer func() { _ = s.Close() }()
	_, _, rev, err := s.Get(within(t), "/registry/k")
	if err != nil {
		t.Fatal(err)
	}
	watched := s.Watch(t.Context(), "/registry/k", store.WatchOptions{From: rev})
	for i := range 8 { // longer than a token lasts
		insist(t, s, fmt.Sprint("late ", i))
		<-time.After(500 * time.Millisecond)
	}
	follow(t, watched, "late 7")
	for i := range c.Size() {
		c.Kill(i)
	}
	for i := range c.Size() {
		c.Restart(i)
	}
	c.AwaitHealthy() // and no member knows a token any more
	insist(t, s, "with another token")
	follow(t, watched, "with another token")
	if _, _, _, err := s.Get(within(t), "/elsewhere"); err == nil {
		t.Error("the role reads beyond /registry/")
	}
}

// TestFaults goes through the faults of a cluster, with one client and one
// watch that see all of it.
func TestFaults(t *testing.T) {
	t.Parallel()
	c := etcdcluster.Start(t, etcdcluster.Options{})
	var log journal
	config := to(c)
	config.Logger = log.logger()
	s := connect(t, config, 2048)
	defer func() { _ = s.Close() }()
	watched := s.Watch(t.Context(), "/registry/k", store.WatchOptions{From: 1})
	term, err := store.NewCandidate(s, record.LeaderAddress{ID: "c1"}, time.Minute).Campaign(within(t))
	if err != nil {
		t.Fatal(err)
	}
	step := func(name string, run func(t *testing.T)) {
		t.Run(name, func(t *testing.T) {
			run(t)
			insist(t, s, "after: "+name)
			follow(t, watched, "after: "+name)
			select {
			case <-term.Done():
				t.Fatalf("leadership was lost: %v", term.Err())
			default:
			}
		})
	}
	step("nothing has happened", func(*testing.T) {})
	step("etcd's leader is killed", func(t *testing.T) {
		leader := c.Leader()
		c.Kill(leader)
		insist(t, s, "without it")
		follow(t, watched, "without it")
		c.Restart(leader)
		c.AwaitHealthy()
	})
	step("a member is frozen", func(t *testing.T) {
		frozen := (c.Leader() + 1) % 3
		said := len(log.String()) // it may have been left out before
		c.Pause(frozen)
		// On a busy machine another one may be left out with it for a while.
		await(t, "the frozen member to be left out", func() bool {
			for line := range strings.Lines(log.String()[said:]) {
				if _, out, found := strings.Cut(line, "left_out="); found && strings.Contains(out, c.Endpoint(frozen)) {
					return true
				}
			}
			return false
		})
		// No write goes to a member that does not answer: each third write
		// would fail. One that a busy disk holds up begins the count anew.
		inARow := 0
		await(t, "20 writes in a row", func() bool {
			err := put(within(t), s, fmt.Sprint("frozen ", inARow))
			if err != nil && !errors.Is(err, record.ErrUnknownOutcome) {
				t.Fatal(err)
			}
			if inARow++; err != nil {
				inARow = 0
			}
			return inARow == 20
		})
		follow(t, watched, "frozen 19")
		c.Resume(frozen)
	})
	step("the majority is gone", func(t *testing.T) {
		c.Kill(0)
		c.Pause(1)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := put(ctx, s, "maybe"); err == nil {
			t.Error("a write was acknowledged without a majority")
		}
		if _, _, _, err := s.Get(ctx, "/registry/k"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("read: %v, want to be told that time is up", err)
		}
		// etcd answers a transaction of compares alone from a member's own
		// state.
		short, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if r, err := s.Txn(short, record.Txn{If: []record.Compare{term.Held()}}); err == nil {
			t.Errorf("without a majority leadership is confirmed: %+v", r)
		}
		c.Restart(0)
		c.Resume(1)
		c.AwaitHealthy()
	})
	step("all members were down", func(t *testing.T) {
		for i := range c.Size() {
			c.Kill(i)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		await(t, "the loss of the connections", func() bool {
			err := put(ctx, s, "nowhere")
			if err == nil {
				t.Fatal("written to no one")
			}
			return ctx.Err() != nil || !errors.Is(err, record.ErrUnknownOutcome)
		})
		for i := range c.Size() {
			c.Restart(i)
		}
		c.AwaitHealthy()
		start := time.Now()
		insist(t, s, "again")
		t.Logf("first write after the cluster is back: %v", time.Since(start))
	})
	step("all members were replaced", func(t *testing.T) {
		for i := range c.Size() {
			c.Replace(i)
			log.await(t, c.Endpoint(i))
		}
	})
	if err := term.Resign(within(t)); err != nil {
		t.Error(err)
	}
}

// TestCompactedUnderAWatch: a watch that was cut off comes back to find that
// history has gone on without it.
func TestCompactedUnderAWatch(t *testing.T) {
	t.Parallel()
	endpoint := serve(t, plain)
	proxy := newProxy(t, strings.TrimPrefix(endpoint, "http://"))
	s := connect(t, etcd.Config{Endpoints: []string{proxy.addr}, RequestTimeout: patience}, 128)
	defer func() { _ = s.Close() }()
	direct := connect(t, etcd.Config{Endpoints: []string{endpoint}, RequestTimeout: patience}, 128)
	defer func() { _ = direct.Close() }()
	insist(t, s, "1")
	watched := s.Watch(t.Context(), "/registry/k", store.WatchOptions{From: 1})
	follow(t, watched, "1")
	proxy.mute(true)
	var last record.TxnResult
	for range 3 {
		var err error
		if last, err = direct.Txn(within(t), record.Txn{Then: []record.Op{record.Put("/registry/k", []byte("2"))}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := direct.Compact(within(t), last.Revision); err != nil {
		t.Fatal(err)
	}
	proxy.mute(false)
	var compacted *record.CompactedError
	for b := range watched {
		if errors.As(b.Err, &compacted) {
			break
		}
	}
	if compacted == nil || compacted.Floor != last.Revision {
		t.Errorf("the watch ended with %v, want the floor %d", compacted, last.Revision)
	}
}

// TestRestored: the cluster is put back to a copy of its folders.
func TestRestored(t *testing.T) {
	t.Parallel()
	c := etcdcluster.Start(t, etcdcluster.Options{})
	var log journal
	config := to(c)
	config.RequestTimeout = 3 * time.Second // a write that a busy disk holds up is not in doubt here
	other := connect(t, config, 2048)
	config.Logger = log.logger()
	s := connect(t, config, 2048)
	defer func() { _ = other.Close() }()
	n, dir := 0, ""
	storetest.RunRestored(t, s,
		func() { n++; dir = filepath.Join(t.TempDir(), fmt.Sprint(n)); c.Snapshot(dir) },
		func() { c.RestoreAll(dir) }, forgetful{other})
	log.await(t, "store_went_back")
}

// forgetful is a client that holds on to nothing.
type forgetful struct{ store.Store }

func (f forgetful) Txn(ctx context.Context, t record.Txn) (record.TxnResult, error) {
	for {
		r, err := f.Store.Txn(ctx, t)
		var back *record.WentBackError
		if errors.As(err, &back) {
			f.Acknowledge(back)
			continue
		}
		if errors.Is(err, record.ErrUnknownOutcome) && ctx.Err() == nil {
			continue
		}
		return r, err
	}
}

// TestFull: etcd's alarm, its end, and the advice in the log.
func TestFull(t *testing.T) {
	t.Parallel()
	c := etcdcluster.Start(t, etcdcluster.Options{Members: 1, QuotaBytes: 16 << 20})
	var log journal
	config := to(c)
	config.RequestTimeout = patience // a write that a busy disk holds up is not in doubt here
	config.Logger = log.logger()
	s := connect(t, config, 2048)
	admin := c.Admin()
	storetest.RunFull(t, s, func() {
		filler := strings.Repeat("x", 1<<20)
		for {
			_, err := admin.Put(within(t), "/filler", filler)
			if errors.Is(err, rpctypes.ErrNoSpace) {
				break
			}
			if err != nil {
				t.Fatalf("fill it: %v", err)
			}
		}
	}, func() {
		log.await(t, "store_out_of_space")
		status, err := admin.Status(within(t), c.Endpoint(0))
		if err == nil {
			_, err = admin.Compact(within(t), status.Header.Revision, clientv3.WithCompactPhysical())
		}
		if err == nil {
			_, err = admin.Defragment(within(t), c.Endpoint(0))
		}
		if err == nil {
			alarms, listErr := admin.AlarmList(within(t))
			err = listErr
			for _, alarm := range alarms.Alarms {
				_, err = admin.AlarmDisarm(within(t), (*clientv3.AlarmMember)(alarm))
			}
		}
		if err != nil {
			t.Fatalf("make room: %v", err)
		}
	})
	log.await(t, "store_alarm_ended")
}

// ranges is the number of reads that a member has answered.
func ranges(t *testing.T, endpoint string) int {
	t.Helper()
	answer, err := http.Get(endpoint + "/metrics")
	if err != nil {
		return 0 // it is down
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, `grpc_server_handled_total{grpc_code="OK",grpc_method="Range",grpc_service="etcdserverpb.KV",grpc_type="unary"} `); found {
			n, err := strconv.Atoi(strings.TrimSpace(value))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	return 0
}

// TestReadsOfOneKeyGoToTheLeader: each member could answer, after a question to the
// leader. Without the leader they go on.
func TestReadsOfOneKeyGoToTheLeader(t *testing.T) {
	t.Parallel()
	c := etcdcluster.Start(t, etcdcluster.Options{})
	s := connect(t, to(c), 2048)
	defer func() { _ = s.Close() }()
	const reads = 30
	toLeader := func() bool {
		var before, after [3]int
		for i := range before {
			before[i] = ranges(t, c.Endpoint(i))
		}
		for range reads {
			if _, _, _, err := s.Get(within(t), "/registry/k"); err != nil {
				t.Fatal(err)
			}
		}
		for i := range after {
			after[i] = ranges(t, c.Endpoint(i))
		}
		leader := c.Leader()
		return after[leader]-before[leader] >= reads
	}
	await(t, "all reads to go to the leader", toLeader)
	was := c.Leader()
	c.Kill(was)
	if _, _, _, err := s.Get(within(t), "/registry/k"); err != nil {
		t.Errorf("a read while the leader was killed: %v", err)
	}
	await(t, "all reads to go to the next leader", toLeader)
	c.Pause(c.Leader()) // no majority answers
	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, _, _, err := s.Get(short, "/registry/k"); err == nil {
		t.Error("a read was answered without a majority")
	}
	c.Restart(was)
	if _, _, _, err := s.Get(within(t), "/registry/k"); err != nil {
		t.Errorf("a read with a majority without the leader: %v", err)
	}
}

// BenchmarkGetCluster reads one key of three members over TLS. The processor time of
// the members is reported, which load beside it changes little.
func BenchmarkGetCluster(b *testing.B) {
	c := etcdcluster.Start(b, etcdcluster.Options{TLS: true})
	s := connect(b, to(c), 2048)
	defer func() { _ = s.Close() }()
	get := func() {
		if _, _, _, err := s.Get(b.Context(), "/registry/k"); err != nil {
			b.Fatal(err)
		}
	}
	for began := time.Now(); time.Since(began) < 2*time.Second; { // the members have been looked at
		get()
	}
	before, n := c.CPU(), 0
	for b.Loop() {
		get()
		n++
	}
	b.ReportMetric(float64((c.CPU()-before).Microseconds())/float64(n), "us/op-etcd")
}

// BenchmarkTxnCommitCluster is BenchmarkTxnCommit on three members, over TLS.
func BenchmarkTxnCommitCluster(b *testing.B) {
	c := etcdcluster.Start(b, etcdcluster.Options{TLS: true})
	storetest.BenchmarkTxnCommit(b, connect(b, to(c), 2048))
}
