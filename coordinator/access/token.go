package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"strings"
)

// prefix is how an access token begins, so that a token that got lost in a log or a
// repository is found.
const prefix = "muster."

// idPrefix begins the id of an access token; the ids of bootstrap tokens are hex
// digits alone.
const idPrefix = "at-"

// Lengths of the parts of a token, in characters.
const (
	idDigits     = 10
	secretDigits = 40 // 160 random bits
)

// maxToken bounds the text of a token that is looked at, in bytes.
const maxToken = len(prefix) + len(idPrefix) + idDigits + 1 + secretDigits

// secretText is a token as its bearer has it: muster.ID.SECRET.
type secretText struct{ id, secret string }

// newID draws the id of a token.
func newID() string { return idPrefix + drawn(idDigits) }

// newSecret draws a secret for a token.
func newSecret(id string) secretText { return secretText{id, drawn(secretDigits)} }

// drawn is a random text of hex digits.
func drawn(digits int) string {
	random := make([]byte, digits/2)
	rand.Read(random) // never fails
	return hex.EncodeToString(random)
}

// parse reads the text of a token. Every text that no token has is refused alike.
func parse(text string) (t secretText, ok bool) {
	rest, begins := strings.CutPrefix(text, prefix)
	if !begins || len(text) != maxToken {
		return t, false
	}
	t.id, t.secret, ok = strings.Cut(rest, ".")
	return t, ok && strings.HasPrefix(t.id, idPrefix) && isHex(t.id[len(idPrefix):]) && isHex(t.secret)
}

func isHex(s string) bool {
	return s != "" && strings.Trim(s, "0123456789abcdef") == ""
}

// text is the whole token.
func (t secretText) text() string { return prefix + t.id + "." + t.secret }

// String hides the secret, so that no log shows it.
func (t secretText) String() string { return prefix + t.id + ".(hidden)" }

// GoString hides the secret, so that no log shows it.
func (t secretText) GoString() string { return t.String() }

// digest is what is kept of a secret. The secret has more entropy than could ever be
// searched: no salt, no stretching.
func (t secretText) digest() [sha256.Size]byte { return sha256.Sum256([]byte(t.id + "." + t.secret)) }

// proves compares two digests in constant time.
func proves(given, kept *[sha256.Size]byte) bool {
	return subtle.ConstantTimeCompare(given[:], kept[:]) == 1
}
