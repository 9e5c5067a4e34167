package rest

import (
	"testing"
	"time"
)

func TestWaitsAreBounded(t *testing.T) {
	for text, want := range map[string]time.Duration{"0s": 0, "10s": 10 * time.Second, MaxWait.String(): MaxWait} {
		if got, err := parseWait(text); err != nil || got != want {
			t.Errorf("wait=%s: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "10", "-1ns", (MaxWait + 1).String(), "forever"} {
		if got, err := parseWait(text); err == nil {
			t.Errorf("wait=%s is taken as %s", text, got)
		}
	}
}
