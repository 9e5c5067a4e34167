package rest_test

import (
	"fmt"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/test/resttest"
)

// documents are large documents that are good, by their shape.
var documents = map[string]func(i int) string{
	"1 MiB of which most is blank": func(i int) string {
		return fmt.Sprintf(asleep, i, "x") + strings.Repeat(" ", 1<<20-200)
	},
	"250 KiB of annotations": func(i int) string { return fmt.Sprintf(asleep, i, strings.Repeat("x", 250<<10)) },
}

const asleep = `{"metadata":{"name":"d%d","annotations":{"a":"%s"}},"spec":{"suspend":true,"resources":{"requests":{"cpu":"1"}}}}`

// sendAll creates all documents at once, and returns the live bytes that each has left
// and the bytes that were allocated for each.
func sendAll(tb testing.TB, texts []string) (live, allocated int64) {
	tb.Helper()
	h := rest.NewHandler(rest.Config{Service: resttest.New(time.Now, resttest.Node{Name: "n", CPUs: 4, Memory: 8 << 30}), Authenticator: service.StaticToken(token)})
	var before, after, made runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var sent sync.WaitGroup
	for _, text := range texts {
		sent.Go(func() {
			w := httptest.NewRecorder()
			ask(h, w, "POST", "/api/v1/namespaces/a/allocations", strings.NewReader(text))
			if w.Code != 201 {
				tb.Errorf("%d %.300s", w.Code, w.Body)
			}
		})
	}
	sent.Wait()
	runtime.ReadMemStats(&made)
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(h)
	n := int64(len(texts))
	return (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / n, int64(made.TotalAlloc-before.TotalAlloc) / n
}

// A stored document is in the memory of the leader once, and blanks take none. The test's
// store keeps it twice, as the value and in the history, and the reader of the store once.
// With one copy more each case fails.
func TestADocumentIsKeptOnce(t *testing.T) {
	for name, most := range map[string]int64{"1 MiB of which most is blank": 64 << 10, "250 KiB of annotations": 4*256<<10 + 96<<10} {
		t.Run(name, func(t *testing.T) {
			var texts []string
			for i := range 32 {
				texts = append(texts, documents[name](i))
			}
			if live, _ := sendAll(t, texts); live > most {
				t.Errorf("each document has left %d KiB, want %d at most", live>>10, most>>10)
			}
			runtime.KeepAlive(texts)
		})
	}
}

// BenchmarkDocumentBytes measures the memory of large documents that arrive at once.
func BenchmarkDocumentBytes(b *testing.B) {
	for name, document := range documents {
		b.Run(name, func(b *testing.B) {
			var live, allocated int64
			var texts []string
			for i := range 64 {
				texts = append(texts, document(i))
			}
			for b.Loop() {
				live, allocated = sendAll(b, texts)
			}
			b.ReportMetric(float64(live), "live-B/document")
			b.ReportMetric(float64(allocated), "allocated-B/document")
		})
	}
}
