package api_test

import (
	"testing"

	"github.com/musterd/muster/api"
)

// Each 429 and each 503 has a Retry-After, since Errorf alone makes them.
func TestEachRefusalThatMayPassHasARetryAfter(t *testing.T) {
	for code := 400; code < 600; code++ {
		s := api.Errorf(code, "no")
		if has := s.RetryAfterSeconds > 0; has != (code == 429 || code == 503) {
			t.Errorf("%d has Retry-After %d", code, s.RetryAfterSeconds)
		}
		if s := s.Because(api.NotLeader); (s.RetryAfterSeconds > 0) != (code == 429 || code == 503) {
			t.Errorf("%d because of a reason has Retry-After %d", code, s.RetryAfterSeconds)
		}
	}
	// The SDK comes again within 10 s, but not where objects have to go first.
	if s := api.Errorf(429, "no").Because(api.TooManyObjects); s.RetryAfterSeconds != 30 {
		t.Errorf("too many objects have Retry-After %d", s.RetryAfterSeconds)
	}
	s := api.Errorf(503, "no")
	if s.RetryAfterSeconds = 7; s.Because(api.NotLeader).RetryAfterSeconds != 7 {
		t.Errorf("a reason changes Retry-After to %d", s.RetryAfterSeconds)
	}
}
