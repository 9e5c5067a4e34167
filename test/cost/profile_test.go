package cost_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/musterd/muster/coordinator/record"
)

// profile is the objects that were allocated so far, by their stacks. It is a count and
// no sample: between profiled and the end of its test, the runtime samples each object.
type profile []runtime.MemProfileRecord

// profiled has each object sampled until stop.
func profiled(t *testing.T) (stop func()) {
	before := runtime.MemProfileRate
	runtime.MemProfileRate = 1
	stop = func() { runtime.MemProfileRate = before }
	t.Cleanup(stop)
	return stop
}

// takeProfile takes the profile. The runtime publishes an object's sample once two
// collections have begun after it.
func takeProfile() profile {
	for range 3 {
		runtime.GC()
	}
	n, _ := runtime.MemProfile(nil, true)
	for {
		p := make(profile, n+100)
		var ok bool
		if n, ok = runtime.MemProfile(p, true); ok {
			return p[:n]
		}
	}
}

// since yields the functions of each stack with objects since another profile, the
// innermost first, without those of the runtime that allocate.
func (p profile) since(before profile, yield func(functions []string, h heap)) {
	known := map[[32]uintptr]heap{}
	for _, r := range before {
		known[r.Stack0] = known[r.Stack0].add(heap{-r.AllocObjects, -r.AllocBytes})
	}
	for _, r := range p {
		known[r.Stack0] = known[r.Stack0].add(heap{r.AllocObjects, r.AllocBytes})
	}
	for stack, h := range known {
		if h.allocations == 0 {
			continue
		}
		depth := 0
		for depth < len(stack) && stack[depth] != 0 {
			depth++
		}
		var functions []string
		frames := runtime.CallersFrames(stack[:depth])
		for more := depth > 0; more; {
			var f runtime.Frame
			if f, more = frames.Next(); len(functions) > 0 || !strings.HasPrefix(f.Function, "runtime.") {
				functions = append(functions, f.Function)
			}
		}
		yield(functions, h)
	}
}

const module = "github.com/musterd/muster/"

// decodes reports whether an object with such a stack is the decoder that record.Decode
// makes for each record, and the function of this module that calls Decode.
func decodes(functions []string) (caller string, is bool) {
	if len(functions) < 3 || functions[0] != "encoding/json.NewDecoder" || !strings.HasPrefix(functions[1], module+"coordinator/record.Decode[") {
		return "", false
	}
	return strings.CutPrefix(functions[2], module)
}

// isHarness reports whether an object belongs to the harness or to its store: by the
// innermost function of this module on its stack.
func isHarness(functions []string) bool {
	for _, f := range functions {
		if strings.HasPrefix(f, "testing") {
			return true
		}
		if in, found := strings.CutPrefix(f, module); found {
			return strings.HasPrefix(in, "test/") || strings.HasPrefix(in, "coordinator/store/mem")
		}
	}
	return false
}

// isAside reports whether a function reads records for the harness, for fences or for the
// election: not for an allocation.
func isAside(caller string) bool {
	return strings.HasPrefix(caller, "test/") || strings.HasPrefix(caller, "coordinator/store.") || strings.HasPrefix(caller, "coordinator.readFences")
}

// product counts the heap of the product since another profile, and the records that it
// has decoded for allocations.
func (p profile) product(before profile) (all heap, decoded int64) {
	p.since(before, func(functions []string, h heap) {
		if caller, is := decodes(functions); is && !isAside(caller) {
			decoded += h.allocations
		}
		if !isHarness(functions) {
			all = all.add(h)
		}
	})
	return all, decoded
}

// TestDecodedRecordsAreCounted: the count of decoders is that of records.
func TestDecodedRecordsAreCounted(t *testing.T) {
	newMeter(t)
	stop := profiled(t)
	u, held := records(1)
	unit, tx := record.MustEncode(u), record.MustEncode(held)
	before := takeProfile()
	for range 7 {
		if _, err := record.Decode[record.Unit]("key", unit); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := record.Decode[record.Tx]("key", tx); err != nil {
		t.Fatal(err)
	}
	after, n := takeProfile(), int64(0)
	stop()
	after.since(before, func(functions []string, h heap) {
		if caller, _ := decodes(functions); strings.HasPrefix(caller, "test/cost") {
			n += h.allocations
		}
	})
	if n != 8 {
		t.Errorf("%d decoded records are counted, want 8: record.Decode makes no json.Decoder for each record any more, so find another object that it makes once for each, and count that in decodes", n)
	}
}
