package rest

import (
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/gate"
	"github.com/musterd/muster/coordinator/service"
)

// The value of a document takes many times the memory of its text.
func TestLargeDocumentsAreDecodedOneByOne(t *testing.T) {
	cases := map[string]struct {
		bytes, atOnce, refused int // of 20 documents, while none is done
	}{
		"small ones, all at once":   {gate.SmallDocument, 20, 0},
		"of the greatest size, one": {api.MaxDocument, 1, 19},
		"of more than that, one":    {2 * api.MaxDocument, 1, 19},
		"of a third, three":         {api.MaxDocument / 3, 3, 17},
	}
	for name, k := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMetrics(nil)
				h := &handler{Config: Config{Gate: gate.New(&gate.Rates{})}, room: newRoom(m), metrics: m}
				release := make(chan struct{})
				var mu sync.Mutex
				running, refused := 0, 0
				var wg sync.WaitGroup
				for range 20 {
					wg.Go(func() {
						c := &call{w: httptest.NewRecorder(), r: httptest.NewRequest("POST", "/", nil)}
						_, status := decoded(h, c, make([]byte, k.bytes), func([]byte) (*int, *api.Status) {
							mu.Lock()
							running++
							mu.Unlock()
							<-release
							return nil, nil
						})
						mu.Lock()
						defer mu.Unlock()
						if status != nil && status.Code == 429 {
							refused++
						}
					})
				}
				time.Sleep(2 * roomWithin)
				synctest.Wait()
				mu.Lock()
				if running != k.atOnce || refused != k.refused {
					t.Errorf("%d decoded at once, want %d; %d refused, want %d", running, k.atOnce, refused, k.refused)
				}
				mu.Unlock()
				close(release)
				wg.Wait()
				if _, ok := h.Gate.Rooms.Decoded.Take(t.Context(), service.Principal{}, api.MaxDocument); !ok {
					t.Error("room was not given back")
				}
			})
		})
	}
}
