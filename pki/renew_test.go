package pki_test

import (
	"crypto/x509"
	"testing"
	"time"

	"github.com/musterd/muster/pki"
)

// TestTheTimeUntilTheNextRenewal: a holder whose clock is ahead or behind waits at least a
// third of the certificate's time.
func TestTheTimeUntilTheNextRenewal(t *testing.T) {
	issued := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	c := &x509.Certificate{NotBefore: issued.Add(-pki.Backdate), NotAfter: issued.Add(24 * time.Hour)}
	for name, x := range map[string]struct {
		ahead, after time.Duration // of the holder's clock; since the certificate came
		unknown      bool          // no instant is known
		want         time.Duration
		wantAhead    bool
	}{
		"a right clock":                             {want: 16 * time.Hour},
		"a right clock, later":                      {after: 15 * time.Hour, want: time.Hour},
		"a clock that is some hours ahead":          {ahead: 4 * time.Hour, want: 12 * time.Hour},
		"a clock that is nearly too far ahead":      {ahead: 16*time.Hour - 1, want: 8 * time.Hour},
		"a clock that is too far ahead":             {ahead: 16 * time.Hour, want: 8 * time.Hour, wantAhead: true},
		"a year ahead":                              {ahead: 365 * 24 * time.Hour, want: 8 * time.Hour, wantAhead: true},
		"a year ahead, after a third of the time":   {ahead: 365 * 24 * time.Hour, after: 8 * time.Hour, want: 0, wantAhead: true},
		"a year behind":                             {ahead: -365 * 24 * time.Hour, want: 365*24*time.Hour + 16*time.Hour},
		"after a start, when the time has passed":   {after: 20 * time.Hour, unknown: true, want: -4 * time.Hour},
		"after a start, when the time has not":      {after: 10 * time.Hour, unknown: true, want: 6 * time.Hour},
		"after a start, with a clock that is ahead": {ahead: 17 * time.Hour, unknown: true, want: -time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			got := issued.Add(x.ahead)
			now := got.Add(x.after)
			if x.unknown {
				got = time.Time{}
			}
			if wait, isAhead := pki.RenewIn(c, now, got); wait != x.want || isAhead != x.wantAhead {
				t.Errorf("%s, ahead %t; want %s and %t", wait, isAhead, x.want, x.wantAhead)
			}
		})
	}
}
