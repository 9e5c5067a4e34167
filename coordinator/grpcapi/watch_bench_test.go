package grpcapi

import (
	"context"
	"encoding/json"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/proto"

	"github.com/musterd/muster/coordinator/store/mem"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
	"github.com/musterd/muster/test/programs"
)

// mostOfAWatch is the bar for the memory of a watch, with its client in the same
// process.
const mostOfAWatch = 64 << 10

// memory is the heap and the stacks that are in use.
func memory() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // pools give their content up at the second
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// watchMemory opens n watches, each of which gets a change, and returns the memory
// of one, with its client's.
func watchMemory(t *testing.T, n int, open func(ctx context.Context, d watchDoor) (next func() error, err error)) uint64 {
	var each uint64
	synctest.Test(t, func(t *testing.T) {
		back := mem.Open(mem.Options{})
		put(t, back, "zero", "x")
		d := openWatchDoor(t, back)
		ctx, cancel := context.WithCancel(bearing(t, "admin"))
		var readers sync.WaitGroup
		begin := func() {
			readers.Go(func() {
				next, err := open(ctx, d)
				for err == nil {
					err = next()
				}
				if ctx.Err() == nil {
					t.Error(err)
				}
			})
		}
		for range 4 { // what all watches share
			begin()
		}
		put(t, back, "one", "x")
		synctest.Wait()
		before := memory()
		for range n {
			begin()
		}
		synctest.Wait()
		put(t, back, "two", "x")
		synctest.Wait()
		each = (memory() - before) / uint64(n)
		if open := len(d.api.watches); open > n+4 {
			t.Errorf("%d watches are open", open)
		}
		cancel()
		readers.Wait()
	})
	return each
}

// A watch takes at most 64 KiB of a coordinator, over each codec.
func TestAWatchTakesLittleMemory(t *testing.T) {
	for over, open := range map[string]func(context.Context, watchDoor) (func() error, error){
		"gRPC": func(ctx context.Context, d watchDoor) (func() error, error) {
			stream, err := apiv1.NewAllocationsClient(d.conn).Watch(ctx, &apiv1.WatchRequest{})
			return func() error { return stream.RecvMsg(new(apiv1.AllocationWatchEvent)) }, err
		},
		"REST": func(ctx context.Context, d watchDoor) (func() error, error) {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://coordinator/api/v1/allocations?watch=true", nil)
			if err != nil {
				return nil, err
			}
			r.Header.Set("Authorization", "Bearer admin")
			answer, err := d.web.Do(r)
			if err != nil {
				return nil, err
			}
			buffer := make([]byte, 1<<10)
			return func() error { _, err := answer.Body.Read(buffer); return err }, nil
		},
	} {
		t.Run(over, func(t *testing.T) {
			each := watchMemory(t, 56, open) // of one connection, which has 64 streams
			if each > mostOfAWatch && !programs.RaceEnabled() {
				t.Errorf("a watch takes %d bytes with its client, want at most %d", each, mostOfAWatch)
			}
			t.Logf("%d bytes each, with the client", each)
		})
	}
}

// BenchmarkWatchMessage makes the message of one change for one client.
func BenchmarkWatchMessage(b *testing.B) {
	document := []byte(`{"apiVersion":"muster/v1","kind":"Allocation","metadata":{"name":"train-0","namespace":"ml","uid":"7f3a","resourceVersion":"42","creationTimestamp":"2026-03-01T12:00:00Z","labels":{"team":"vision"}},"spec":{"resources":{"requests":{"cpu":"8","memory":"32Gi","nvidia.com/gpu":"2"}},"priority":100},"status":{"phase":"Running","nodeName":"gpu-1","conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2026-03-01T12:00:01Z"}]}}`)
	b.ReportAllocs()
	for b.Loop() {
		m, err := toMessage(json.RawMessage(document), new(apiv1.Allocation))
		if err != nil {
			b.Fatal(err)
		}
		if proto.Size(m) == 0 {
			b.Fatal("empty")
		}
	}
}
