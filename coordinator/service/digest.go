package service

import (
	"crypto/sha256"
	"encoding/hex"
)

// HashOf is the hash by which a repeated document is known.
func HashOf(document []byte) string {
	sum := sha256.Sum256(document)
	return hex.EncodeToString(sum[:16])
}

// Digest is the hash by which a creation that is sent again is known.
func (c Create) Digest() string {
	if c.Hash != "" {
		return c.Hash
	}
	return HashOf(c.Document)
}
