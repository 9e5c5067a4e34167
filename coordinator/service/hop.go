package service

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// hopDomain sets the proofs of hops apart from all else that the key is for.
const hopDomain = "muster: a request that a coordinator passes on\n"

// ProveBy has the coordinator prove that it is the one that passes a request on. All
// coordinators of a cluster have one key: the administrator's token. Without a key
// nothing is proven, and the leader counts a request that was passed on once more.
func (f *Forward) ProveBy(key string) *Forward {
	f.key = key
	return f
}

// HopProof is the proof that this coordinator passes a request on: id is that of the
// request, authorization the header of its caller. A proof is good for one request of
// one caller.
func (f *Forward) HopProof(id, authorization string) string {
	if f == nil || f.key == "" {
		return ""
	}
	return hex.EncodeToString(f.hop(f.id, id, authorization))
}

// PassedOn reports whether a coordinator of this cluster has passed a request on: by
// is the name that the request gives.
func (f *Forward) PassedOn(by, id, authorization, proof string) bool {
	if f == nil || f.key == "" || by == "" || len(proof) != 2*sha256.Size {
		return false
	}
	given, err := hex.DecodeString(proof)
	return err == nil && hmac.Equal(given, f.hop(by, id, authorization))
}

// hop is the digest of a hop.
func (f *Forward) hop(by, id, authorization string) []byte {
	mac := hmac.New(sha256.New, []byte(f.key))
	for _, part := range []string{hopDomain, by, "\n", id, "\n", authorization} {
		_, _ = mac.Write([]byte(part)) // never fails
	}
	return mac.Sum(nil)
}
