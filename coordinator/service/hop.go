package service

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// hopDomain sets the proofs of hops apart from all else that the key is for.
const hopDomain = "muster: a request that a coordinator passes on\n"

// Hop is the way of a request that one coordinator passes on to another. No field has a
// line break: headers have none.
type Hop struct {
	// By is the id of the coordinator that passes the request on.
	By string
	// RequestID is the id of the request.
	RequestID string
	// Authorization is the header of the request's caller.
	Authorization string
	// Certificate names the client certificate of a caller without that header
	// (CertificateName).
	Certificate string
	// Address is the address of the client, "host:port"; "" where unknown.
	Address string
}

// ProveBy has the coordinator prove its hops by a key. All coordinators of a cluster have
// one key: the administrator's token. Without a key nothing is proven: then the leader
// counts a request that was passed on once more, and the audit has the coordinator's
// address in place of the client's.
func (f *Forward) ProveBy(key string) *Forward {
	f.key = key
	return f
}

// HopProof is the proof of a hop by this coordinator. A proof is good for one request of
// one caller at one address.
func (f *Forward) HopProof(h Hop) string {
	if f == nil || f.key == "" {
		return ""
	}
	h.By = f.id
	return hex.EncodeToString(f.digest(h))
}

// PassedOn reports whether a coordinator of this cluster has made a hop.
func (f *Forward) PassedOn(h Hop, proof string) bool {
	if f == nil || f.key == "" || h.By == "" || len(proof) != 2*sha256.Size {
		return false
	}
	given, err := hex.DecodeString(proof)
	return err == nil && hmac.Equal(given, f.digest(h))
}

// digest is the digest of a hop under the key.
func (f *Forward) digest(h Hop) []byte {
	mac := hmac.New(sha256.New, []byte(f.key))
	for _, part := range []string{hopDomain, h.By, "\n", h.RequestID, "\n", h.Authorization, "\n", h.Certificate, "\n", h.Address} {
		_, _ = mac.Write([]byte(part)) // never fails
	}
	return mac.Sum(nil)
}

// From is the caller of a request that a hop has passed on. The coordinator of the hop
// vouches for the address of the client.
func (c Caller) From(h Hop) Caller {
	c.Address, c.Via = h.Address, h.By
	return c
}
