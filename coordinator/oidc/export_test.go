package oidc

import (
	"encoding/json"
	"testing"
	"time"
)

// Judge decides about claims in JSON, for tests.
func (c Config) Judge(claimsJSON []byte, now time.Time) (Person, error) {
	var in claims
	if err := json.Unmarshal(claimsJSON, &in); err != nil {
		return Person{}, err
	}
	return c.judge(in, now)
}

// Fetch asks the provider now.
func (v *Verifier) Fetch(t testing.TB) {
	if err := v.Ask(t); err != nil {
		t.Error(err)
	}
}

// Ask is Fetch with the error.
func (v *Verifier) Ask(t testing.TB) error { return v.keys.fetch(t.Context()) }

// MaxKeys is maxKeys.
const MaxKeys = maxKeys

// Eager lets tokens with an unknown key have the keys fetched at any time.
func (v *Verifier) Eager() { v.keys.eager = 0 }

// ReadKeys is readKeys.
var ReadKeys = readKeys
