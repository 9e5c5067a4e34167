package record

import (
	"crypto/sha256"

	"github.com/musterd/muster/resource"
)

// Digest stands for a text where only equality counts.
type Digest [16]byte

// DigestOf is the digest of a text.
func DigestOf(text string) Digest {
	sum := sha256.Sum256([]byte(text))
	return Digest(sum[:len(Digest{})])
}

// TenantDigest stands for a tenant among request ids. Two tenants with the same digest, a
// chance of 1 in 4 * 10^9, have a bound together.
type TenantDigest [4]byte

// RequestDigest stands for a tenant's request id. Its first bytes stand for the tenant.
type RequestDigest Digest

// DigestOfRequest is the digest of a request id of a tenant.
func DigestOfRequest(tenant resource.TenantID, id string) RequestDigest {
	d := RequestDigest(DigestOf(string(tenant) + "/" + id))
	of := DigestOf(string(tenant))
	copy(d[:], of[:len(TenantDigest{})])
	return d
}

// Tenant stands for the tenant of the request id.
func (d RequestDigest) Tenant() TenantDigest { return TenantDigest(d[:len(TenantDigest{})]) }

// Remembered is the memory of a Request in a few bytes without pointers.
type Remembered struct {
	Document Digest // of DocumentHash
	Object   Digest // of UID
}

// Remembered is the memory of the request.
func (r Request) Remembered() Remembered {
	return Remembered{Document: DigestOf(r.DocumentHash), Object: DigestOf(r.UID)}
}

// ReadRequest reads a key below RequestsPrefix.
func ReadRequest(kv KV) (RequestDigest, Remembered, error) {
	r, err := Decode[Request](kv.Key, kv.Value)
	if err != nil {
		return RequestDigest{}, Remembered{}, err
	}
	return r.Digest(kv.Key)
}

// Digest is the digest of the record's key below RequestsPrefix, and the memory of the
// request.
func (r Request) Digest(key string) (RequestDigest, Remembered, error) {
	tenant, id, err := ParseRequestKey(key)
	return DigestOfRequest(tenant, id), r.Remembered(), err
}
