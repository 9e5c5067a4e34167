package coordinator

import (
	"crypto/sha256"
	"encoding/hex"
)

func hashOf(document []byte) string {
	sum := sha256.Sum256(document)
	return hex.EncodeToString(sum[:16])
}
