package rest

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestHeadersOfOneConnectionEndThere (RFC 9110, section 7.6.1).
func TestHeadersOfOneConnectionEndThere(t *testing.T) {
	given := http.Header{"Authorization": {"Bearer x"}, "Idempotency-Key": {"k"}, "X-Mine": {"1"}, "X-Also-Mine": {"2"}}
	given["Connection"] = []string{"close, x-mine", "X-Also-Mine"}
	for _, name := range []string{"Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"} {
		given.Set(name, "something")
	}
	before := given.Clone()
	want := http.Header{"Authorization": {"Bearer x"}, "Idempotency-Key": {"k"}}
	if diff := cmp.Diff(want, endToEnd(given)); diff != "" {
		t.Errorf("passed on (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, given); diff != "" {
		t.Errorf("the request itself has changed (-want +got):\n%s", diff)
	}
}
