package failover

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/objects"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/test/cluster"
)

// changesWanted is the number of changes that the watches have to show.
var changesWanted = flag.Int("failover.changes", 1000, "changes of TestWatchesGoOnOverKills; make watches has 10000")

const (
	changed   = 8 // allocations
	changeKey = "change"
)

// seen is what one watch has shown. Each change of an allocation is one more than
// the change before it; a change may be written twice where its first answer was
// lost, and then comes as two versions.
type seen struct {
	what string
	last int // the number of the last change of each allocation

	mu       sync.Mutex
	at       objects.ID
	change   map[string]int
	version  map[string]int64
	faults   []string
	complete int           // allocations whose last change was shown
	done     chan struct{} // closed once all are complete
}

func newSeen(what string, last int) *seen {
	return &seen{what: what, last: last, change: map[string]int{}, version: map[string]int64{}, done: make(chan struct{})}
}

// take takes an event; id is "" for clients that do not get ids.
func (s *seen) take(of string, m *api.ObjectMeta, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fault := func(format string, args ...any) {
		if len(s.faults) < 10 {
			s.faults = append(s.faults, fmt.Sprintf("%s %s@%s %s: ", of, m.Name, m.ResourceVersion, id)+fmt.Sprintf(format, args...))
		}
	}
	if id != "" {
		at, err := objects.ParseID(id)
		if err != nil || at.Compare(s.at) <= 0 {
			fault("does not come after %s (%v)", s.at, err)
		}
		s.at = at
	}
	n, err := strconv.Atoi(m.Labels[changeKey])
	if err != nil {
		fault("%v", err)
		return
	}
	version, err := strconv.ParseInt(m.ResourceVersion, 10, 64)
	last, known := s.change[m.Name]
	switch {
	case err != nil:
		fault("%v", err)
	case !known:
	case version <= s.version[m.Name]:
		fault("a duplicate: version %d was shown before", s.version[m.Name])
	case n != last && n != last+1:
		fault("a gap: change %d comes after change %d", n, last)
	}
	if n == s.last && (!known || last != n) {
		if s.complete++; s.complete == changed {
			close(s.done)
		}
	}
	s.change[m.Name], s.version[m.Name] = n, version
}

// await waits until all changes were shown.
func (s *seen) await(t *testing.T, ctx context.Context) {
	t.Helper()
	select {
	case <-s.done:
	case <-ctx.Done():
		t.Errorf("%s: %v; it has shown %v of %d changes each", s.what, ctx.Err(), s.change, s.last)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, fault := range s.faults {
		t.Errorf("%s: %s", s.what, fault)
	}
}

// client is one that knows these coordinators, and begins with the first.
func client(t *testing.T, c *cluster.Cluster, at ...*cluster.Process) *sdk.Client {
	t.Helper()
	k, err := sdk.NewClient(sdk.Config{Endpoint: endpoints(at...), Token: c.AdminToken(), CAFile: c.CAFile()})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func endpoints(at ...*cluster.Process) string {
	var all []string
	for _, p := range at {
		all = append(all, "https://"+p.Address(cluster.RESTPort))
	}
	return strings.Join(all, ",")
}

// overSDK watches by the SDK.
func (s *seen) overSDK(ctx context.Context, k *sdk.Client) error {
	for change, err := range k.Allocations("default").Watch(ctx, sdk.WatchOptions{}) {
		if err != nil {
			return err
		}
		s.take(change.Type, &change.Object.Metadata, change.ID)
	}
	return nil
}

// overGRPC watches by gRPC, and goes on at the next coordinator with the id of
// the last event where one has gone.
func (s *seen) overGRPC(ctx context.Context, c *cluster.Cluster, at ...*cluster.Process) error {
	trust, err := credentials.NewClientTLSFromFile(c.CAFile(), "")
	if err != nil {
		return err
	}
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+c.AdminToken())
	request := &apiv1.WatchRequest{Namespace: "default"}
	for i := 0; ctx.Err() == nil; i++ {
		conn, err := grpc.NewClient("passthrough:///"+at[i%len(at)].Address(cluster.RESTPort), grpc.WithTransportCredentials(trust))
		if err != nil {
			return err
		}
		stream, err := apiv1.NewAllocationsClient(conn).Watch(ctx, request)
		for err == nil {
			var e *apiv1.AllocationWatchEvent
			if e, err = stream.Recv(); err != nil {
				break
			}
			id := ""
			if e.GetId() != nil {
				request.After, id = e.GetId(), strconv.FormatInt(e.GetId().GetRevision(), 10)
				if e.GetId().Index != nil {
					id += "." + strconv.Itoa(int(e.GetId().GetIndex()))
				}
			}
			if e.GetType() != apiv1.WatchEventType_BOOKMARK {
				m := e.GetObject().GetMetadata()
				s.take(e.GetType().String(), &api.ObjectMeta{Name: m.GetName(), ResourceVersion: m.GetResourceVersion(), Labels: m.GetLabels()}, id)
			}
		}
		if closeErr := conn.Close(); closeErr != nil {
			return closeErr
		}
	}
	return ctx.Err()
}

// overCurl reads the Server-Sent Events that curl -N prints.
func (s *seen) overCurl(output io.Reader) error {
	id := ""
	for lines := bufio.NewReader(output); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return err
		}
		if text, is := strings.CutPrefix(line, "id: "); is {
			id = strings.TrimSpace(text)
		}
		text, is := strings.CutPrefix(line, "data: ")
		if !is {
			continue
		}
		var event struct {
			Type   string
			Object api.Allocation
		}
		if err := json.Unmarshal([]byte(text), &event); err != nil {
			return err
		}
		if event.Type == "ERROR" {
			return fmt.Errorf("the watch ended: %s", text)
		}
		if event.Type != "BOOKMARK" {
			s.take(event.Type, &event.Object.Metadata, id)
		}
		id = ""
	}
}

// overCLI reads the events that muster get -w prints.
func (s *seen) overCLI(output io.Reader) error {
	for events := json.NewDecoder(output); ; {
		var event struct {
			Type   string
			Object api.Allocation
		}
		if err := events.Decode(&event); err != nil {
			return err
		}
		s.take(event.Type, &event.Object.Metadata, "")
	}
}

// program runs a program until ctx ends, and returns its output.
func program(ctx context.Context, t *testing.T, env []string, path string, args ...string) io.Reader {
	t.Helper()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var complaints strings.Builder
	cmd.Stderr = &complaints
	output, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Wait() // it was killed
		if t.Failed() {
			t.Logf("%s said: %s", path, complaints.String())
		}
	})
	return output
}

// write makes the changes of one allocation, one after the other. A change without
// a definite answer is sent again.
func write(ctx context.Context, k *sdk.Client, name string, last int, written *atomic.Int64) error {
	kind, _ := sdk.KindNamed("allocations")
	for n := 1; n <= last; n++ {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"%d"}}}`, changeKey, n)
		for {
			_, err := k.Resource(kind, "default").Patch(ctx, name, patch)
			if err == nil {
				break
			}
			var refused *api.Status
			if ctx.Err() != nil || errors.As(err, &refused) && refused.Code < 500 {
				return fmt.Errorf("change %d of %s: %w", n, name, err)
			}
		}
		written.Add(1)
	}
	return nil
}

// TestWatchesGoOnOverKills: no change is missed and none comes twice, while the
// leader and then a follower are killed. curl reads from a follower that stays.
// The SDK, gRPC and muster get -w begin at a coordinator that is killed.
func TestWatchesGoOnOverKills(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("no reference material: curl is not installed")
	}
	c := cluster.Start(t, cluster.Options{Etcd: 1, Agents: 1, Quiet: true})
	leader, epoch := c.AwaitLeader(0)
	followers := c.Followers(leader)
	stays, goes := followers[0], followers[1]
	writer := client(t, c, stays, leader, goes)
	last := max(*changesWanted/changed, 3)
	name := func(i int) string { return "w" + strconv.Itoa(i) }
	for i := range changed {
		a := &api.Allocation{Metadata: api.ObjectMeta{Name: name(i), Labels: map[string]string{changeKey: "0"}}}
		a.Spec.Resources.Requests = map[resource.Name]string{"cpu": "10m"}
		if _, err := writer.Allocations("default").Create(t.Context(), a, sdk.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), cluster.Patience+time.Duration(*changesWanted)*50*time.Millisecond)
	defer cancel()
	reading, enough := context.WithCancel(ctx)
	var readers sync.WaitGroup
	defer readers.Wait()
	defer enough()
	var all []*seen
	read := func(what string, watch func(*seen) error) {
		s := newSeen(what, last)
		all = append(all, s)
		readers.Go(func() {
			if err := watch(s); err != nil && reading.Err() == nil {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
	const list = "/api/v1/namespaces/default/allocations?watch=true"
	for _, version := range []string{"--http1.1", "--http2"} {
		output := program(reading, t, nil, curl, "-sSN", version, "--cacert", c.CAFile(), "-H", "Authorization: Bearer "+c.AdminToken(), endpoints(stays)+list)
		read("curl -N "+version+" at a follower", func(s *seen) error { return s.overCurl(output) })
	}
	read("the SDK, at the leader first", func(s *seen) error { return s.overSDK(reading, client(t, c, leader, goes, stays)) })
	read("the SDK, at a follower first", func(s *seen) error { return s.overSDK(reading, client(t, c, goes, leader, stays)) })
	read("gRPC, at the leader first", func(s *seen) error { return s.overGRPC(reading, c, leader, goes, stays) })
	env := []string{
		"MUSTER_ADDR=" + endpoints(leader, goes, stays), "MUSTER_TOKEN=" + c.AdminToken(), "MUSTER_CA_FILE=" + c.CAFile(),
		"MUSTER_CONTEXT=" + filepath.Join(t.TempDir(), "none.json"),
	}
	output := program(reading, t, env, "muster", "get", "allocations", "-n", "default", "-w", "-o", "json", "--output-watch-events")
	read("muster get -w, at the leader first", func(s *seen) error { return s.overCLI(output) })

	began := time.Now()
	var written atomic.Int64
	var writers sync.WaitGroup
	for i := range changed {
		writers.Go(func() {
			if err := write(ctx, writer, name(i), last, &written); err != nil {
				t.Error(err)
			}
		})
	}
	total := int64(last * changed)
	awaitWritten(ctx, t, &written, total/3)
	leader.Kill()
	c.AwaitLeader(epoch)
	leader.Start()
	awaitWritten(ctx, t, &written, 2*total/3)
	goes.Kill()
	goes.Start()
	writers.Wait()
	for _, s := range all {
		s.await(t, ctx)
	}
	t.Logf("%d changes in %v", written.Load(), time.Since(began).Round(time.Millisecond))
	enough()
}

// awaitWritten waits until n changes are written.
func awaitWritten(ctx context.Context, t *testing.T, written *atomic.Int64, n int64) {
	t.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for written.Load() < n {
		select {
		case <-ctx.Done():
			t.Fatalf("%d of %d changes are written: %v", written.Load(), n, ctx.Err())
		case <-look.C:
		}
	}
}
